"""The words are those of the design, spelled out here once more by hand."""

from __future__ import annotations

import itertools
import math
import string
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from truegreen import model
from truegreen.model import (
    CELLS,
    DETAILS,
    GREEN,
    HINDERED,
    MATRIX,
    NO_BLIND_RETRY,
    PALETTE,
    PARENT,
    RESCUABLE,
    RUNS,
    Cell,
    ExitDetail,
    ExitReason,
    Light,
    Outcome,
    RunStatus,
    Severity,
    TaskStatus,
    cell_of,
    is_reported,
)
from truegreen.record.ids import ID_LENGTH, make_id, new_id

WORDS = {
    "ExitReason": "done max_iterations blocked fatal_error user_cancelled unknown",
    "RunStatus": "starting running paused exited crashed capped stopped terminated lost missed",
    "TaskStatus": "queued running awaiting_approval pending_eval failed_pending_eval pending_qa"
    " needs_review blocked succeeded failed canceled terminated",
    "Outcome": "passed failed inconclusive unknown pending",
    "FindingOutcome": "passed failed inconclusive skipped",
    "AgentStatus": "pending in_progress completed error terminated",
    "Mode": "interactive assisted autonomous",
    "Role": "agent judge lead operator viewer system",
    "Level": "A0 A1 A2 A3 A4",
    "Light": "grey blue green amber red",
    "Move": "start declare fall_silent pause resume block retry fail review chain accept unblock"
    " reopen cancel terminate",
    "EventLevel": "info warn",
    "ClaimKind": "done failed blocked noop",
    "Disposition": "delivered queued_for_resume duplicate",
}
DETAIL_WORDS = {
    "done": "completed declared_failure noop",
    "max_iterations": "turn_cap time_cap idle_cap cost_cap token_cap context_cap reentry_cap",
    "blocked": "approval_checkpoint approval_expired permission_denied egress_denied"
    " connector_missing refused input_needed",
    "fatal_error": "agent_error launch_failed signaled oom process_lost zero_output provider_error"
    " rate_limited auth_invalid disk_full config_invalid supervisor_crashed"
    " supervisor_restarted",
    "user_cancelled": "stopped canceled terminated superseded",
    "unknown": "unclaimed unclassified",
}
LIGHTS = {
    "grey": "starting stopped terminated",
    "blue": "running paused",
    "green": "exited",
    "amber": "capped",
    "red": "crashed lost missed",
}
LIVE = "starting running paused"
COLOURS = {
    "queued": ("○", (150, 150, 160)),
    "running": ("◐", (60, 160, 220)),
    "awaiting_approval": ("⏸", (90, 120, 230)),
    "pending_eval": ("◔", (150, 220, 60)),
    "failed_pending_eval": ("◕", (240, 140, 40)),
    "pending_qa": ("◑", (60, 200, 190)),
    "needs_review": ("✋", (200, 90, 220)),
    "blocked": ("⛔", (170, 60, 140)),
    "succeeded": ("●", (40, 190, 90)),
    "failed": ("✗", (220, 50, 50)),
    "canceled": ("⊘", (120, 120, 120)),
    "terminated": ("▣", (40, 40, 48)),
}
TABLE = {
    "green": ("true green", "silent failure", "undecided", "unverified", "awaiting verdict"),
    "red": ("rescued", "failed", "undecided", "infrastructure outage", "rescue under way"),
    "amber": ("finished at the cap", "cap hit", "cap hit", "cap hit", "rescue under way"),
    "grey": ("kept", "stopped", "stopped", "stopped", "stopped"),
}
OUTCOMES = ("passed", "failed", "inconclusive", "unknown", "pending")
TO_INBOX = {
    "reported failure",
    *("silent failure", "undecided", "unverified", "infrastructure outage", "cap hit", "blocked"),
    "failed",
}
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
LEAST_DISTANCE = 40.0
ENDED = [status for status in RunStatus if RUNS[status].ended]


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.criterion("B01")
def test_the_six_exit_reasons_are_spelled_exactly():
    assert [reason.value for reason in ExitReason] == words(WORDS["ExitReason"])


@each_row("name", sorted(WORDS))
def test_enum_has_exactly_the_words_of_the_design(name: str):
    enum: type[StrEnum] = getattr(model, name)
    assert [member.value for member in enum] == words(WORDS[name])


@pytest.mark.criterion("B15")
def test_every_detail_stands_under_exactly_one_reason():
    assert {r.value: [d.value for d in ds] for r, ds in DETAILS.items()} == {
        reason: words(details) for reason, details in DETAIL_WORDS.items()
    }
    parents = [detail for details in DETAILS.values() for detail in details]
    assert sorted(parents) == sorted(ExitDetail)
    assert len(parents) == len(set(parents))
    assert all(detail in DETAILS[PARENT[detail]] for detail in ExitDetail)


def test_rescuable_hindered_and_not_blindly_retried_are_those_of_the_design():
    hindered = {"permission_denied", "egress_denied", "connector_missing", "input_needed"}
    assert set(HINDERED) == hindered
    assert set(RESCUABLE) == hindered | {"unclaimed", "agent_error"} | set(
        words(DETAIL_WORDS["max_iterations"])
    )
    assert set(NO_BLIND_RETRY) == {
        *("auth_invalid", "disk_full", "config_invalid", "launch_failed"),
        *("turn_cap", "time_cap", "cost_cap", "token_cap"),
    }


def test_every_run_status_has_the_light_of_the_design():
    shown = {light: {s.value for s in RunStatus if RUNS[s].light == light} for light in LIGHTS}
    assert shown == {light: set(words(statuses)) for light, statuses in LIGHTS.items()}
    assert {s.value for s in RunStatus if not RUNS[s].ended} == set(words(LIVE))
    assert all(look.meaning for look in RUNS.values())


# -- the matrix -----------------------------------------------------------------------------------


@pytest.mark.criterion("A21")
def test_every_pair_of_light_and_outcome_has_a_cell_with_name_light_and_route():
    lights = {RUNS[status].light for status in ENDED}
    assert set(MATRIX) == set(itertools.product(lights, Outcome))
    shown = {
        light: tuple(CELLS[MATRIX[Light(light), Outcome(o)]].title for o in OUTCOMES)
        for light in TABLE
    }
    assert shown == TABLE
    for cell in Cell:
        look = CELLS[cell]
        assert look.title
        assert look.light in Light
        assert look.sentence.endswith(".")
        assert (look.route is not None) == (look.title in TO_INBOX)
    assert set(CELLS) == {*MATRIX.values(), Cell.BLOCKED, Cell.REPORTED_FAILURE}


def test_only_an_agents_own_word_makes_a_silent_failure_a_reported_one():
    for status, reason, verdict in itertools.product(ENDED, ExitReason, Outcome):
        silent = cell_of(status, reason, verdict)
        reported = cell_of(status, reason, verdict, reported=True)
        lowered = silent is Cell.SILENT_FAILURE
        assert reported is (Cell.REPORTED_FAILURE if lowered else silent)
        assert silent is not Cell.REPORTED_FAILURE
    look = CELLS[Cell.REPORTED_FAILURE]
    assert (look.light, look.route) == (Light.RED, Severity.HIGH)
    assert Cell.REPORTED_FAILURE not in GREEN


@each_row(
    ("claim", "admission", "expected"),
    [
        ("failed", "", True),
        ("blocked", "", True),
        ("done", "", False),
        ("noop", "", False),
        (None, "", False),
        ("done", "tests still fail", True),
        (None, "tests still fail", True),
    ],
)
def test_a_failure_is_reported_by_a_claim_or_by_an_admission(
    claim: str | None, admission: str, expected: object
):
    assert is_reported(claim, admission) is expected


def test_only_the_passed_column_is_ever_drawn_green():
    for status, reason, verdict in itertools.product(ENDED, ExitReason, Outcome):
        green = CELLS[cell_of(status, reason, verdict)].light is Light.GREEN
        assert green == (verdict is Outcome.PASSED), (status, reason, verdict)


def test_green_run_with_red_verdict_is_a_silent_failure_and_critical():
    look = CELLS[cell_of(RunStatus.EXITED, ExitReason.DONE, Outcome.FAILED)]
    assert (look.title, look.light, look.route) == (
        "silent failure",
        Light.RED,
        Severity.CRITICAL,
    )


@each_row("status", [RunStatus.CRASHED, RunStatus.LOST, RunStatus.MISSED])
def test_red_run_without_a_verdict_is_an_infrastructure_outage_and_no_task_failure(
    status: RunStatus,
):
    cell = cell_of(status, ExitReason.FATAL_ERROR, Outcome.UNKNOWN)
    assert CELLS[cell].title == "infrastructure outage"
    assert cell not in {Cell.FAILED, Cell.SILENT_FAILURE}


def test_a_cap_is_a_third_light_and_its_cells_are_neither_red_nor_falsely_green():
    assert RUNS[RunStatus.CAPPED].light not in {Light.RED, Light.GREEN}
    for verdict in Outcome:
        cell = cell_of(RunStatus.CAPPED, ExitReason.MAX_ITERATIONS, verdict)
        allowed = {Light.GREEN} if verdict is Outcome.PASSED else {Light.AMBER}
        assert CELLS[cell].light in allowed
        assert cell in {Cell.CAP_HIT, Cell.FINISHED_AT_THE_CAP, Cell.RESCUE_UNDER_WAY}


@each_row("status", ENDED)
def test_blocked_run_stands_in_the_blocked_cell_whatever_its_light_unless_rescued(
    status: RunStatus,
):
    for verdict in (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.UNKNOWN):
        assert cell_of(status, ExitReason.BLOCKED, verdict) is Cell.BLOCKED
    rescued = cell_of(status, ExitReason.BLOCKED, Outcome.PASSED)
    assert rescued is MATRIX[RUNS[status].light, Outcome.PASSED]
    assert cell_of(status, ExitReason.BLOCKED, Outcome.PENDING) is not Cell.BLOCKED


@each_row("status", [s for s in RunStatus if not RUNS[s].ended and s != "starting"])
def test_a_run_that_has_not_ended_stands_in_no_cell(status: RunStatus):
    with pytest.raises(KeyError):
        cell_of(status, ExitReason.DONE, Outcome.PASSED)


# -- the palette ----------------------------------------------------------------------------------


def distance(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """How different two colours look ("redmean", a weighted distance in sRGB)."""
    mean = (one[0] + other[0]) / 2
    red, green, blue = (a - b for a, b in zip(one, other, strict=True))
    return math.sqrt((2 + mean / 256) * red**2 + 4 * green**2 + (2 + (255 - mean) / 256) * blue**2)


def luminance(rgb: tuple[int, int, int]) -> float:
    def linear(value: int) -> float:
        share = value / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, rgb)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@pytest.mark.criterion("F27")
def test_colours_and_glyphs_are_the_published_ones_and_far_enough_apart():
    assert {s.value: (look.glyph, look.rgb) for s, look in PALETTE.items()} == COLOURS
    close = {
        (a.value, b.value): round(distance(PALETTE[a].rgb, PALETTE[b].rgb))
        for a, b in itertools.combinations(TaskStatus, 2)
        if math.dist(PALETTE[a].rgb, PALETTE[b].rgb) < LEAST_DISTANCE
        or distance(PALETTE[a].rgb, PALETTE[b].rgb) < LEAST_DISTANCE
    }
    assert close == {}


def test_every_status_can_be_told_without_colour():
    assert len({look.glyph for look in PALETTE.values()}) == len(TaskStatus)
    assert all(look.meaning for look in PALETTE.values())
    assert all(look.glyph not in string.printable for look in PALETTE.values())


@each_row("status", list(TaskStatus))
def test_black_or_white_text_is_readable_on_every_colour(status: TaskStatus):
    colour = luminance(PALETTE[status].rgb)
    assert max(contrast(colour, 0.0), contrast(colour, 1.0)) >= 4.5


# -- ids ------------------------------------------------------------------------------------------

INSTANTS = st.integers(min_value=0, max_value=(1 << 45) * 1000 - 1)
NOISE = st.integers(min_value=0, max_value=(1 << 45) - 1)


def taken_apart(identifier: str) -> tuple[str, int, int]:
    kind, digits = identifier.split("_")
    number = 0
    for digit in digits:
        number = number * 32 + ALPHABET.index(digit)
    return kind, number >> 45, number & ((1 << 45) - 1)


@given(INSTANTS, NOISE)
def test_id_says_its_kind_its_millisecond_and_its_noise(at: int, noise: int):
    made = make_id("tsk", at, noise)
    assert taken_apart(made) == ("tsk", at // 1000, noise)
    assert len(made) == ID_LENGTH == 22


@given(INSTANTS, INSTANTS, NOISE, NOISE)
def test_ids_of_a_later_millisecond_sort_later(one: int, other: int, noise: int, more: int):
    first, second = sorted((one // 1000, other // 1000))
    early, late = make_id("run", first * 1000, noise), make_id("run", second * 1000 + 999, more)
    assert (early < late) == ((first, noise) < (second, more))


def test_a_hundred_thousand_ids_of_one_instant_are_unique():
    at = 1_790_000_000_000_000
    made = {new_id("evt", at) for _ in range(100_000)}
    assert len(made) == 100_000
    assert all(taken_apart(each)[:2] == ("evt", at // 1000) for each in itertools.islice(made, 99))
