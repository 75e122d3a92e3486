"""`truegreen top`: what it shows, what its keys do, and what it says when nothing can be read."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import DataTable

from tests.faces.hostile import HOSTILE
from tests.faces.top.conftest import Play, Stage
from tests.proofs import weak
from tests.record.lives import OPERATOR, brought, declared, ended, judged, opened, started
from truegreen.app import operator
from truegreen.contract import Budget
from truegreen.errors import StoreUnreachable
from truegreen.facts import Claim, Statement
from truegreen.model import ClaimKind, ExitDetail, InboxState, Outcome, TaskStatus
from truegreen.record.ledger import Ledger

S = TaskStatus
ONCE = Budget(attempts=1)


def silent(ledger: Ledger, title: str = "nightly") -> str:
    ticket = started(ledger, budget=ONCE, title=title)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    return ticket.task


def crashed(ledger: Ledger, title: str, detail: ExitDetail = ExitDetail.OOM) -> str:
    ticket = started(ledger, budget=ONCE, title=title)
    ledger.end_run(ticket, ended(detail, message="so"))
    return ticket.task


def states(ledger: Ledger) -> dict[str, str]:
    return {each.item.title: each.item.state for each in ledger.inbox_all()}


# --- what it shows


@pytest.mark.criterion("L19", "L02", "L01")
def test_silent_failures_come_first_everywhere(play: Play, book: Ledger) -> None:
    crashed(book, "an outage")
    for _ in range(3):
        silent(book)

    async def script(stage: Stage) -> None:
        assert stage.headline.startswith("✗ 3 silent failures · ")
        assert "✗ 3 silent failure" in stage.matrix
        first, second = stage.rows("inbox")
        assert first[:3] == ["✗ critical", "silent failure: gate tests", "3 times"]
        assert second[:3] == ["✗ high", "outage: oom", "once"]
        assert stage.rows("tasks")[0][:4] == [
            "● exited",
            "✗ failed",
            "✗ silent failure",
            "nightly",
        ]

    play(script)


def test_a_list_of_nothing_leaves_its_room_to_the_others(play: Play, book: Ledger) -> None:
    def height(stage: Stage, name: str) -> int:
        return stage.app.query_one(f"#{name}").outer_size.height

    for number in range(9):
        crashed(book, f"outage {number}")

    async def script(stage: Stage) -> None:
        await stage.until(lambda: height(stage, "live") == 3)
        assert height(stage, "tasks") > 6
        book.heartbeat(started(book, title="under way"), idle_seconds=1)
        await stage.until(lambda: height(stage, "live") > 3)

    play(script, size=(80, 32))


def test_a_cause_is_told_without_the_folder_that_it_happened_in(play: Play, book: Ledger) -> None:
    ticket = started(book, title="nightly", cwd="/somewhere/far/away", budget=Budget(attempts=1))
    declared(book, ticket)
    judged(book, ticket, Outcome.FAILED)
    assert "/somewhere" in book.inbox()[0].item.topic

    async def script(stage: Stage) -> None:
        assert stage.rows("inbox")[0][1] == "silent failure: gate tests"

    play(script)


@pytest.mark.criterion("L19")
def test_a_terminal_of_thirty_lines_shows_live_runs_and_tasks_under_the_inbox(
    play: Play, book: Ledger
) -> None:
    for number in range(9):
        crashed(book, f"outage {number}")
    book.heartbeat(started(book, title="under way"), idle_seconds=1)

    async def script(stage: Stage) -> None:
        await stage.until(
            lambda: "under way" in stage.app.export_screenshot().replace("&#160;", " ")
        )
        heights = [
            stage.app.screen_stack[0].query_one(f"#{name}", DataTable).content_size.height
            for name in ("inbox", "live", "tasks")
        ]
        assert all(height >= 3 for height in heights), heights
        assert heights[0] > heights[1]

    play(script, size=(100, 30))


@pytest.mark.parametrize(("lines", "tall"), [(27, False), (28, True)])
def test_the_layout_follows_the_size_when_a_resize_event_was_missed(
    play: Play, lines: int, tall: bool
) -> None:
    async def script(stage: Stage) -> None:
        screen = stage.app.screen_stack[0]
        screen.set_class(not tall, "-tall")
        await stage.until(lambda: screen.has_class("-tall") is tall)
        assert stage.shows("tasks") is tall

    play(script, size=(100, lines))


@pytest.mark.criterion("L19")
def test_the_headline_counts_what_there_is_to_look_at(play: Play, book: Ledger) -> None:
    silent(book)
    for number in range(3):
        crashed(book, f"outage {number}")

    async def script(stage: Stage) -> None:
        assert len(stage.rows("inbox")) == 2
        assert stage.headline.endswith("inbox 2 (4 items)")

    play(script, size=(120, 30))


def doubtful(ledger: Ledger) -> None:
    """One task that a person accepted unchecked, and one whose green was overturned."""
    task, _ = brought(ledger, S.NEEDS_REVIEW, title="unchecked work")
    ledger.review(task.id, accept=True, actor=OPERATOR, reason="fine")
    task, _ = brought(ledger, S.SUCCEEDED, title="overturned work")
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="it was wrong")
    brought(ledger, S.SUCCEEDED, title="checked work")


@pytest.mark.criterion("L06", "L19")
@pytest.mark.parametrize("width", [80, 160])
def test_no_doubtful_green_is_plain(play: Play, book: Ledger, width: int) -> None:
    doubtful(book)

    async def script(stage: Stage) -> None:
        assert " rescued · 1 accepted unchecked · inbox " in stage.headline
        assert "● 2 (1 unchecked) " in stage.matrix
        cells = {row[3]: row[2] for row in stage.rows("tasks")}
        assert cells == {
            "unchecked work": "● true green unverified",
            "overturned work": "- falsified",
            "checked work": "● true green",
        }

    play(script, size=(width, 30))


@pytest.mark.criterion("L18", "L19")
def test_live_runs_tell_their_activity_the_stuck_ones_first(play: Play, book: Ledger) -> None:
    for title, idle in (("busy", 1), ("hangs", 10_000), ("slow", 200)):
        book.heartbeat(started(book, title=title), idle_seconds=idle)

    async def script(stage: Stage) -> None:
        rows = stage.rows("live")
        assert [row[-1] for row in rows] == ["hangs", "slow", "busy"]
        assert [row[0].split(",")[0] for row in rows] == ["■ stuck", "▷ slow", "▶ active"]

    play(script)


@pytest.mark.criterion("L08", "L19")
def test_news_is_shown_without_a_key(play: Play, book: Ledger) -> None:
    async def script(stage: Stage) -> None:
        assert stage.headline.startswith("no silent failures")
        silent(book)
        await stage.until(lambda: stage.headline.startswith("✗ 1 silent failure ·"))
        assert len(stage.rows("inbox")) == 1

    play(script)


@pytest.mark.criterion("L08", "L19")
def test_what_can_not_be_read_any_more_is_called_stale_and_stays(
    play: Play, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent(book)

    def out_of_reach(*_: object) -> int:
        raise StoreUnreachable("gone")

    async def script(stage: Stage) -> None:
        before = time.strftime("%H:%M")
        with monkeypatch.context() as patch:
            patch.setattr(type(book), "head", out_of_reach)
            await stage.until(lambda: "stale since" in stage.headline)
            assert before in stage.headline or time.strftime("%H:%M") in stage.headline
            assert "1 silent failure" in stage.headline
            assert len(stage.rows("inbox")) == 1
        await stage.until(lambda: "stale" not in stage.headline)

    play(script)


@pytest.mark.criterion("L19")
@pytest.mark.parametrize(
    ("size", "seen"),
    [
        ((80, 24), ["inbox"]),
        ((100, 30), ["inbox", "live", "tasks"]),
        ((200, 60), ["inbox", "live", "tasks"]),
        ((40, 10), ["inbox"]),
    ],
)
def test_every_size_shows_the_headline_and_at_least_one_list(
    play: Play, book: Ledger, size: tuple[int, int], seen: list[str]
) -> None:
    silent(book)

    async def script(stage: Stage) -> None:
        assert [name for name in ("inbox", "live", "tasks") if stage.shows(name)] == seen
        table = stage.app.screen_stack[0].query_one("#inbox", DataTable)
        others = "" if len(seen) > 1 else "2 at work (0) · 3 tasks (1)"
        assert table.border_subtitle == others, "what is not seen is counted"
        lines = stage.matrix.splitlines()
        assert len(lines) == 6
        if size[0] >= 80:
            assert "✗ 1 silent failure" in lines[1]
            assert all(len(line) <= size[0] - 2 for line in lines)
        picture = stage.app.export_screenshot()
        assert picture.startswith("<svg")
        assert "silent" in picture

    play(script, size=size)


@pytest.mark.criterion("L05")
def test_without_colour_nothing_is_lost(
    play: Play, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    silent(book)

    async def script(stage: Stage) -> None:
        assert stage.app.no_color
        assert stage.rows("inbox")[0][0] == "✗ critical"

    play(script)


@pytest.mark.criterion("L07")
def test_only_what_passed_is_drawn_green(play: Play, book: Ledger) -> None:
    from truegreen.faces.top.panels import matrix  # noqa: PLC0415 - next to its use
    from truegreen.faces.top.picture import look  # noqa: PLC0415 - as above
    from truegreen.model import CELLS, Cell, Light  # noqa: PLC0415 - as above

    del play
    picture = look(book)
    for entry in picture.matrix["cells"]:
        entry["tasks"] = 7
    text = matrix(picture, 198)
    green = {
        text.plain[span.start : span.end].strip()
        for span in text.spans
        if "rgb(40,190,90)" in str(span.style)
    }
    passed = {f"● 7 {CELLS[cell].title}" for cell in Cell if CELLS[cell].light is Light.GREEN}
    assert green == {"● green", *passed}
    assert {word.removeprefix("● 7 ") for word in passed} <= {
        "true green",
        "rescued",
        "finished at the cap",
        "kept",
    }


@pytest.mark.criterion("L20")
def test_many_tasks_come_in_pages(play: Play, book: Ledger) -> None:
    for number in range(130):
        opened(book, title=f"task {number:03}")

    async def script(stage: Stage) -> None:
        await stage.press("3")
        assert [row[3] for row in stage.rows("tasks")][::99] == ["task 129", "task 030"]
        await stage.press("n")
        await stage.until(lambda: len(stage.rows("tasks")) == 30)
        assert stage.rows("tasks")[-1][3] == "task 000"
        await stage.press("n")
        await stage.press("p")
        await stage.until(lambda: stage.rows("tasks")[0][3] == "task 129")

    play(script)


@pytest.mark.criterion("L14", "L19")
def test_a_filter_leaves_only_what_was_asked_for(play: Play, book: Ledger) -> None:
    opened(book, title="parser of dates")
    opened(book, title="[/] brackets")
    silent(book, "parser of mails")

    async def script(stage: Stage) -> None:
        await stage.press("slash")
        await stage.answer("status=failed parser")
        await stage.until(lambda: [row[3] for row in stage.rows("tasks")] == ["parser of mails"])
        await stage.press("slash")
        await stage.answer("colour=red")
        await stage.until(lambda: any("no filter is called 'colour'" in it for it in stage.said))
        await stage.answer("[/]")
        await stage.until(lambda: len(stage.rows("tasks")) != 1 or "[/]" in stage.app._wish.typed)
        assert stage.app.export_screenshot()

    play(script)


# --- what keys do


CAUSES = {
    ExitDetail.OOM: ("a", None, InboxState.ACKED, "yours (2 items)"),
    ExitDetail.DISK_FULL: ("s", "2h", InboxState.SNOOZED, "put off until"),
    ExitDetail.SIGNALED: ("r", "a new host", InboxState.RESOLVED, "resolved: a new host (2 items)"),
}


@pytest.mark.criterion("L13", "L19")
def test_a_key_deals_with_a_whole_cause_and_no_other(play: Play, book: Ledger) -> None:
    for detail in CAUSES:
        for number in range(2):
            crashed(book, f"{detail} {number}", detail=detail)
    silent(book, "another")

    async def script(stage: Stage) -> None:
        for detail, (key, answer, _, said) in CAUSES.items():
            stage.choose("inbox", f"outage: {detail}")
            await stage.press(key)
            if answer is not None:
                await stage.until(lambda: len(stage.app.screen_stack) == 2)
                await stage.answer(answer)
            await stage.until(lambda said=said: any(said in words for words in stage.said))  # type: ignore[misc]

    play(script)
    wanted = {f"{detail} {n}": state for detail, (_, _, state, _) in CAUSES.items() for n in (0, 1)}
    assert states(book) == {**wanted, "another": InboxState.OPEN}


MOVES: dict[str, tuple[TaskStatus, str, str, TaskStatus]] = {
    "approved": (S.AWAITING_APPROVAL, "A", "", S.RUNNING),
    "refused": (S.AWAITING_APPROVAL, "R", "not there", S.BLOCKED),
    "accepted": (S.NEEDS_REVIEW, "A", "read it", S.SUCCEEDED),
    "rejected": (S.NEEDS_REVIEW, "R", "wrong", S.QUEUED),
    "unblocked": (S.BLOCKED, "u", "", S.QUEUED),
    "retried": (S.FAILED, "y", "again", S.QUEUED),
}


@pytest.mark.criterion("L19", "O03")
def test_a_key_moves_the_task_under_the_cursor(play: Play, book: Ledger) -> None:
    tasks = {title: brought(book, move[0], title=title)[0].id for title, move in MOVES.items()}

    async def script(stage: Stage) -> None:
        await stage.press("3")
        for count, (title, (_, key, answer, _)) in enumerate(MOVES.items(), 1):
            stage.choose("tasks", title)
            await stage.press(key)
            await stage.until(lambda: len(stage.app.screen_stack) == 2)
            await stage.answer(answer)
            await stage.until(lambda count=count: len(stage.said) == count)  # type: ignore[misc]

    play(script)
    assert {title: book.task(task).status for title, task in tasks.items()} == {
        title: move[3] for title, move in MOVES.items()
    }
    me = str(operator())
    for task in tasks.values():
        assert me in {told.event.actor for told in book.events(task)}


def test_a_stop_is_asked_for(play: Play, book: Ledger) -> None:
    ticket = started(book)

    async def script(stage: Stage) -> None:
        await stage.press("2", "x")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        await stage.press("enter")
        await stage.until(lambda: any("asked to stop" in words for words in stage.said))

    play(script)
    assert book.standing(ticket).stop_asked


@pytest.mark.criterion("L19")
@pytest.mark.parametrize("right", [True, False])
def test_terminating_takes_the_end_of_the_id(play: Play, book: Ledger, right: bool) -> None:
    task = opened(book).id

    async def script(stage: Stage) -> None:
        await stage.press("3", "T")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        assert f"type {task[-6:]}" in stage.text("#question")
        await stage.press(*(task[-6:] if right else task[-7:-1]), "enter")
        await stage.until(lambda: stage.said)
        assert ("nothing was terminated" in stage.said[0]) != right

    play(script)
    assert (book.task(task).status is S.TERMINATED) == right


def test_a_question_can_be_left_and_an_empty_answer_is_none(play: Play, book: Ledger) -> None:
    crashed(book, "one")

    async def script(stage: Stage) -> None:
        await stage.press("r")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        await stage.press("enter")
        assert stage.text("#hint") == "an outcome is needed"
        await stage.press("escape")
        await stage.until(lambda: len(stage.app.screen_stack) == 1)
        assert stage.said == []

    play(script)
    assert states(book) == {"one": InboxState.OPEN}


def test_what_the_record_refuses_is_said_and_nothing_happens(play: Play, book: Ledger) -> None:
    task, _ = brought(book, S.SUCCEEDED)

    async def script(stage: Stage) -> None:
        await stage.press("3", "a")
        await stage.until(lambda: any("choose something in the inbox" in it for it in stage.said))
        await stage.press("x")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        await stage.press("enter")
        await stage.until(lambda: any("is not running" in it for it in stage.said))

    play(script)
    assert book.task(task.id).status is S.SUCCEEDED


def test_a_key_without_anything_chosen_does_nothing(play: Play) -> None:
    async def script(stage: Stage) -> None:
        await stage.press("a")
        await stage.until(lambda: stage.said == ["nothing is chosen"])

    play(script)


@pytest.mark.criterion("O01")
def test_nobody_inside_a_run_acts_by_a_key(
    play: Play, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashed(book, "one")
    monkeypatch.setenv("TRUEGREEN_RUN", "run_1")

    async def script(stage: Stage) -> None:
        await stage.press("a")
        await stage.until(lambda: any("this is inside run_1" in words for words in stage.said))

    play(script)
    assert states(book) == {"one": InboxState.OPEN}


def test_an_approval_holds_for_the_tree_that_was_looked_at(play: Play, book: Ledger) -> None:
    task, _ = brought(book, S.NEEDS_REVIEW)

    async def script(stage: Stage) -> None:
        await stage.press("3", "A")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        book.retry(task.id, actor=OPERATOR, reason="meanwhile")
        ticket = started(book, task.id)
        book.end_run(ticket, ended(digest="tree:other"), claim=Claim(kind=ClaimKind.DONE))
        judged_elsewhere(book, ticket)
        await stage.answer("fine")
        await stage.until(lambda: stage.said)

    def judged_elsewhere(ledger: Ledger, ticket: Any) -> None:
        from tests.record.lives import verdict  # noqa: PLC0415 - one use

        said = verdict(ledger, ticket, Outcome.INCONCLUSIVE, digest="tree:other")
        ledger.judge(ticket, said)

    play(script)
    assert book.task(task.id).status is S.NEEDS_REVIEW


# --- one task


@pytest.mark.criterion("L09", "L19")
def test_enter_opens_a_task_with_both_chips_claim_and_evidence(
    play: Play, book: Ledger, tmp_path: Path
) -> None:
    log = tmp_path / "stdout.log"
    log.write_bytes(b"first\n" * 300 + b"the \x1b[31mlast\x1b[0m line\n")
    ticket = started(book, budget=ONCE, title="nightly")
    said = Claim(
        kind=ClaimKind.DONE,
        reason="all tests pass",
        statements=(Statement(text="212 tests passed", kind="tests"),),
    )
    book.end_run(ticket, ended(facts={"log": str(log)}), claim=said)
    judged(book, ticket, Outcome.FAILED)

    async def script(stage: Stage) -> None:
        await stage.press("enter")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        await stage.until(lambda: "findings" in stage.text("#portrait"))
        told = stage.text("#portrait")
        for words in (
            "run  ● exited  done · completed",
            "task ✗ failed  A2 · gate tests: failed (silent failure: the agent said «all tests",
            "the agent said done: all tests pass",
            "«212 tests passed»",
            "✗ failed  tests (after, A3)",
            f"truegreen retry {ticket.task}",
        ):
            assert words in told
        assert stage.text("#output").rstrip().endswith("the last line")
        await stage.press("y")
        await stage.until(lambda: len(stage.app.screen_stack) == 3)
        await stage.answer("again")
        await stage.until(lambda: "queued" in stage.text("#portrait"))
        await stage.press("escape")
        await stage.until(lambda: len(stage.app.screen_stack) == 1)

    play(script)


def test_a_task_has_the_three_answers_in_one_line(play: Play, book: Ledger) -> None:
    weak(book)

    async def script(stage: Stage) -> None:
        await stage.press("enter")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        await stage.until(lambda: "findings" in stage.text("#portrait"))
        lines = [line.rstrip() for line in stage.text("#portrait").splitlines()]
        assert (
            "why   checks passed · level A1, at least A2 is required: not enough"
            " · proof shown: tests: failed before, passes now"
        ) in lines

    play(script)


def test_the_help_names_every_key(play: Play) -> None:
    async def script(stage: Stage) -> None:
        await stage.press("question_mark")
        await stage.until(lambda: len(stage.app.screen_stack) == 2)
        told = stage.text("#keys")
        keys = [binding.key for binding in stage.app.BINDINGS]  # type: ignore[union-attr]
        names = {"slash": "/", "question_mark": "?", "tab": "Tab", "q,ctrl+c": "q"}
        for key in keys:
            assert names.get(key, key) in told or key == "shift+tab"
        await stage.press("escape")

    play(script)


# --- hostile


@pytest.mark.criterion("L16", "L19")
def test_texts_of_agents_only_show(play: Play, book: Ledger, tmp_path: Path) -> None:
    texts = [*HOSTILE[::3], "[bold]x[/bold]", "[/]", "[@click=app.quit]x[/]", "[link=file:///]x"]
    log = tmp_path / "log"
    log.write_bytes("\n".join(texts).encode("utf-8", "surrogatepass"))
    for number, text in enumerate(texts):
        title = text if text.isprintable() and len(text) < 150 else "task"
        told = text.replace("\x00", "").encode("utf-8", "replace").decode()[:900]
        ticket = started(book, budget=ONCE, title=f"{title} {number}", rescue=())
        claim = Claim(kind=ClaimKind.BLOCKED, reason=told)
        message = ended(ExitDetail.INPUT_NEEDED, message=told, facts={"log": str(log)})
        book.end_run(ticket, message, claim=claim)

    async def script(stage: Stage) -> None:
        cells = [cell for name in ("inbox", "tasks") for row in stage.rows(name) for cell in row]
        assert len(stage.rows("inbox")) > len(texts) / 2
        assert all(cell.isprintable() for cell in cells)
        assert "[bold]x[/bold]" in "\n".join(cells)
        await stage.press("3", "home", "enter")
        await stage.until(lambda: "findings" in stage.text("#portrait"))
        shown = stage.text("#portrait") + stage.text("#output")
        assert all(line.isprintable() for line in shown.splitlines())
        await stage.press("u")
        await stage.until(lambda: len(stage.app.screen_stack) == 3)
        await stage.press("enter")
        await stage.until(lambda: stage.said)
        assert stage.app.is_running

    play(script, size=(120, 40))


def test_what_stands_in_the_place_of_a_log_is_not_read(tmp_path: Path) -> None:
    from truegreen.faces.top.tail import tail  # noqa: PLC0415 - next to its use

    (tmp_path / "log").write_text("a\nb\nc\n")
    (tmp_path / "link").symlink_to(tmp_path / "log")
    os.mkfifo(tmp_path / "fifo")
    assert tail(str(tmp_path / "log"), 2) == ["b", "c"]
    for name in ("link", "fifo", "none", "."):
        assert tail(str(tmp_path / name)) == []


# --- leaving


def test_a_defect_is_told_outside_and_not_drawn_over(
    play: Play, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError

    async def script(stage: Stage) -> None:
        monkeypatch.setattr(type(book), "head", broken)
        await stage.until(lambda: stage.app.failure)
        assert isinstance(stage.app.failure, ZeroDivisionError)
        assert stage.app.return_code == 1

    play(script)


def test_leaving_in_the_middle_of_a_look_is_quiet(
    play: Play, book: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent(book)
    real = type(book).head

    def slow(ledger: Ledger) -> int:
        time.sleep(0.3)
        return real(ledger)

    async def script(stage: Stage) -> None:
        monkeypatch.setattr(type(book), "head", slow)
        silent(book, "news")
        stage.app._look_again()
        await stage.press("q")

    play(script)
