"""What is not promised is said, where people look for it."""

from __future__ import annotations

import re

import pytest

from tests.docs.markdown import DOCS, anchors, prose
from tests.table import each_row
from truegreen.contract import Isolation
from truegreen.record.lifecycle import FINAL

POOL = "permanent removal from the resumable pool"
TOLD = (
    "quickstart.md",
    "glossary.md",
    "concepts/fence.md",
    "concepts/terminate.md",
    "how-to/lead-and-workers.md",
    "manual/agents.md",
    "reference/statuses.md",
)
"""Wherever somebody may first meet terminate."""
MISSING = ("your network", "no filter for the network", "one kernel", "your own user", "root")
UNDONE = ("pushes", "credentials", "under way", "by mistake")


def said(page: str) -> str:
    return " ".join(prose((DOCS / page).read_text()).split())


def part(heading: str) -> str:
    text = (DOCS / "concepts" / "limits.md").read_text()
    return text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0].lower()


@pytest.mark.criterion("G12")
@each_row("page", TOLD)
def test_terminate_is_called_a_permanent_removal_from_the_resumable_pool(page: str):
    assert POOL in said(page)
    assert [str(status) for status in FINAL] == ["terminated"], "and nothing leads out of it"


@pytest.mark.criterion("P05")
def test_the_limits_say_which_isolation_is_missing():
    text = part("Isolation that is missing")
    assert [word for word in MISSING if word not in text] == []
    levels = [level for level in Isolation if level is not Isolation.AUTO]
    assert [level for level in levels if not re.search(rf"\b{level}\b", text)] == []


@pytest.mark.criterion("P05")
def test_the_limits_say_what_terminate_cannot_undo():
    text = part("What terminate cannot undo")
    assert [word for word in UNDONE if word not in text] == []


@pytest.mark.criterion("P05")
@each_row(
    ("page", "heading"),
    [
        ("concepts/terminate.md", "what-the-fence-cant-do"),
        ("concepts/fence.md", "what-it-cant-fence"),
        ("concepts/walk.md", "what-it-does-not-do"),
        ("concepts/zombies.md", "what-it-cant-see"),
        ("concepts/budgets.md", "what-it-does-not-promise"),
        ("manual/doors.md", "what-doors-cant-do"),
        ("manual/gateway.md", "what-it-cant-do"),
        ("manual/install.md", "what-they-cant-do"),
        ("manual/receipts.md", "what-a-receipt-does-not-prove"),
        ("manual/engines.md", "limits"),
        ("comparison.md", "when-not-to-use-truegreen"),
    ],
)
def test_a_part_that_guards_says_what_it_can_not_guard(page: str, heading: str):
    assert heading in anchors((DOCS / page).read_text())
