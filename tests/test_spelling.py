"""Other systems' names for a status are understood, and never given out."""

from __future__ import annotations

import msgspec
import pytest

from tests.table import each_row
from truegreen.model import TaskStatus
from truegreen.spelling import ALIASES

S = TaskStatus


@pytest.mark.criterion("N12")
def test_a_status_is_known_in_capitals_and_with_hyphens():
    for status in TaskStatus:
        for word in (status.value, status.value.upper(), status.value.replace("_", "-")):
            assert msgspec.convert(word, TaskStatus) is TaskStatus(word) is status


@pytest.mark.criterion("N12")
@each_row(
    ("word", "status"),
    [
        ("AWAITING_APPROVAL", S.AWAITING_APPROVAL),
        ("CANCELLED", S.CANCELED),
        ("open", S.QUEUED),
        ("ready", S.QUEUED),
        ("waiting", S.QUEUED),
        ("incomplete", S.QUEUED),
        ("claimed", S.RUNNING),
        ("in-progress", S.RUNNING),
        ("pending-validation", S.NEEDS_REVIEW),
        ("pending-eval", S.PENDING_EVAL),
        ("failed-pending-eval", S.FAILED_PENDING_EVAL),
        ("abandoned", S.CANCELED),
    ],
)
def test_what_others_call_a_status_is_understood(word: str, status: TaskStatus):
    assert msgspec.convert(word, TaskStatus) is TaskStatus(word) is status


def test_no_alias_is_a_word_of_the_house_and_none_leads_to_a_success():
    assert ALIASES.keys() & set(TaskStatus) == set()
    assert TaskStatus.SUCCEEDED not in ALIASES.values()
    assert set(ALIASES.values()) <= set(TaskStatus)


@each_row("word", ["", "done", "green", "succeded", "-", "pending", "None"])
def test_what_nobody_calls_a_status_is_refused(word: str):
    with pytest.raises(ValueError, match="is not a valid TaskStatus"):
        TaskStatus(word)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(word, TaskStatus)
