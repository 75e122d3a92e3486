"""Somebody who has read nothing finds the night that failed in silence, and why."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.faces.test_demo import FEW_NIGHTS

CLICKS = 2
ONE_NIGHT = FEW_NIGHTS.replace("(7, 3)", "(3,)")
NIGHT = "night of"
REDDEST = """(words) => {
  const red = (element) => {
    for (let each = element; each && !each.matches("main"); each = each.parentElement) {
      const look = getComputedStyle(each);
      for (const text of [look.color, look.backgroundColor, look.borderLeftColor]) {
        const [red, green, blue] = (text.match(/[\\d.]+/g) ?? []).map(Number);
        if (red > 1.05 * green && red > 1.05 * blue) return true;
      }
    }
    return false;
  };
  const seen = [...document.querySelectorAll("main a[href]")].filter((each) => {
    const {width, top} = each.getBoundingClientRect();
    return each.checkVisibility() && width && top < innerHeight && red(each);
  });
  return (seen.find((each) => each.textContent.includes(words)) ?? seen[0])?.getAttribute("href");
}"""
"""What somebody clicks who looks for something red on the first screen, best of all for a night."""


@pytest.fixture
def demo(tmp_path: Path, shared_tools: Path, small_python: Path) -> Iterator[dict[str, Any]]:
    """The demo as it is served, with the night that matters alone."""
    theirs = {"TMPDIR": str(tmp_path), "TZ": "UTC", "SHARED_TOOLS": str(shared_tools)}
    with subprocess.Popen(
        [small_python, "-c", ONE_NIGHT, "demo", "--serve", "--json"],
        stdout=subprocess.PIPE,
        env={**os.environ, **theirs},
        cwd=tmp_path,
    ) as served:
        assert served.stdout
        try:
            document = json.loads(served.stdout.readline())
            assert "error" not in document, document
            yield document
        finally:
            served.send_signal(signal.SIGINT)
            served.wait(20)


def found_by_clicking(page: Page, task: str) -> int:
    """How many clicks lead from here to a task, along what is red."""
    for clicks in range(CLICKS + 1):
        if page.url.endswith(f"/tasks/{task}"):
            return clicks
        where = page.evaluate(REDDEST, NIGHT)
        assert where, "nothing red is on the first screen"
        page.locator(f"main a[href='{where}']:visible").first.click()
        page.wait_for_load_state()
    raise AssertionError(f"not found within {CLICKS} clicks; got to {page.url}")


def on_the_first_screen(page: Page, words: str) -> bool:
    where = page.locator("main").get_by_text(words).first.bounding_box()
    size = page.viewport_size
    return bool(where and size and where["y"] < size["height"])


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.criterion("L02")
def test_a_newcomer_finds_the_night_that_failed_silently_and_why(
    demo: dict[str, Any], chromium: Browser
):
    (silent,) = [night for night in demo["nights"] if night["got"]["cell"] == "silent_failure"]
    with chromium.new_context(base_url=demo["url"]) as context:
        page = context.new_page()
        page.goto(demo["login"])
        page.wait_for_url(f"{demo['url']}/")
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 844})
            page.goto("/")
            assert on_the_first_screen(page, "green run over undone work")
            assert on_the_first_screen(page, silent["title"]), "the night is named at first sight"
            assert found_by_clicking(page, silent["task"]) <= CLICKS
            assert on_the_first_screen(page, "silent failure")
            shown = page.inner_text("main")
            assert "212 tests passed" in shown, "what it said"
            assert "1 failed" in shown, "what was found"
