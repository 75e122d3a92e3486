"""Which pages there are, and what a look at one finds wrong with it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

from tests.browser.furnishing import Furniture
from tests.browser.watching import DRAWN, Theme, Visitor
from truegreen.model import AgentStatus, TaskStatus

_CHECKS = Path(__file__).with_name("checks.js").read_text()
SHAPE = ("drawn", "fits", "apart", "whole", "large", "opens")
"""What depends on the width of the window."""
CONTRAST = ("contrasted",)
"""What depends on the theme."""
NAMES = ("named", "ordered", "tabled", "heard")

PLACES = {
    "overview": "/",
    "overview of a month": "/?span=30d",
    "tasks": "/tasks",
    "tasks by filters": "/tasks?status=failed&cell=silent_failure&age=24h",
    "tasks that are not there": "/tasks?search=nothing+is+called+so",
    "inbox": "/inbox",
    "agents": "/agents",
    "agents by status": "/agents?status=error",
    "routines": "/routines",
    "audit": "/audit",
    "settings": "/settings",
    "help": "/help",
}
TASKS = {f"task {status}": status for status in TaskStatus}
AGENTS = {f"agent {status}": status for status in AgentStatus}
ANSWERS = {
    "task proven, with an edited test": "proven",
    "task with weak evidence": "weak",
    "task unproven": "unproven",
    "task regression_only": "regression_only",
}
SILENT = "task with a story"
WOKEN = "agent completed"


def path_of(name: str, furniture: Furniture) -> str:
    """Where a page is."""
    if name == SILENT:
        return f"/tasks/{furniture.silent}"
    if name in TASKS:
        return f"/tasks/{furniture.tasks[TASKS[name]]}"
    if name in ANSWERS:
        return f"/tasks/{furniture.answers[ANSWERS[name]]}"
    if name in AGENTS:
        return f"/agents/{furniture.agents[AGENTS[name]]}"
    return PLACES[name]


def wrong_with(page: Page, *checks: str) -> list[str]:
    """What these checks find wrong with a page as it stands."""
    found: list[str] = page.evaluate(_CHECKS, {"asked": list(checks)})
    return found


_BOXES = """() => [...document.querySelectorAll("h1, h2, th, td, dd, a, button, summary, input")]
  .map((each) => each.getBoundingClientRect())
  .map(({x, y, width, height}) => [x, y + scrollY, width, height].map(Math.round).join())"""


_LOOK = f"async (given) => {{ await ({DRAWN})(); return [({_CHECKS})(given), ({_BOXES})()]; }}"


def looked_at(
    visitor: Visitor, width: int, theme: Theme, *checks: str
) -> tuple[list[str], list[str]]:
    """What is wrong in this window and light, and where everything stands, whatever its colour."""
    visitor.turn(width, theme)
    wrong, boxes = visitor.page.evaluate(_LOOK, {"asked": list(checks)})
    return wrong, boxes


def unfold(page: Page) -> None:
    """Open whatever can be read by opening it; what is for acting opens by itself."""
    page.evaluate(
        "() => document.querySelectorAll('details:not(.deed):not(.menu)')"
        ".forEach((each) => { each.open = true; })"
    )
