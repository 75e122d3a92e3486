"""Terminate around the record: other machines, closed folders, and the kill switch half-way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.lives import BASE, OPERATOR, S, brought, contract, judged, opened
from tests.record.lives import ended as exited
from tests.stage import staged
from truegreen.doors import event, marks
from truegreen.errors import Terminated
from truegreen.facts import AgentKind, Child, Processes, Ticket
from truegreen.model import AgentStatus, Outcome
from truegreen.record.ledger import Ledger, Start
from truegreen.record.ledger.fencing import Whom
from truegreen.record.ledger.wakes import PASSING
from truegreen.supervisor import kill_switch, termination
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.holder import holder_name, host_name
from truegreen.supervisor.kill_switch import terminate_all
from truegreen.supervisor.roster import MOST_NAMES, Roll
from truegreen.supervisor.second_look import look_again
from truegreen.supervisor.termination import terminate
from truegreen.supervisor.watch import Watch
from truegreen.work import shim, silencing
from truegreen.work.agents import Live
from truegreen.work.agents.sealing import KEPT_FACT, Kept, kept_facts
from truegreen.work.tree import VARIABLE, Identity, me

ROOT = Path(__file__).parents[2]
FAR = "another-host/4026531836/6a1f/4711/99"
SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(termination, "ELSEWHERE_SECONDS", 0.3)


def held_by(ledger: Ledger, holder: str, *, session: str | None = None, **more: object) -> Ticket:
    """A live run of some supervisor."""
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session=session).id
    start = Start(holder, base_digest=BASE, agent=agent, facts=more, isolation="jail")
    return ledger.start(ledger.open(contract(), actor=OPERATOR).id, start)


def ended(ledger: Ledger, ticket: Ticket, state: Path) -> termination.Ended:
    whom = Whom("task", ticket.task)
    return terminate(ledger, whom, state_dir=str(state), actor=OPERATOR, reason="enough")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process of nobody's run."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def written(process: Identity) -> dict[str, object]:
    return process._asdict()


# -- other machines --------------------------------------------------------------------------------


@pytest.mark.criterion("G15", "P08")
def test_a_run_on_another_machine_is_named_and_not_called_dead(
    ledger: Ledger, tmp_path: Path
) -> None:
    ticket = held_by(ledger, FAR)
    for _ in range(2):
        answer = ended(ledger, ticket, tmp_path)
        assert answer.complete is False
        (run,) = answer.elsewhere
        assert (run.run, run.holder, run.ended) == (ticket.run, FAR, False)
    assert ledger.task(ticket.task).status is S.TERMINATED


@pytest.mark.criterion("G15")
def test_another_machine_that_says_that_all_is_gone_completes_it(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(termination, "ELSEWHERE_SECONDS", 30.0)  # a busy machine says it later
    ticket = held_by(ledger, FAR)
    late = threading.Timer(0.1, ledger.tell, (ticket, {}), {"processes": Processes.GONE})
    late.start()
    answer = ended(ledger, ticket, tmp_path)
    late.join()
    assert answer.complete
    assert [run.ended for run in answer.elsewhere] == [True]


@pytest.mark.criterion("P08")
@pytest.mark.parametrize("doubt", [Processes.UNCONFIRMED, Processes.ALIVE, Processes.UNKNOWN])
def test_another_machine_that_is_not_sure_does_not_complete_it(
    ledger: Ledger, tmp_path: Path, doubt: Processes
) -> None:
    ticket = held_by(ledger, FAR)
    ledger.terminate(ticket.task, actor=OPERATOR)
    ledger.tell(ticket, {"output": {"size": 0}}, processes=doubt)
    assert ended(ledger, ticket, tmp_path).complete is False


def test_checks_on_another_machine_act_for_nobody(ledger: Ledger, tmp_path: Path) -> None:
    task, _ = brought(ledger, S.PENDING_EVAL)
    answer = terminate(
        ledger, Whom("task", task.id), state_dir=str(tmp_path), actor=OPERATOR, reason="x"
    )
    assert (answer.elsewhere, answer.complete, answer.outcome) == ((), True, "clean")


# -- this machine ----------------------------------------------------------------------------------


@pytest.mark.criterion("G26")
def test_a_pid_that_belongs_to_somebody_else_now_is_left_alone(
    ledger: Ledger, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    now = Identity.of(sleeper.pid)
    assert now
    ticket = held_by(ledger, f"{host_name()}{now.boot}/1/1")
    ledger.heartbeat(ticket, process=written(now._replace(start=now.start - 1)))
    answer = ended(ledger, ticket, tmp_path)
    assert answer.killed == ()
    assert sleeper.poll() is None


@pytest.mark.criterion("G15")
def test_the_process_that_was_written_down_dies_also_in_a_second_call(
    ledger: Ledger, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    """The first call got as far as its commit: the lease is gone, and nobody was killed."""
    now = Identity.of(sleeper.pid)
    assert now
    ticket = held_by(ledger, f"{host_name()}{now.boot}/1/1")
    ledger.heartbeat(ticket, process=written(now))
    ledger.terminate(ticket.task, actor=OPERATOR)
    answer = ended(ledger, ticket, tmp_path)
    assert (answer.already_terminated, answer.killed) == (True, (sleeper.pid,))
    assert sleeper.wait(5) == -9


@pytest.mark.criterion("P08")
def test_a_process_that_does_not_die_is_reported_as_alive_and_the_end_as_incomplete(
    ledger: Ledger,
    tmp_path: Path,
    sleeper: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = Identity.of(sleeper.pid)
    assert now
    ticket = held_by(ledger, f"{host_name()}{now.boot}/1/1")
    ledger.heartbeat(ticket, process=written(now))
    for room in (shim, silencing):
        monkeypatch.setattr(room, "send", lambda *_: None)
    answer = ended(ledger, ticket, tmp_path)
    assert (answer.killed, answer.survivors) == ((), (sleeper.pid,))
    assert answer.complete is False
    monkeypatch.undo()
    answer = ended(ledger, ticket, tmp_path)
    assert (answer.killed, answer.survivors, answer.complete) == ((sleeper.pid,), (), True)


@pytest.mark.criterion("P08")
def test_a_supervisor_that_has_started_nothing_yet_is_not_vouched_for(
    ledger: Ledger, tmp_path: Path
) -> None:
    ticket = held_by(ledger, holder_name())
    assert ended(ledger, ticket, tmp_path).unconfirmed == (ticket.run,)
    ledger.tell(ticket, {}, processes=Processes.GONE)
    assert ended(ledger, ticket, tmp_path).unconfirmed == ()


def test_a_supervisor_that_died_before_it_started_anything_left_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    ticket = held_by(ledger, f"{host_name()}{me().boot}/1/1")
    answer = ended(ledger, ticket, tmp_path)
    assert (answer.unconfirmed, answer.complete) == ((), True)


def test_the_sender_itself_is_never_killed(store_url: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", SENDER, store_url, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, cwd=ROOT, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"()"), done.stderr


SENDER = """
import sys
from pathlib import Path
from tests.supervisor.test_termination import ended, held_by, written
from truegreen.record.ledger import open_ledger
from truegreen.supervisor.holder import holder_name
from truegreen.work.tree import me
ledger = open_ledger(sys.argv[1])
ticket = held_by(ledger, holder_name())
ledger.heartbeat(ticket, process=written(me()))
print(ended(ledger, ticket, Path(sys.argv[2])).killed, end="")
ledger.close()
"""
"""A process of its own: whatever else a sender has started goes along."""


class TooLate(Watch):
    """Terminates a task at the last moment before its agent is started."""

    def __init__(self, ledger: Ledger, task: str) -> None:
        self._ledger, self._task = ledger, task

    def phase(self, name: str, words: str = "") -> None:  # noqa: ARG002 - told anyway
        if name == "agent":
            self._ledger.terminate(self._task, actor=OPERATOR)


@pytest.mark.criterion("G07")
def test_an_agent_that_is_terminated_while_it_is_about_to_start_does_nothing(
    store_url: str, tmp_path: Path, own_tools: None
) -> None:
    stage = staged(store_url, tmp_path)
    task = stage.add()
    after = Supervisor(stage.ledger, stage.place, TooLate(stage.ledger, task.id)).attempt(task.id)
    assert (after.status, stage.acts) == (S.TERMINATED, [])
    (run,) = stage.ledger.dossier(task.id).runs
    assert run.seen_at is None
    assert not os.path.exists(os.path.join(stage.place.run_dir(run.id), "stdout.log"))
    stage.ledger.close()


# -- marks and conversations -----------------------------------------------------------------------


@pytest.mark.criterion("G17", "G02")
def test_what_lives_inside_of_a_conversation_goes_along_and_is_marked(
    ledger: Ledger, tmp_path: Path
) -> None:
    ticket = held_by(ledger, holder_name(), session=SESSION)
    (child,) = ledger.converse(ticket, children=[Child(AgentKind.SUBAGENT, "a1")])
    answer = ended(ledger, ticket, tmp_path)
    assert child.id in answer.agents
    inside = event.marked(b"a1", SESSION.encode())
    assert set(os.listdir(tmp_path / "fenced")) == {*answer.agents, SESSION, inside, ticket.run}
    (late,) = ledger.converse(ticket, children=[Child(AgentKind.SUBAGENT, "a2")])
    assert late.status is AgentStatus.TERMINATED


def test_where_no_mark_can_be_written_it_dies_all_the_same_and_says_so(
    ledger: Ledger, tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    (tmp_path / "fenced").write_text("in the way")
    ticket = held_by(ledger, holder_name())
    now = Identity.of(sleeper.pid)
    assert now
    ledger.heartbeat(ticket, process=written(now))
    answer = ended(ledger, ticket, tmp_path)
    assert answer.killed == (sleeper.pid,)
    assert "marks for hooks could not be written" in answer.troubles[0]


@pytest.mark.criterion("G28")
def test_a_conversation_in_a_home_of_the_runs_own_is_sealed(ledger: Ledger, tmp_path: Path) -> None:
    kept = {"client": "qwen", "folder": "/nowhere", "inside": ".qwen"}
    ticket = held_by(ledger, holder_name(), session=SESSION, **{KEPT_FACT: kept})
    chats = tmp_path / "runs" / ticket.run / "agent" / "home" / ".qwen" / "projects" / "p" / "chats"
    chats.mkdir(parents=True)
    (chats / f"{SESSION}.jsonl").write_text("{}")
    assert ended(ledger, ticket, tmp_path).sealed == (f"{chats}/{SESSION}.jsonl.terminated",)


@pytest.mark.criterion("G28", "G02")
def test_a_forged_name_seals_what_is_its_own_and_leaves_alone_what_was_there_before(
    ledger: Ledger, tmp_path: Path
) -> None:
    chats = tmp_path / "qwen" / "projects" / "p" / "chats"
    chats.mkdir(parents=True)
    older = chats / "22222222-2222-4222-8222-222222222222.jsonl"
    older.write_text("{}")
    time.sleep(0.3)  # births have no finer clock that could be waited for
    kept = kept_facts(Kept("qwen", str(tmp_path / "qwen")))
    ticket = held_by(ledger, holder_name(), session=SESSION, **kept)
    own = chats / f"{SESSION}.jsonl"
    own.write_text("{}")
    ledger.converse(ticket, session=older.stem)
    answer = ended(ledger, ticket, tmp_path)
    assert answer.sealed == (f"{own}.terminated",)
    assert older.exists()
    assert [f"{older} is left alone" in each for each in answer.troubles] == [True]
    assert marks.is_fenced(str(tmp_path), SESSION)
    assert marks.is_fenced(str(tmp_path), older.stem)


@pytest.mark.criterion("G17")
def test_a_child_of_a_live_run_is_said_to_live_on_in_it(ledger: Ledger, tmp_path: Path) -> None:
    ticket = held_by(ledger, holder_name(), session=SESSION)
    (child,) = ledger.converse(ticket, children=[Child(AgentKind.BACKGROUND, "b1")])
    whom = Whom("agent", child.id)
    answer = terminate(ledger, whom, state_dir=str(tmp_path), actor=OPERATOR, reason="enough")
    assert (answer.outcome, answer.complete) == ("interrupted", False)
    assert answer.unconfirmed == (ticket.run,)
    assert f"it lives inside {ticket.run}" in answer.troubles[0]
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("G15", "G26")
@pytest.mark.parametrize("of", ["task", "agent"])
def test_what_an_ended_run_left_alive_dies_when_its_settled_task_is_terminated(
    ledger: Ledger, tmp_path: Path, of: str
) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    start = Start("test", base_digest=BASE, agent=agent.id, isolation="none")
    ticket = ledger.start(ledger.open(contract(), actor=OPERATOR).id, start)
    environ = {**os.environ, VARIABLE: ticket.run}
    with subprocess.Popen(["sleep", "60"], env=environ) as left:
        ledger.end_run(ticket, exited(processes=Processes.UNCONFIRMED))
        judged(ledger, ticket, Outcome.PASSED)
        whom = Whom("task", ticket.task) if of == "task" else Whom("agent", agent.id)
        answer = terminate(ledger, whom, state_dir=str(tmp_path), actor=OPERATOR, reason="enough")
        assert left.wait(5) == -9
    assert (answer.outcome, answer.killed) == ("interrupted", (left.pid,))
    assert answer.unconfirmed == (ticket.run,)
    assert ledger.task(ticket.task).status is S.SUCCEEDED


@pytest.mark.criterion("G01")
def test_nothing_that_a_sealed_task_left_is_run_again(store_url: str, tmp_path: Path) -> None:
    stage = staged(store_url, tmp_path)
    task, _ = brought(stage.ledger, S.SUCCEEDED)
    stage.ledger.terminate(task.id, actor=OPERATOR)
    with pytest.raises(Terminated, match="sealed for ever"):
        look_again(stage.ledger, stage.place, Watch(), task.id, actor=OPERATOR)
    stage.ledger.close()


class Warned(Watch):
    def __init__(self) -> None:
        self.words: list[str] = []

    def warn(self, words: str) -> None:
        self.words.append(words)


@pytest.mark.criterion("G02")
def test_a_stream_that_changes_its_name_is_told_and_soon_not_listened_to(ledger: Ledger) -> None:
    ticket, watch = held_by(ledger, holder_name()), Warned()
    roll = Roll(ledger, ticket, watch)
    for name in ("real", "forged", "real", "forged", *(f"s-{n}" for n in range(50))):
        roll.call(Live(session=name))
    assert "calls it forged now" in watch.words[0]
    assert len(watch.words) == MOST_NAMES - 1
    ledger.terminate(ticket.task, actor=OPERATOR)
    names = ledger.fenced().sessions
    assert names[0] == "real"
    assert len(names) == MOST_NAMES


# -- the kill switch -------------------------------------------------------------------------------


def pulled(ledger: Ledger, state: Path, *, keep: bool = False) -> kill_switch.AllEnded:
    return terminate_all(
        ledger, state_dir=str(state), actor=OPERATOR, reason="enough", keep_frozen=keep
    )


@pytest.mark.criterion("G22", "G14")
def test_the_kill_switch_seals_what_is_unsettled_and_retires_every_agent(
    ledger: Ledger, tmp_path: Path
) -> None:
    tasks = {status: brought(ledger, status)[0] for status in S}
    idle = [ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id for _ in range(7)]
    answer = pulled(ledger, tmp_path)
    assert (answer.complete, answer.frozen, answer.left) == (True, False, 0)
    kept = {S.SUCCEEDED, S.FAILED, S.CANCELED}
    for status, before in tasks.items():
        now = ledger.task(before.id)
        assert now.status is (status if status in kept else S.TERMINATED)
        assert (now.sealed_at is None) == (status in kept)
    assert {ledger.agent(agent).status for agent in idle} == {AgentStatus.TERMINATED}
    assert set(idle) <= set(answer.agents)
    reviews = 1  # of the task that waits for one
    assert len(answer.tasks) == len(set(S) - kept - {S.TERMINATED}) + reviews
    assert ledger.frozen() is None


@pytest.mark.criterion("G22")
def test_where_something_is_left_the_freeze_stays_and_the_next_pull_lifts_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    ticket = held_by(ledger, FAR)
    answer = pulled(ledger, tmp_path)
    assert (answer.complete, answer.frozen) == (False, True)
    with pytest.raises(Exception, match="frozen"):
        held_by(ledger, FAR)
    ledger.tell(ticket, {}, processes=Processes.GONE)
    answer = pulled(ledger, tmp_path)
    assert (answer.complete, answer.frozen) == (True, False)


@pytest.mark.criterion("G22", "G18")
def test_broken_off_half_way_nothing_starts_and_the_next_pull_finishes(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [opened(ledger) for _ in range(4)]
    real, calls = ledger.terminate, []

    def cut_short(*words: str, **more: object) -> object:
        calls.append(words)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return real(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger, "terminate", cut_short)
    with pytest.raises(KeyboardInterrupt, match=r"2 tasks .*frozen.*same command goes on"):
        pulled(ledger, tmp_path)
    monkeypatch.undo()
    assert ledger.frozen()
    assert pulled(ledger, tmp_path).complete
    assert {ledger.task(task.id).status for task in tasks} == {S.TERMINATED}
    assert ledger.frozen() is None


@pytest.mark.criterion("G22")
def test_a_freeze_of_somebody_else_is_not_lifted(ledger: Ledger, tmp_path: Path) -> None:
    ledger.freeze(actor=OPERATOR, reason="the registry is compromised")
    opened(ledger)
    answer = pulled(ledger, tmp_path)
    assert (answer.complete, answer.frozen) == (True, True)
    held = ledger.frozen()
    assert held
    assert held.reason == "the registry is compromised"


@pytest.mark.criterion("G22")
def test_on_request_the_freeze_stays_and_no_later_pull_lifts_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    assert pulled(ledger, tmp_path, keep=True).frozen
    held = ledger.frozen()
    assert held
    assert not held.is_passing
    assert pulled(ledger, tmp_path).frozen
    assert ledger.frozen() == held


@pytest.mark.criterion("G22")
@pytest.mark.parametrize("by_hand", [True, False])
def test_who_wants_it_frozen_takes_over_what_a_dead_pull_left(
    ledger: Ledger, tmp_path: Path, *, by_hand: bool
) -> None:
    left = ledger.freeze(actor=OPERATOR, reason="its process was killed", passing=True)
    if by_hand:
        ledger.freeze(actor=OPERATOR, reason="mine")
    else:
        pulled(ledger, tmp_path, keep=True)
    held = ledger.frozen()
    assert held
    assert (held.is_passing, held.at) == (False, left.at)
    assert pulled(ledger, tmp_path).frozen


@pytest.mark.criterion("G22")
def test_a_freeze_by_hand_while_it_is_under_way_stays(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(ledger)
    real = ledger.terminate

    def meanwhile(*words: str, **more: object) -> object:
        ledger.freeze(actor=OPERATOR, reason="I look at it first")
        return real(*words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger, "terminate", meanwhile)
    assert pulled(ledger, tmp_path).frozen
    held = ledger.frozen()
    assert held
    assert held.reason == "I look at it first"


def test_nobody_else_can_make_a_freeze_that_passes(ledger: Ledger, tmp_path: Path) -> None:
    held = ledger.freeze(actor=OPERATOR, reason=f"{PASSING}really")
    assert held.reason == "really"
    assert pulled(ledger, tmp_path).frozen


@pytest.mark.criterion("G05")
def test_only_who_was_not_terminated_before_is_retired_and_what_died_is_counted(
    ledger: Ledger, tmp_path: Path
) -> None:
    above = ledger.register_agent("lead", "sha256:1", actor=OPERATOR).id
    below = ledger.register_agent("below", "sha256:2", actor=OPERATOR, parent=above).id
    ledger.terminate_agent(below, actor=OPERATOR)
    ledger.send(above, "one", actor=OPERATOR, wake=True)
    ledger.send(above, "two", actor=OPERATOR)
    called_off = ledger.arm(above, actor=OPERATOR)
    ledger.call_off(called_off.id, "not needed", actor=OPERATOR)
    told = {"state_dir": str(tmp_path), "actor": OPERATOR}
    first = terminate(ledger, Whom("agent", above), **told)  # type: ignore[arg-type]
    assert (first.retired, set(first.agents)) == ((above,), {above, below})
    assert first.lost == (2, 1), "two messages that nobody read, one wake-up that was armed"
    again = terminate(ledger, Whom("agent", above), **told)  # type: ignore[arg-type]
    assert (again.retired, again.lost) == ((), (0, 0))


@pytest.mark.criterion("G22")
def test_it_ends_in_time_and_says_what_it_did_not_reach(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(ledger)
    monkeypatch.setattr(kill_switch, "BOUND_SECONDS", 0.0)
    answer = pulled(ledger, tmp_path)
    assert (answer.complete, answer.frozen, answer.left) == (False, True, 1)
