"""How somebody does something on a page: by what they read there, with the mouse and the keys."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page


def opened(within: Page | Locator, label: str) -> Locator:
    """Open a deed by its label; what is inside of it."""
    summary = within.locator("details.deed > summary", has_text=re.compile(rf"^\s*{label}\s*$"))
    summary.click()
    return summary.locator("xpath=..").locator("form")


def filled(form: Locator, **fields: str) -> Locator:
    """Fill in a form by the names of its fields."""
    for name, text in fields.items():
        field = form.locator(f"[name={name}]")
        if field.evaluate("each => each.localName") == "select":
            field.select_option(text)
        else:
            field.fill(text)
    return form


def done(page: Page, form: Locator, label: str) -> str:
    """Press the button; what the page says became of it."""
    said = page.locator(".said")
    before = said.count()
    assert not before or said.first.is_visible()
    page.evaluate("() => document.querySelector('.said')?.remove()")
    form.get_by_role("button", name=label, exact=True).click()
    said.wait_for()
    return said.inner_text()
