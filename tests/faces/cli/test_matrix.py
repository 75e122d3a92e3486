"""`matrix`: counts per cell, and the headline."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from tests.faces.conftest import ESCAPES, Furnished, Run
from tests.record.lives import OPERATOR, brought, declared, ended, finding, judged, started
from tests.table import each_row
from truegreen.contract import Budget
from truegreen.faces.figures import matrix_document
from truegreen.model import CELLS, Cell, ExitDetail, FindingOutcome, Outcome, RunStatus, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.reads import Count


def outages(ledger: Ledger, times: int) -> None:
    for _ in range(times):
        ledger.end_run(started(ledger, budget=Budget(attempts=1)), ended(ExitDetail.SIGNALED))


@pytest.fixture
def nights(furnished: Furnished) -> Furnished:
    """A furnished store after three nights of silent failures, an outage, a rescue, a cap."""
    ledger = open_ledger(furnished.url)
    for _ in range(3):
        ticket = started(ledger, budget=Budget(attempts=1))
        declared(ledger, ticket)
        judged(ledger, ticket, Outcome.FAILED)
    outages(ledger, 1)
    for detail in (ExitDetail.AGENT_ERROR, ExitDetail.TURN_CAP):
        ticket = started(ledger)
        ledger.end_run(ticket, ended(detail))
        judged(ledger, ticket, Outcome.PASSED)
    ticket = started(ledger)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.UNKNOWN)
    ledger.close()
    return furnished


EXPECTED = {
    Cell.TRUE_GREEN: 1,
    Cell.SILENT_FAILURE: 4,
    Cell.OUTAGE: 1,
    Cell.RESCUED: 1,
    Cell.FINISHED_AT_THE_CAP: 1,
    Cell.UNVERIFIED: 1,
    Cell.UNDECIDED: 1,
    Cell.BLOCKED: 1,
}


@pytest.mark.criterion("A03", "A04")
def test_every_cell_has_its_count_name_light_and_sentence(tg: Run, nights: Furnished):
    rows = {
        re.split("  +", line)[0][2:]: re.split("  +", line)[1:]
        for line in tg("matrix").out.splitlines()
        if "  " in line
    }
    for cell, look in CELLS.items():
        count, light, route, sentence = rows[look.title]
        assert (light, route, sentence) == (look.light, look.route or "-", look.sentence)
        if cell in EXPECTED:
            assert int(count) == EXPECTED[cell]
    assert rows["silent failure"][0] == "4"
    assert rows["infrastructure outage"][0] == "1"
    assert rows["failed"][0] == "0", "an outage is no failure of the task"


@pytest.mark.criterion("J17")
def test_the_headline_says_what_share_was_verified(tg: Run, nights: Furnished):
    ledger = open_ledger(nights.url)
    waiting = len(ledger.inbox())
    ledger.close()
    assert waiting > 3
    figures = tg("matrix", "--json").json()["figures"]
    assert figures.pop("median_seconds_to_verdict") > 0
    assert figures == {
        "checked_share": 0.5384,
        "checked": 7,
        "ended": 13,
        "silent_failures": 4,
        "rescued": 2,
        "unverified": 1,
        "inbox": waiting,
        "contradicted": 0,
    }
    first = tg("matrix").out.splitlines()[0]
    assert re.sub("[0-9.]+(ms|s) to", "…s to", first) == (
        f"✗ 4 silent failures · 53 % checked · 2 rescued · 1 unverified · {waiting} in the inbox"
        " · …s to a verdict (median)"
    )


def test_the_headline_counts_contradicted_claims_and_times_verdicts(tg: Run, nights: Furnished):
    ledger = open_ledger(nights.url)
    ticket = started(ledger)
    declared(ledger, ticket)
    said = {"statements": [{"text": "212 passed", "kind": "tests", "outcome": "contradicted"}]}
    untrue = {"check": "claim", "kind": "claim", "evidence": said, "binding": False}
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.FAILED, **untrue)])
    ledger.close()
    document = tg("matrix", "--json").json()
    assert document["figures"]["contradicted"] == 1
    assert " · 1 claim contradicted · " in tg("matrix").out.splitlines()[0]
    lately = tg("matrix", "--since", "1h", "--json").json()
    assert lately["figures"]["contradicted"] is None, "nobody counts statements by the hour"
    assert lately["figures"]["median_seconds_to_verdict"] > 0
    for answer, counted in ((document, "tasks"), (lately, "runs")):
        assert all(cell["count"] == cell[counted] for cell in answer["cells"])


@pytest.fixture
def doubtful(furnished: Furnished) -> Furnished:
    """A furnished store with work accepted unchecked, and green that was overturned."""
    ledger = open_ledger(furnished.url)
    for _ in range(2):
        task, _ = brought(ledger, TaskStatus.NEEDS_REVIEW)
        ledger.review(task.id, accept=True, actor=OPERATOR, reason="fine")
    task, _ = brought(ledger, TaskStatus.SUCCEEDED)
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="it was wrong")
    ledger.close()
    return furnished


@pytest.mark.criterion("L06", "L07")
@pytest.mark.parametrize("since", [(), ("--since", "1h")])
def test_what_was_accepted_unchecked_is_split_off_and_not_called_unverified(
    since: tuple[str, ...], tg: Run, doubtful: Furnished
):
    lines = tg("matrix", *since).out.splitlines()
    assert " rescued · 2 accepted unchecked · " in lines[0]
    (green,) = [line for line in lines if line.startswith("● true green")]
    assert re.split("  +", green)[1] == "3"
    assert re.split("  +", green)[-1].startswith("2 accepted unchecked · ")
    document = tg("matrix", *since, "--json").json()
    unchecked = {cell["cell"]: cell["unchecked"] for cell in document["cells"]}
    assert {cell: n for cell, n in unchecked.items() if n} == {Cell.TRUE_GREEN: 2}
    assert document["figures"]["unverified"] == 2, "as the badge says it"


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_the_grid_splits_them_too(columns: int, on_terminal: Run, doubtful: Furnished):
    lines = ESCAPES.sub("", on_terminal(columns, "matrix").out).splitlines()
    assert max(map(cell_len, lines)) <= columns
    top = next(n for n, line in enumerate(lines) if "╭" in line)
    first = [line.split("│")[1] for line in lines[top + 1 :] if line.count("│") > 1]
    assert " ".join(" ".join(first).split()).startswith("● 3 true green · 2 accepted unchecked")


def test_what_was_overturned_is_in_no_cell_and_the_reason_is_said(tg: Run, doubtful: Furnished):
    (left,) = [line for line in tg("matrix").out.splitlines() if "in no cell" in line]
    assert left.endswith(": not run yet, queued or running again, or overturned")


def test_the_document_counts_every_task_once(tg: Run, nights: Furnished):
    document = tg("matrix", "--json").json()
    assert (document["counted"], document["since"]) == ("tasks", None)
    assert document["total"] == sum(document["task_status"].values()) == 20
    counts = {entry["cell"]: entry["tasks"] for entry in document["cells"]}
    assert {cell: counts[cell] for cell in EXPECTED} == EXPECTED
    listed = tg("list", "--cell", "silent_failure", "--json").json()["tasks"]
    assert len(listed) == counts["silent_failure"] == document["silent_failures"]


def test_since_counts_the_runs_that_ended_in_that_time(tg: Run, nights: Furnished):
    document = tg("matrix", "--since", "7d", "--json").json()
    assert document["counted"] == "runs"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:00:00\.000000Z", document["since"])
    counts = {entry["cell"]: entry["runs"] for entry in document["cells"]}
    assert {cell: counts[cell] for cell in EXPECTED} == EXPECTED
    assert document["total"] == sum(counts.values()) == sum(document["exit_reason"].values())
    plain = tg("matrix", "--since", "7d").out.splitlines()
    assert re.fullmatch(r"\d+ runs that ended since \d{4}-\d\d-\d\d \d\d:00:00 \+0000", plain[1])


def test_a_repeated_failure_of_one_task_counts_as_runs_but_as_one_task(tg: Run, sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    first = started(ledger)
    declared(ledger, first)
    judged(ledger, first, Outcome.FAILED)
    again = started(ledger, first.task)
    declared(ledger, again)
    judged(ledger, again, Outcome.FAILED)
    ledger.close()
    words = ("matrix", "--store", sqlite_url, "--json")
    assert tg(*words).json()["silent_failures"] == 1
    assert tg(*words, "--since", "1h").json()["silent_failures"] == 2


def test_nothing_ended_is_no_share_at_all(tg: Run):
    assert tg("matrix", "--json").json()["figures"]["checked_share"] is None
    assert "no silent failures · nothing ended yet" in tg("matrix").out


def counted(cell: Cell, tasks: int, *, checked: bool) -> Count:
    return Count(TaskStatus.FAILED, cell, RunStatus.EXITED, tasks, checked)


def test_a_share_is_never_rounded_up_to_all():
    most = counted(Cell.TRUE_GREEN, 99_999, checked=True)
    one = counted(Cell.UNVERIFIED, 1, checked=False)
    assert matrix_document([most, one])["figures"]["checked_share"] == 0.9999
    assert matrix_document([most])["figures"]["checked_share"] == 1


@each_row("cell", Cell)
def test_everything_that_ended_counts_unless_it_is_under_check(cell: Cell):
    """An outage, a cap, a block and a stop are work that nobody checked, too."""
    under_check = cell in (Cell.AWAITING_VERDICT, Cell.RESCUE_UNDER_WAY)
    found = matrix_document([counted(cell, 3, checked=False)])["figures"]
    assert (found["checked"], found["ended"]) == (0, 0 if under_check else 3)
    assert found["checked_share"] == (None if under_check else 0)


def test_the_grid_says_which_side_is_which(on_terminal: Run, furnished: Furnished):
    lines = ESCAPES.sub("", on_terminal(100, "matrix").out).splitlines()
    top = next(n for n, line in enumerate(lines) if "╭" in line)
    assert lines[top - 2].split() == ["run", "light", "↓", "verdict", "→"]


@pytest.mark.parametrize("since", ["", "soon", "-1d", "0", "7 days"])
def test_a_time_that_is_none_is_refused(since: str, tg: Run):
    answer = tg("matrix", "--since", since)
    assert (answer.status, answer.out) == (2, "")


# --- on a terminal


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_the_grid_fits_and_each_cell_stands_in_it_once(
    columns: int, on_terminal: Run, nights: Furnished
):
    answer = on_terminal(columns, "matrix")
    lines = ESCAPES.sub("", answer.out).splitlines()
    assert max(map(cell_len, lines)) <= columns
    top = next(n for n, line in enumerate(lines) if "╭" in line)
    bottom = next(n for n, line in enumerate(lines) if "╰" in line)
    grid = "\n".join(lines[top:bottom])
    figures_shown = re.findall(r"│ (?:[●✗◆○◐] )?(\d+) ", grid)
    assert len(figures_shown) == len(Cell)
    assert sum(map(int, figures_shown)) == sum(
        entry["tasks"] for entry in _cells(on_terminal(columns, "matrix", "--json").json())
    )
    assert re.search(r"✗ 4 +│", grid)
    assert lines[top - 1].split() == list(Outcome)


def _cells(document: dict[str, list[dict[str, int]]]) -> list[dict[str, int]]:
    return document["cells"]


def test_only_the_passed_column_is_green(on_terminal: Run, furnished: Furnished):
    out = on_terminal(120, "matrix").out
    green = [line for line in out.splitlines() if "38;2;40;190;90" in line and "│" in line]
    assert green
    for line in green:
        for found in re.finditer(r"\x1b\[[0-9;]*38;2;40;190;90m([^\x1b]*)", line):
            before = ESCAPES.sub("", line[: found.start()]).count("│")
            assert before <= 1, "the label of the row, or its first column"


def test_a_narrow_terminal_gets_the_list_alone(on_terminal: Run, nights: Furnished):
    lines = ESCAPES.sub("", on_terminal(70, "matrix").out).splitlines()
    assert not any("╭" in line for line in lines)
    assert max(map(cell_len, lines)) <= 80
    assert any("silent failure" in line and " 4 " in line for line in lines)
