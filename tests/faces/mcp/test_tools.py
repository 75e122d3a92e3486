"""Who is offered which tools, what they answer, and that none of them makes anything green."""

from __future__ import annotations

import inspect
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from mcp.client import Client

from tests.faces.conftest import Furnished, Run
from tests.faces.mcp.conftest import Office, call, tools
from tests.proofs import counted, noop, regression_only, unproven, weak
from tests.record.lives import LEAD, OPERATOR, brought, judged, opened, started
from tests.table import each_row
from truegreen.config import load_config
from truegreen.errors import Forbidden, InvalidInput, Refused
from truegreen.faces import deeds
from truegreen.faces.mcp import asked
from truegreen.faces.mcp import tools as catalogue
from truegreen.faces.mcp.server import server_for
from truegreen.faces.mcp.tools import TOOLS, tool
from truegreen.faces.mcp.visitors import Far, Outside
from truegreen.faces.ordering import check_ground
from truegreen.facts import Actor
from truegreen.model import Outcome, Role, TaskStatus
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.lifecycle import SETTLED

READING = {"task_list", "task_show", "agent_list", "inbox_list"}
LEADING = READING | {
    *("task_create", "task_run", "task_stop", "task_terminate", "agent_send", "agent_resume"),
    *("task_hold", "topic_announce"),
}
OWN = {"my_task", "declare", "checkpoint", "attach", "announce"}
OFFERED = {
    Role.AGENT: OWN,
    Role.VIEWER: READING,
    Role.LEAD: LEADING,
    Role.OPERATOR: LEADING,
    Role.JUDGE: set(),
    Role.SYSTEM: set(),
}
VERDICTS = ("verdict", "judge", "record", "review", "accept", "approve", "settle", "end_run")


@pytest.mark.criterion("O01")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("role", [Role.VIEWER, Role.LEAD, Role.OPERATOR])
def test_a_role_is_offered_its_tools_and_no_others(office: Office, role: Role, mode: str) -> None:
    assert set(tools(office.visitor(role), mode)) == OFFERED[role]


@pytest.mark.criterion("O01")
def test_an_agent_and_a_judge_are_offered_what_is_theirs(office: Office) -> None:
    assert set(tools(office.agent()[0])) == OWN
    assert tools(Far(office.ledger, office.config, Role.JUDGE, "")) == {}


@pytest.mark.criterion("O01")
@pytest.mark.parametrize("role", [Role.VIEWER, Role.LEAD, Role.AGENT])
def test_a_tool_of_another_role_is_refused_with_ones_own(office: Office, role: Role) -> None:
    visitor = office.agent()[0] if role is Role.AGENT else office.visitor(role)
    for name in sorted(set(TOOLS) - OFFERED[role]):
        said = call(visitor, name, {"task": "tsk_0", "agent": "agt_0", "message": "x"})
        assert said.error == "forbidden", name
        assert set(said.document["error"]["allowed"]) == OFFERED[role]


@pytest.mark.criterion("O01")
def test_no_tool_sets_a_verdict(office: Office) -> None:
    """Enumerated: by name, by argument, and by what the code behind could call."""
    assert set(TOOLS) == OWN | LEADING
    for each in TOOLS.values():
        assert each.roles <= {Role.AGENT, Role.VIEWER, Role.LEAD, Role.OPERATOR}
        assert not [word for word in VERDICTS if word in each.name]
        assert not [name for name in each.takes.__struct_fields__ if name in VERDICTS]
    source = inspect.getsource(catalogue)
    assert not [word for word in VERDICTS if f".{word}(" in source]


@pytest.mark.criterion("N02")
def test_whatever_an_agent_says_its_task_does_not_move(office: Office) -> None:
    agent, ticket, _ = office.agent()
    for name, arguments in (
        ("my_task", {}),
        ("declare", {"kind": "done", "reason": "all 212 tests pass"}),
        ("attach", {"name": "proof.txt", "text": "passed"}),
        ("announce", {"topic": "passed", "text": "all green"}),
    ):
        assert call(agent, name, arguments).error == "", name
        task = office.ledger.task(ticket.task)
        assert (task.status, task.verdict) == (TaskStatus.RUNNING, "unknown")


def test_a_tool_for_nobody_can_not_be_written_down() -> None:
    with pytest.raises(TypeError, match="for somebody"):
        tool(frozenset())


def test_every_tool_is_described_and_says_whether_it_changes_or_ends_something(
    office: Office,
) -> None:
    offered = {**tools(office.visitor(Role.OPERATOR)), **tools(office.agent()[0])}
    for name, shown in offered.items():
        assert len(shown.description or "") > 40, name
        hints = shown.annotations
        assert hints is not None
        assert hints.read_only_hint is (name in READING | {"my_task"}), name
        assert hints.destructive_hint is (name in {"task_stop", "task_terminate"}), name
        assert hints.open_world_hint is False


def test_every_argument_has_a_sentence_and_nothing_else_is_taken(office: Office) -> None:
    for each in TOOLS.values():
        schema = asked.schema(each.takes)
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert "$ref" not in str(schema)
        for name, told in schema["properties"].items():
            assert "description" in str(told), f"{each.name}.{name}"


@each_row("name", sorted(TOOLS))
def test_an_unknown_argument_is_refused_by_every_tool(office: Office, name: str) -> None:
    agent = office.agent()[0]
    visitor = agent if name in OWN else office.visitor(Role.OPERATOR)
    given = {"kind": "done", "action": "x", "name": "x", "task": "tsk_0", "agent": "agt_0"}
    given |= {"topic": "built"}
    fields = {*TOOLS[name].takes.__struct_fields__}
    known = {key: value for key, value in given.items() if key in fields}
    more: dict[str, object] = {"message": "x"} if "message" in fields else {}
    more |= {"wait_for": ["human"]} if name == "task_hold" else {}
    said = call(visitor, name, {**known, **more, "verdict": "passed"})
    assert said.error == "invalid_input"
    assert "verdict" in said.document["error"]["message"]


@each_row(
    ("name", "arguments"),
    [
        ("task_show", {}),
        ("task_show", {"task": 7}),
        ("task_list", {"limit": 0}),
        ("task_list", {"limit": True}),
        ("task_list", {"status": ["green"]}),
        ("task_run", {"task": "tsk_0", "wait_seconds": 51}),
        ("task_run", {"task": "tsk_0", "gates": ["true"]}),
        ("task_create", {}),
        ("task_create", {"command": ["true"], "caps": {"turns": "many"}}),
        ("task_create", {"command": ["true"], "agent": ""}),
        ("task_create", {"command": ["true"], "template": ""}),
        ("task_create", {"command": ["true"], "gates": ["true", " "]}),
        ("task_run", {"task": ""}),
        ("agent_send", {"agent": "agt_0", "message": ""}),
    ],
)
def test_a_wrong_argument_is_a_result_that_says_so(
    office: Office, name: str, arguments: dict[str, object]
) -> None:
    said = call(office.visitor(Role.OPERATOR), name, arguments)
    assert said.error == "invalid_input", said


def test_a_tool_that_is_not_there_is_a_result_with_those_that_are(office: Office) -> None:
    said = call(office.visitor(Role.VIEWER), "task_approve", {"task": "tsk_0"})
    assert said.error == "not_found"
    assert set(said.document["error"]["allowed"]) == READING


def test_a_defect_of_ours_breaks_no_protocol_and_tells_no_insides(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("the secret of the house")

    monkeypatch.setattr(office.ledger, "inbox", broken)
    said = call(office.visitor(Role.OPERATOR), "inbox_list")
    assert said.error == "broken"
    assert "secret" not in str(said.document)


@pytest.mark.parametrize("status", TaskStatus)
def test_only_a_succeeded_task_is_completed_in_the_words_of_mcp(
    office: Office, status: TaskStatus
) -> None:
    task, _ = brought(office.ledger, status)
    said = call(office.visitor(Role.VIEWER), "task_show", {"task": task.id})
    assert (said.state == "completed") is (status is TaskStatus.SUCCEEDED)
    words = ("working", "input_required", "completed", "failed", "cancelled")
    assert said.state in words


@pytest.mark.parametrize(
    ("make", "status", "level", "proof", "by"),
    [
        (counted, "succeeded", "A2", "shown", ["gate:tests"]),
        (weak, "needs_review", "A1", "shown", ["gate:tests"]),
        (unproven, "needs_review", "A2", "missing", []),
        (regression_only, "succeeded", "A2", "waived", ["regression"]),
        (noop, "succeeded", "A2", "waived", ["noop"]),
    ],
)
def test_a_task_has_the_three_answers(
    office: Office,
    make: Callable[[Ledger], str],
    status: str,
    level: str,
    proof: str,
    by: list[str],
) -> None:
    visitor = office.visitor(Role.VIEWER)
    said = call(visitor, "task_show", {"task": make(office.ledger)}).document
    verdict = said["verdict"]
    assert (said["task_status"], verdict["checks"]) == (status, "passed")
    assert (verdict["level"], verdict["require"]) == (level, "A2")
    assert (verdict["proof"]["status"], verdict["proof"]["by"]) == (proof, by)
    assert (make.__name__ in said["badges"]) is (proof == "waived")
    (brief,) = call(visitor, "task_list").document["tasks"]
    assert brief["badges"] == said["badges"]


# -- the same documents as the command line --------------------------------------------------------


@pytest.mark.criterion("N13")
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("task_list", {}, ["list"]),
        ("task_list", {"status": ["failed", "blocked"]}, ["list", "--status", "failed"]),
        ("agent_list", {}, ["agents"]),
        ("inbox_list", {}, ["inbox"]),
    ],
)
def test_lists_are_those_of_the_command_line(
    furnished: Furnished,
    tg: Run,
    name: str,
    arguments: dict[str, object],
    words: list[str],
) -> None:
    config = load_config(os.environ, os.getcwd())
    ledger = open_ledger(furnished.url)
    visitor = Outside(ledger, config, Role.OPERATOR, lambda: OPERATOR)
    if arguments:
        words = [*words, "--status", "blocked"]
    assert call(visitor, name, arguments).document == tg(*words, "--json").json()
    ledger.close()


@pytest.mark.criterion("N12")
def test_other_names_for_a_status_find_the_same_tasks_on_the_command_line_and_here(
    furnished: Furnished, tg: Run
) -> None:
    config = load_config(os.environ, os.getcwd())
    ledger = open_ledger(furnished.url)
    visitor = Outside(ledger, config, Role.OPERATOR, lambda: OPERATOR)
    own = tg("list", "--status", "failed_pending_eval", "--json").json()
    assert {task["task_status"] for task in own["tasks"]} == {"failed_pending_eval"}
    for word in ("failed-pending-eval", "FAILED_PENDING_EVAL"):
        assert tg("list", "--status", word, "--json").json() == own
        assert call(visitor, "task_list", {"status": [word]}).document == own
    ledger.close()


@pytest.mark.criterion("L14")
def test_tasks_are_found_by_the_name_of_their_agent_and_by_their_age(office: Office) -> None:
    agent = office.ledger.register_agent("scribe", "sha256:2", actor=OPERATOR)
    mine = started(office.ledger, agent_id=agent.id).task
    visitor = office.visitor(Role.VIEWER)
    found = call(visitor, "task_list", {"agent": "scribe", "since": "1h"}).document["tasks"]
    assert [task["id"] for task in found] == [mine]
    assert call(visitor, "task_list", {"agent": "nobody"}).document["error"]["code"] == "not_found"


@pytest.mark.criterion("N13")
def test_a_task_is_that_of_the_command_line(furnished: Furnished, tg: Run) -> None:
    config = load_config(os.environ, os.getcwd())
    ledger = open_ledger(furnished.url)
    visitor = Outside(ledger, config, Role.OPERATOR, lambda: OPERATOR)
    for status in (TaskStatus.SUCCEEDED, TaskStatus.FAILED):
        task = furnished.tasks[status]
        assert (
            call(visitor, "task_show", {"task": task}).document == tg("show", task, "--json").json()
        )
    ledger.close()


def test_who_may_not_act_sees_no_session(office: Office) -> None:
    office.ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session="s-very-secret")
    for role, sees in ((Role.OPERATOR, True), (Role.LEAD, False), (Role.VIEWER, False)):
        said = call(office.visitor(role), "agent_list")
        assert ("s-very-secret" in str(said.document)) is sees, role


# -- leads -----------------------------------------------------------------------------------------


def test_a_lead_creates_a_task_under_its_own_name(office: Office) -> None:
    lead = office.visitor(Role.LEAD, "planner")
    order = {"command": ["true"], "title": "fix it", "gates": ["true"], "caps": {"turns": 4}}
    made = call(lead, "task_create", order).document
    assert (made["task_status"], made["created_by"]) == ("queued", "lead:planner")
    assert made["id"] in [t["id"] for t in call(lead, "task_list").document["tasks"]]


def test_the_same_call_under_one_key_makes_one_task_of_one_caller(office: Office) -> None:
    order = {"command": ["true"], "title": "once", "key": "k1"}
    first, again = (
        call(office.visitor(Role.LEAD, "one"), "task_create", order).document["id"] for _ in "ab"
    )
    other = call(office.visitor(Role.LEAD, "two"), "task_create", order).document["id"]
    assert first == again
    assert first != other


@pytest.mark.criterion("O01")
@pytest.mark.parametrize("name", ["isolation"])
def test_a_lead_does_not_loosen_what_holds_its_agents(office: Office, name: str) -> None:
    order = {"command": ["true"], name: "none"}
    assert call(office.visitor(Role.LEAD), "task_create", order).error == "forbidden"


@pytest.mark.criterion("O01")
def test_a_lead_sends_agents_into_the_trees_of_this_place_and_no_others(
    office: Office, tmp_path: Path
) -> None:
    """Neither beside it, nor through a link, nor to where the record is kept."""
    foreign = tmp_path.parent / f"{tmp_path.name}-foreign"
    state = Path(office.config.state_dir)
    for folder in (foreign, tmp_path / "below", state):
        folder.mkdir(parents=True, exist_ok=True)
    (tmp_path / "link").symlink_to(foreign)
    lead, boss = office.visitor(Role.LEAD), office.visitor(Role.OPERATOR)
    said = {
        name: call(lead, "task_create", {"command": ["true"], "cwd": str(folder)}).error
        for name, folder in {
            "here": tmp_path,
            "below": tmp_path / "below",
            "beside": foreign,
            "above": tmp_path.parent,
            "everything": Path("/"),
            "link": tmp_path / "link",
            "state": state,
            "in state": state.parent / "." / state.name,
        }.items()
    }
    refused = dict.fromkeys(set(said) - {"here", "below"}, "forbidden")
    assert said == {"here": "", "below": "", **refused}
    assert call(boss, "task_create", {"command": ["true"], "cwd": str(foreign)}).error == ""


@pytest.mark.criterion("O01")
def test_the_folder_of_the_store_is_no_leads_to_work_in(tmp_path: Path) -> None:
    """Also where it is not the folder that the rest of the record lies in."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "truegreen.toml").write_text('[tasks.one]\ncommand = ["true"]\n')
    config = load_config({}, str(tmp_path), store=f"sqlite://{tmp_path}/kept/record.db")
    check_ground(config, str(tmp_path / "work"))
    with pytest.raises(Forbidden, match="record"):
        check_ground(config, str(tmp_path / "kept"))


@pytest.mark.criterion("O01")
def test_a_lead_ends_its_own_tree_and_no_other(office: Office) -> None:
    foreign = opened(office.ledger).id
    lead = office.visitor(Role.LEAD, LEAD.name)
    for name in ("task_terminate", "task_stop"):
        force = {"force": True} if name == "task_stop" else {}
        assert call(lead, name, {"task": foreign, **force}).error == "forbidden", name
    own = call(lead, "task_create", {"command": ["true"]}).document["id"]
    ended = call(lead, "task_terminate", {"task": own, "reason": "wrong"}).document
    assert (ended["outcome"], ended["already_terminated"]) == ("clean", False)
    assert call(lead, "task_terminate", {"task": own}).document["already_terminated"] is True


@pytest.mark.criterion("O01")
def test_a_lead_writes_to_its_own_agents_and_to_no_others(office: Office) -> None:
    lead = office.visitor(Role.LEAD, LEAD.name)
    foreign = office.ledger.register_agent("theirs", "sha256:1", actor=OPERATOR).id
    own = office.ledger.register_agent("mine", "sha256:1", actor=LEAD).id
    for wake in (False, True):
        letter = {"message": "hello", "wake": wake}
        assert call(lead, "agent_send", {"agent": foreign, **letter}).error == "forbidden"
        assert call(lead, "agent_send", {"agent": own, **letter}).error == ""
    assert (office.ledger.messages(foreign), office.ledger.wakes(foreign)) == ([], [])


def test_the_same_letter_again_under_one_key_wakes_once(office: Office) -> None:
    agent = office.ledger.register_agent("mine", "sha256:1", actor=LEAD).id
    lead = office.visitor(Role.LEAD, LEAD.name)
    letter = {"agent": agent, "message": "go on", "wake": True, "key": "k"}
    first, again = (call(lead, "agent_send", letter).document for _ in "ab")
    assert (first["wakes"], again["wakes"], again["disposition"]) == (True, False, "duplicate")
    assert len(office.ledger.wakes(agent)) == len(office.ledger.messages(agent)) == 1


def test_terminate_says_first_what_would_end(office: Office) -> None:
    task = opened(office.ledger).id
    said = call(office.visitor(Role.OPERATOR), "task_terminate", {"task": task, "dry_run": True})
    assert said.error == ""
    assert office.ledger.task(task).sealed_at is None


def test_stop_is_refused_when_nothing_runs_and_asked_for_when_something_does(
    office: Office,
) -> None:
    boss = office.visitor(Role.OPERATOR)
    queued, running = opened(office.ledger).id, started(office.ledger)
    assert call(boss, "task_stop", {"task": queued}).error == "not_running"
    assert call(boss, "task_stop", {"task": running.task, "reason": "enough"}).error == ""
    assert office.ledger.standing(running).stop_asked


@pytest.mark.criterion("G02")
def test_a_terminated_agent_is_never_written_to(office: Office) -> None:
    agent = office.ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    boss = office.visitor(Role.OPERATOR)
    letter = {"agent": agent, "message": "wake up", "wake": True}
    assert call(boss, "agent_send", {"agent": agent, "message": "hello"}).error == ""
    call(boss, "task_terminate", {"task": agent})
    assert call(boss, "agent_send", letter).error == "terminated"


# -- waiting ---------------------------------------------------------------------------------------


def test_run_waits_no_longer_than_asked_and_says_what_is_next(office: Office) -> None:
    lead = office.visitor(Role.LEAD)
    begun = time.monotonic()
    said = call(lead, "task_run", {"command": ["true"], "wait_seconds": 0})
    assert time.monotonic() - begun < 5
    task = said.document
    assert (task["task_status"], task["priority"]) == ("queued", asked.TOP_PRIORITY)
    assert f"truegreen attempt {task['id']}" in task["next"]
    assert said.heard == []


def test_a_lead_is_told_that_nobody_is_there_to_carry_its_work_out(office: Office) -> None:
    lead = office.visitor(Role.LEAD)
    waiting = {"command": ["true"], "wait_seconds": 0}
    assert "nobody looks for work" in call(lead, "task_run", waiting).document["notice"]
    office.ledger.enlist("h/1", "here")
    assert "notice" not in call(lead, "task_run", waiting).document


def test_run_does_not_wait_where_no_scheduler_is(office: Office) -> None:
    begun = time.monotonic()
    said = call(office.visitor(Role.LEAD), "task_run", {"command": ["true"]}).document
    assert time.monotonic() - begun < 5
    assert (said["task_status"], "notice" in said) == ("queued", True)
    again = call(office.visitor(Role.LEAD), "task_run", {"task": said["id"]}).document
    assert time.monotonic() - begun < 5
    assert "notice" in again


@pytest.mark.parametrize("status", sorted(SETTLED))
def test_run_of_a_settled_task_is_refused_as_an_attempt_is(
    office: Office, status: TaskStatus
) -> None:
    task, _ = brought(office.ledger, status)
    begun = time.monotonic()
    said = call(office.visitor(Role.LEAD), "task_run", {"task": task.id, "wait_seconds": 50})
    assert time.monotonic() - begun < 5
    with pytest.raises(Refused) as refused:
        office.ledger.start(task.id, Start("h/1"))
    assert said.error == refused.value.code
    assert office.ledger.task(task.id) == task


def test_run_of_a_sealed_task_is_refused(office: Office) -> None:
    task, _ = brought(office.ledger, TaskStatus.SUCCEEDED)
    boss = office.visitor(Role.OPERATOR)
    call(boss, "task_terminate", {"task": task.id})
    assert call(boss, "task_run", {"task": task.id}).error == "terminated"


def test_run_comes_back_as_soon_as_there_is_a_verdict(office: Office) -> None:
    task, ticket = brought(office.ledger, TaskStatus.PENDING_EVAL)
    timer = threading.Timer(0.5, judged, (office.ledger, ticket, Outcome.PASSED))
    timer.start()
    begun = time.monotonic()
    said = call(office.visitor(Role.LEAD), "task_run", {"task": task.id, "wait_seconds": 50})
    timer.join()
    assert time.monotonic() - begun < 10
    assert said.document["task_status"] == "succeeded"


def test_a_client_that_gave_up_waits_for_nothing_any_more(office: Office) -> None:
    """A call ends with whoever made it: it does not wait its fifty seconds out."""
    task = opened(office.ledger).id
    office.ledger.enlist("h/1", "here")
    visitor = office.visitor(Role.LEAD)

    async def talk() -> None:
        async with Client(server_for(visitor)) as client:
            with anyio.move_on_after(0.5):
                await client.call_tool("task_run", {"task": task, "wait_seconds": 50})

    begun = time.monotonic()
    anyio.run(talk)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("name", ["text", "message"])
def test_a_letter_is_taken_under_either_of_its_names(office: Office, name: str) -> None:
    agent = office.ledger.register_agent("mine", "sha256:1", actor=LEAD).id
    lead = office.visitor(Role.LEAD, LEAD.name)
    assert call(lead, "agent_send", {"agent": agent, name: "go on"}).error == ""
    assert [each.body for each in office.ledger.messages(agent)] == ["go on"]
    both = {"agent": agent, "text": "this", "message": "that"}
    assert call(lead, "agent_send", both).error == "invalid_input"
    assert "text" not in asked.schema(asked.Letter)["properties"]


def test_an_order_calls_its_template_a_task_as_the_command_line_does() -> None:
    for name in ("task", "template"):
        order = asked.read(asked.Order, {name: "fix"})
        assert isinstance(order, asked.Order)
        assert order.options()["template"] == "fix"
    with pytest.raises(InvalidInput, match="task: unknown key"):
        asked.read(asked.Order, {"task": "fix", "template": "other"})
    assert "task" not in asked.schema(asked.Order)["properties"]


@pytest.mark.criterion("O01")
def test_a_lead_wakes_its_own_agents_and_no_others(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deeds, "obstacle", lambda *_: "")  # whether they can go on is not the point
    lead = office.visitor(Role.LEAD, LEAD.name)
    agents = [
        office.ledger.register_agent("one", "sha256:1", actor=actor).id
        for actor in (LEAD, OPERATOR)
    ]
    wish = {"message": "go on", "after_seconds": 60, "key": "k"}
    first, again = (call(lead, "agent_resume", {"agent": agents[0], **wish}) for _ in "ab")
    assert (first.error, first.document) == ("", again.document)
    assert first.document["state"] == "armed"
    assert call(lead, "agent_resume", {"agent": agents[1], **wish}).error == "forbidden"
    assert [len(office.ledger.wakes(each)) for each in agents] == [1, 0]


@pytest.mark.criterion("G02")
def test_a_terminated_agent_is_never_woken(office: Office) -> None:
    boss = office.visitor(Role.OPERATOR)
    agent = office.ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    assert "can't be resumed" in str(call(boss, "agent_resume", {"agent": agent}).document)
    call(boss, "task_terminate", {"task": agent})
    assert call(boss, "agent_resume", {"agent": agent}).error == "terminated"


def test_who_is_nobody_any_more_is_refused_at_the_next_call(office: Office) -> None:
    key = office.key(Role.LEAD, "planner")
    visitor = Outside(
        office.ledger, office.config, Role.LEAD, lambda: office.ledger.authenticate(key)
    )
    assert call(visitor, "inbox_list").error == ""
    token = next(t for t in office.ledger.tokens() if t.name == "planner")
    office.ledger.revoke_token(token.id, actor=Actor(Role.OPERATOR, "ana"))
    assert call(visitor, "inbox_list").error == "unauthenticated"


def test_the_inbox_goes_on_behind_the_page_before(furnished: Furnished) -> None:
    ledger = open_ledger(furnished.url)
    config = load_config(os.environ, os.getcwd())
    visitor = Outside(ledger, config, Role.OPERATOR, lambda: OPERATOR)
    everything = call(visitor, "inbox_list", {}).document["inbox"]
    first = call(visitor, "inbox_list", {"limit": 1}).document
    rest = call(visitor, "inbox_list", {"after": first["after"]}).document
    ledger.close()
    assert len(everything) > 1
    assert first["inbox"] + rest["inbox"] == everything
    assert rest["after"] is None
