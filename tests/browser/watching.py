"""Somebody who looks at pages, and remembers everything that went wrong meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, Response, WebError

from tests.browser.serving import Site
from truegreen.model import Role

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
WIDTHS = {390: 844, 820: 1180, 1440: 900}
PATIENCE = 10_000
_ARRIVED = 400
_LOUD = ("error", "warning")
_LOOK = 25
# Buttons are dimmed while a part of the page is loaded again.
DRAWN = """() => new Promise((done) => {
  const look = () => document.querySelector(".htmx-request") ? requestAnimationFrame(look)
    : requestAnimationFrame(done);
  requestAnimationFrame(look);
})"""
_WINDOW: tuple[int, Theme] = (1440, "light")


class Visitor:
    """A browser window of its own: cookies, storage and faults are nobody else's."""

    def __init__(self, browser: Browser, site: Site, **context: Any) -> None:
        self.site = site
        self.remembered: list[str] = []
        context.setdefault("viewport", {"width": _WINDOW[0], "height": WIDTHS[_WINDOW[0]]})
        context.setdefault("reduced_motion", "reduce")
        self.context = browser.new_context(base_url=site.url, **context)
        self.context.set_default_timeout(PATIENCE)
        self.context.on("console", self._said)
        self.context.on("weberror", self._threw)
        self.context.on("request", self._asked)
        self.context.on("response", self._answered)
        self.context.on("dialog", self._interrupted)
        self.page: Page = self.context.new_page()
        self._window: tuple[int, Theme] = _WINDOW

    @property
    def width(self) -> int:
        """Of its window."""
        return self._window[0]

    # -- what is remembered ----------------------------------------------------------------------

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in _LOUD:
            self.remembered.append(f"console {message.type}: {message.text}")

    def _threw(self, error: WebError) -> None:
        self.remembered.append(f"error: {error.error}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self.site.url}/", "data:", "about:")):
            self.remembered.append(f"asked another host: {request.url}")

    def _answered(self, response: Response) -> None:
        if response.status >= _ARRIVED:
            self.remembered.append(f"{response.status}: {response.request.method} {response.url}")

    def _interrupted(self, dialog: Dialog) -> None:
        self.remembered.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def trouble(self) -> list[str]:
        """Everything that went wrong until now; it is forgotten afterwards."""
        found = self.remembered.copy()
        self.remembered.clear()
        return found

    # -- what is done ----------------------------------------------------------------------------

    def log_in(self, role: Role) -> None:
        """Come in by the link that truegreen printed; nobody looks at the page behind it."""
        if role not in self.site.sessions:
            answer = self.context.request.get(self.site.link(role))
            assert answer.ok, answer
            self.site.sessions[role] = self.context.cookies()
        self.context.add_cookies(self.site.sessions[role])

    def open(self, path: str) -> Page:
        """Look at a page."""
        self.page.goto(path, wait_until="load")
        return self.page

    def look(self, width: int, theme: Theme) -> None:
        """The same page in another window or light; nothing is loaded again."""
        self.turn(width, theme)
        self.page.evaluate(DRAWN)

    def turn(self, width: int, theme: Theme) -> None:
        """The same, before it is drawn."""
        if width != self._window[0]:
            self.page.set_viewport_size({"width": width, "height": WIDTHS[width]})
        if theme != self._window[1]:
            self.page.emulate_media(color_scheme=theme)
        self._window = width, theme

    def come_back(self) -> None:
        """Another test goes on with this window, as if it were new."""
        if self.page.url.startswith(f"{self.site.url}/"):
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        if self._window != _WINDOW:
            self.turn(*_WINDOW)
        self.remembered.clear()

    def until(self, holds: Callable[[], object], seconds: float = 5.0) -> None:
        """Wait until something is so; the browser goes on meanwhile."""
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, f"not within {seconds} s; went wrong: {self.remembered}"
            self.page.wait_for_timeout(_LOOK)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.context.close()
