"""QA by another agent, carried out by the real runner: verdict with evidence, or no green."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.walk.conftest import Outcome, Walk, called, init, result, until
from tests.walk.judging import Judge, settings

TOML = """\
[agents.coder]
command = ["sh", "-c", "echo line >> out.txt"]
[agents.reviewer]
command = <reviewer>
[gates.there]
command = ["test", "-s", "out.txt"]
[qa]
roles = ["coder"]
agent = "reviewer"
[tasks.work]
agent = "coder"
role = "coder"
gates = ["there"]
max_attempts = 3
"""
HEAD = """\
import json, os, sys
def give(**verdict):
    with open(os.environ["TRUEGREEN_VERDICT"], "w") as file:
        json.dump(verdict, file)
lines = open("work/out.txt").read().splitlines()
proof = [{"command": "wc -l work/out.txt", "saw": f"{len(lines)} work/out.txt"}]
"""
PRINTS = "print('+ wc -l work/out.txt', flush=True)\n"


def reviewer(walk: Walk, body: str, *, prints: bool = True) -> list[str]:
    """A QA agent that is a script out of the author's reach and prints the command it names."""
    path = walk.folder.parent / "reviewer.py"
    path.write_text(HEAD + (PRINTS if prints else "") + body)
    return [sys.executable, str(path)]


def carried(
    walk: Walk, body: str, toml: str = TOML, *, prints: bool = True, **changes: str
) -> Outcome:
    config = settings(walk, toml, reviewer=reviewer(walk, body, prints=prints))
    return walk.run("--config", config, "--task", "work", **changes)


def reviews(walk: Walk) -> list[dict[str, Any]]:
    rows = walk.tg("list", "--json", "--role", "qa").json()["tasks"]
    return [walk.tg("show", "--json", row["id"]).json() for row in rows]


def qa_of(got: Outcome) -> list[dict[str, Any]]:
    return [f for f in got.task["verdict"]["findings"] if f["kind"] == "qa"]


@pytest.mark.criterion("J01", "J03", "J04", "J10", "O09")
def test_a_pass_with_evidence_by_another_agent_makes_the_work_green(walk: Walk) -> None:
    got = carried(walk, "give(verdict='pass', reason='all there', evidence=proof)")
    assert (got.status, got.axes, got.cell) == (0, ("exited", "succeeded"), "true_green")
    (found,) = qa_of(got)
    assert (found["outcome"], found["reason"]) == ("passed", "all there")
    assert found["evidence"]["evidence"] == [
        {"command": "wc -l work/out.txt", "saw": "1 work/out.txt"}
    ]
    (qa,) = reviews(walk)
    reviewer_is = qa["agents"][0]["definition"].partition(":")[2][:12]
    assert found["judge"] == f"qa:reviewer@{reviewer_is}"
    assert found["judged"] == got.task["agents"][0]["definition"]
    assert (qa["title"], qa["role"], qa["task_status"]) == ("QA Review: work", "qa", "succeeded")
    assert qa["agents"][0]["definition"] != got.task["agents"][0]["definition"]
    assert "1 gate passed: there; QA passed: all there" in got.task["verdict"]["reason"]


@pytest.mark.criterion("J04", "J08", "J11", "I04")
def test_a_fail_sends_the_work_back_with_the_findings_and_is_charged(walk: Walk) -> None:
    body = (
        "ok = len(lines) > 1\n"
        "give(verdict='pass' if ok else 'fail', reason=f'{len(lines)} of 2 lines', evidence=proof)"
    )
    toml = TOML.replace(
        "echo line >> out.txt",
        "cat ${TRUEGREEN_FEEDBACK:-/dev/null} > told.txt; echo line >> out.txt",
    )
    got = carried(walk, body, toml)
    assert (got.status, got.axes) == (0, ("exited", "succeeded"))
    assert got.task["budget"]["attempts"] == [1, 3]
    assert got.task["budget"]["qa_rounds"] == [1, 2]
    assert "qa: 1 of 2 lines" in (walk.folder / "told.txt").read_text()
    assert len(reviews(walk)) == 2


@pytest.mark.criterion("J11", "I18")
def test_the_rounds_are_capped(walk: Walk) -> None:
    got = carried(walk, "give(verdict='fail', reason='never', evidence=proof)")
    assert (got.status, got.task["task_status"]) == (1, "failed")
    assert got.task["budget"]["qa_rounds"] == [2, 2]
    assert got.task["verdict"]["reason"] == "QA failed: never"
    assert len(reviews(walk)) == 2
    assert got.cell == "silent_failure"


@pytest.mark.criterion("J10", "J15")
def test_a_pass_without_evidence_is_no_pass(walk: Walk) -> None:
    got = carried(walk, "give(verdict='pass', reason='looks fine', evidence=[])")
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "without evidence" in got.task["verdict"]["reason"]


HOLLOW: dict[str, list[object]] = {
    "sentence": ["x"],
    "entries": [
        {"command": "", "saw": ""},
        {"command": "pytest -q"},
        {"saw": "all is well"},
        {"command": "-", "saw": "..."},
        {"command": "a", "saw": "0"},
        {"command": 0, "saw": 1},
    ],
}
"""One entry that counted would be enough for a pass."""


@pytest.mark.criterion("J10", "J15")
@pytest.mark.parametrize("evidence", HOLLOW.values(), ids=HOLLOW)
def test_a_pass_on_hollow_evidence_is_inconclusive(walk: Walk, evidence: list[object]) -> None:
    got = carried(walk, f"give(verdict='pass', reason='looks fine', evidence={evidence!r})")
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "without evidence (it names no command" in got.task["verdict"]["reason"]
    (found,) = qa_of(got)
    assert found["outcome"] == "inconclusive"
    audit = walk.tg("audit", "--json").json()
    assert audit["qa"]["without_evidence"]["total"] == 1


@pytest.mark.criterion("J10", "J15")
@pytest.mark.parametrize(
    "printed",
    [
        "pass",
        (
            "print(' '); print('I looked at it'); print('+ wc -l work/out.txt2');"
            "print(json.dumps({'verdict': 'pass', 'evidence': proof}))"
        ),
    ],
    ids=["nothing", "blank, words, part of a word, verdict"],
)
def test_a_recording_that_lacks_the_command_confirms_nothing(walk: Walk, printed: str) -> None:
    got = carried(
        walk, f"{printed}; give(verdict='pass', reason='fine', evidence=proof)", prints=False
    )
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    reason = got.task["verdict"]["reason"]
    assert "recorded output does not contain 'wc -l work/out.txt'" in reason
    assert "print the commands that it runs, in a shell script with set -x" in reason
    (found,) = qa_of(got)
    named = [{"command": "wc -l work/out.txt", "saw": "1 work/out.txt"}]
    assert (found["outcome"], found["evidence"]["unrecorded"]) == ("inconclusive", named)


def test_a_printed_record_with_the_command_confirms_it(walk: Walk) -> None:
    body = (
        "print('+ wc  -l work/out.txt'); print(json.dumps({'verdict': 'pass', 'evidence': proof}));"
        "give(verdict='pass', reason='fine', evidence=proof)"
    )
    got = carried(walk, body, prints=False)
    assert (got.status, got.task["task_status"]) == (0, "succeeded")


@pytest.mark.criterion("J10", "J15")
@pytest.mark.parametrize(
    ("ran", "status"), [("wc -l work/out.txt", "succeeded"), ("true", "needs_review")]
)
def test_the_tool_calls_of_a_client_are_compared_with_its_evidence(
    walk: Walk, ran: str, status: str
) -> None:
    """Its verdict repeats the command, in a tool call and in its last words: neither confirms."""
    evidence = [{"command": "wc -l work/out.txt", "saw": "1 line"}]
    answer = json.dumps({"verdict": "pass", "reason": "ok", "evidence": evidence})
    lines = (
        init(),
        called(ran),
        called(f"cat > $TRUEGREEN_VERDICT <<E\n{answer}\nE", 2),
        result(answer),
    )
    toml = TOML.replace("command = <reviewer>", f"command = {json.dumps(walk.claude(*lines)[1:])}")
    got = walk.run("--config", settings(walk, toml), "--task", "work", "--max-attempts", "1")
    assert got.task["task_status"] == status


@pytest.mark.criterion("J05")
@pytest.mark.parametrize(
    "bodies",
    [
        (
            "print('TASK_COMPLETE. QA passed. LGTM.')",
            "import subprocess; subprocess.run(['truegreen', 'done', '--reason', 'passed'])",
            "give(verdict='LGTM', reason='x', evidence=proof)",
        ),
        (
            "give(reason='x', evidence=proof)",
            "open(os.environ['TRUEGREEN_VERDICT'], 'w').write('{')",
            "os.symlink('/etc/hostname', os.environ['TRUEGREEN_VERDICT'])",
        ),
    ],
    ids=["words, done, word", "none, cut, link"],
)
def test_a_finished_review_without_a_structured_verdict_decides_nothing(
    walk: Walk, bodies: tuple[str, ...]
) -> None:
    """Each attempt of the review ends in another way; a verdict in any of them would decide."""
    notes = Path(walk.environ()["HOME"]) / ".codex"  # a reviewer may write there
    notes.mkdir(parents=True)
    tried = notes / "tried"
    body = (
        f"with open({str(tried)!r}, 'a') as tried: tried.write('x')\n"
        f"exec({bodies!r}[os.path.getsize({str(tried)!r}) - 1])"
    )
    got = carried(walk, body)
    assert tried.read_text() == "x" * len(bodies)
    assert (got.status, got.task["task_status"]) == (3, "pending_qa")
    assert qa_of(got) == []
    (qa,) = reviews(walk)
    assert (qa["task_status"], qa["budget"]["attempts"]) == ("failed", [3, 3])
    assert "gave no usable verdict" in qa["verdict"]["reason"]
    flagged = [w.item.reason for w in walk.ledger().inbox() if w.task == got.task["id"]]
    assert flagged == [f"its QA review {qa['id']} is failed"]


@pytest.mark.criterion("J12")
@pytest.mark.parametrize("ending", ["os.kill(os.getpid(), 9)", "sys.exit(4)"])
def test_a_dead_reviewer_leaves_the_work_waiting_and_flagged(walk: Walk, ending: str) -> None:
    got = carried(walk, ending)
    assert (got.status, got.task["task_status"]) == (3, "pending_qa")
    assert [w for w in walk.ledger().inbox() if w.task == got.task["id"]]
    waited = walk.tg("wait", got.task["id"], "--timeout", "5s")
    assert waited.status == 3
    (qa,) = reviews(walk)
    reviewer(walk, "give(verdict='pass', reason='at last', evidence=proof)")
    again = walk.tg("retry", qa["id"], "--reason", "the reviewer is back", "--now", "--json")
    assert again.status == 0, again
    assert walk.tg("show", "--json", got.task["id"]).json()["task_status"] == "succeeded"
    assert walk.ledger().inbox() == []


@pytest.mark.criterion("J12", "J02")
def test_without_a_reviewer_nothing_of_that_role_becomes_green(walk: Walk) -> None:
    got = walk.run(
        "--role", "coder", "--gate", "test -s out.txt", "--", "sh", "-c", "echo 1>out.txt"
    )
    assert (got.status, got.task["task_status"]) == (3, "pending_qa")
    (item,) = walk.ledger().inbox()
    assert "no reviewer is set" in item.item.reason


@pytest.mark.criterion("J03")
def test_the_author_as_its_own_reviewer_is_refused_before_anything_runs(walk: Walk) -> None:
    toml = TOML.replace("command = <reviewer>", 'command = ["sh", "-c", "echo line >> out.txt"]')
    config = settings(walk, toml)
    answer = walk.tg("run", "--config", config, "--task", "work")
    assert answer.status == 2
    assert "is the agent itself" in answer.err
    assert not (walk.folder / "out.txt").exists()


@pytest.mark.criterion("J03", "J10")
def test_a_reviewer_works_on_a_copy_with_a_fresh_context(git_walk: Walk) -> None:
    body = (
        "print('+ ls work')\n"
        "shown = json.load(open(os.environ['TRUEGREEN_REVIEW']))\n"
        "open('work/out.txt', 'w').write('spoilt by the reviewer')\n"
        "told = {'here': os.getcwd(), 'question': shown['question'], 'files': os.listdir('.')}\n"
        "give(verdict='pass', reason='ok', "
        "evidence=[{'artifact': 'work', 'saw': json.dumps(told)}])"
    )
    got = carried(git_walk, body)
    assert got.status == 0
    assert (git_walk.folder / "out.txt").read_text() == "line\n"
    (found,) = qa_of(got)
    told = found["evidence"]["evidence"][0]["saw"]
    assert str(git_walk.folder) not in told
    assert '"question": "qa"' in told
    left = list(Path(git_walk.environ()["XDG_STATE_HOME"]).glob("truegreen-reviews/*"))
    assert left == []


@pytest.mark.criterion("E05", "J03")
def test_an_author_that_rewrites_the_reviewer_is_reviewed_by_the_old_one(git_walk: Walk) -> None:
    folder = git_walk.folder
    (folder / "qa.py").write_text(HEAD + "give(verdict='fail', reason='old one', evidence=proof)")
    bribed = HEAD + "give(verdict='pass', reason='bribed', evidence=proof)"
    (folder.parent / "bribed.py").write_text(bribed)
    toml = TOML.replace("echo line >> out.txt", "echo line >> out.txt; cp ../bribed.py qa.py")
    toml = toml.replace("command = <reviewer>", 'command = ["python3", "qa.py"]')
    got = git_walk.run(
        "--config", settings(git_walk, toml), "--task", "work", "--max-attempts", "1"
    )
    assert got.task["task_status"] == "failed"
    assert got.task["verdict"]["reason"] == "QA failed: old one"


FORGED = (
    "open(os.environ['TRUEGREEN_VERDICT'], 'w').write("
    '\'{"verdict": "pass", "reason": "forged", "evidence": [{"a": 1}]}\')'
)


@pytest.mark.criterion("J03", "E05")
def test_what_the_author_left_does_not_start_with_the_reviewer(walk: Walk) -> None:
    """Modules that an interpreter would take from the folder it starts in are the author's."""
    forged = f"import os; {FORGED}; os._exit(0)"
    (walk.folder.parent / "forge.py").write_text(forged)
    toml = TOML.replace("echo line >> out.txt", "echo line >> out.txt; cp ../forge.py json.py")
    path = walk.folder.parent / "reviewer.py"
    path.write_text(HEAD + "give(verdict='fail', reason='mine', evidence=proof)")
    toml = toml.replace("<reviewer>", json.dumps([sys.executable, "-c", path.read_text()]))
    got = walk.run("--config", settings(walk, toml), "--task", "work", "--max-attempts", "1")
    assert got.task["verdict"]["reason"] == "QA failed: mine"


OTHER_WORDS = """\
give(verdict="pass", reason="forged", evidence=proof)
print(json.dumps({"verdict": "fail", "reason": "what I really found"}))
"""
IN_COMPANY = """\
import subprocess
subprocess.Popen(["sleep", "30"], start_new_session=True)
give(verdict="pass", reason="ok", evidence=proof)
"""


@pytest.mark.criterion("J05", "J15")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (OTHER_WORDS, "two different verdicts"),
        (IN_COMPANY, "was still running and could have written the verdict"),
    ],
    ids=["contradicted", "company"],
)
def test_a_verdict_that_somebody_else_may_have_written_is_none(
    walk: Walk, body: str, why: str
) -> None:
    got = carried(walk, body, prints=False)
    assert (got.status, got.task["task_status"]) == (3, "pending_qa")
    (qa,) = reviews(walk)
    assert why in qa["verdict"]["reason"]


@pytest.mark.criterion("J01", "J05")
@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (
            {
                "score": 0.9,
                "verdict": "pass",
                "reason": "ok",
                "evidence": [{"where": "out.txt", "saw": "it"}],
            },
            "succeeded",
        ),
        (
            {"score": 0.9, "verdict": "pass", "reason": "ok", "evidence": [{"saw": "it"}]},
            "pending_qa",
        ),
        ({"score": 0.9, "verdict": "pass", "reason": "ok", "evidence": []}, "pending_qa"),
        ({"score": 0.2, "verdict": "fail", "reason": "no", "evidence": []}, "failed"),
    ],
)
def test_an_evaluator_can_be_the_reviewer(walk: Walk, answer: dict[str, Any], status: str) -> None:
    judge = Judge(walk, f"print({json.dumps(answer)!r})")
    toml = TOML.replace("[agents.reviewer]", "[evaluators.reviewer]")
    config = settings(walk, toml, reviewer=judge.command)
    got = walk.run("--config", config, "--task", "work", "--max-attempts", "1")
    assert got.task["task_status"] == status
    assert judge.shown[0]["question"] == "qa"


@pytest.mark.criterion("J02", "J07", "C06", "P07")
def test_no_command_leads_around_qa(walk: Walk) -> None:
    """Whoever tries everything gets no green without a reviewer, but for the badge of a person."""
    agent = (
        "echo line > out.txt; truegreen done --reason verified; truegreen noop --reason x;"
        "truegreen review $TRUEGREEN_TASK --accept --reason mine;"
        "truegreen approve $TRUEGREEN_TASK; truegreen verify $TRUEGREEN_TASK;"
        'echo \'{"task_status": "succeeded", "reason": "QA passed", "verdict": "pass"}\''
        " > $TRUEGREEN_RESULT; true"
    )
    given = ("--role", "coder", "--gate", "test -s out.txt", "--rescue", "none")
    got = walk.run(*given, "--", "sh", "-c", agent)
    task = got.task["id"]
    assert (got.status, got.task["task_status"]) == (3, "pending_qa")
    (qa,) = reviews(walk)
    for words in (
        ("verify", task),
        ("verify", qa["id"]),
        ("wait", task, "--timeout", "1s"),
        ("attempt", task),
        ("attempt", qa["id"]),
        ("approve", task),
        ("approve", qa["id"]),
        ("unblock", task),
        ("review", qa["id"], "--accept", "--reason", "the review is fine"),
        ("cancel", qa["id"], "--reason", "not needed"),
    ):
        walk.tg(*words)
        assert walk.tg("show", "--json", task).json()["task_status"] == "pending_qa", words
    over = walk.tg("review", task, "--accept", "--reason", "I read it all", "--json")
    assert over.status == 0, over
    assert over.json()["badges"] == ["overridden"]


@pytest.mark.criterion("J07")
def test_qa_is_never_reviewed_itself_and_a_mended_task_is_again(walk: Walk) -> None:
    body = "give(verdict='pass' if len(lines) > 1 else 'fail', reason='r', evidence=proof)"
    toml = TOML.replace('roles = ["coder"]', 'roles = ["coder", "qa"]')
    got = carried(walk, body, toml)
    assert got.status == 0
    assert [qa["title"] for qa in reviews(walk)] == ["QA Review: work"] * 2
    assert len(walk.tg("list", "--json").json()["tasks"]) == 3


@pytest.mark.criterion("J12", "M03")
def test_a_review_whose_supervisor_dies_is_carried_on_by_the_next(walk: Walk) -> None:
    slow = "import time; time.sleep(60)"
    config = settings(walk, TOML, reviewer=reviewer(walk, slow))
    running = walk.start("--config", config, "--task", "work")
    try:

        def under_way() -> bool:
            rows = walk.tg("list", "--json", "--role", "qa").json()["tasks"]
            return bool(rows) and rows[0]["task_status"] == "running"

        until(under_way)
    finally:
        running.kill()
        running.communicate()
    reviewer(walk, "give(verdict='pass', reason='second try', evidence=proof)")
    (task,) = [
        row["id"] for row in walk.tg("list", "--json").json()["tasks"] if row["title"] == "work"
    ]
    answer = walk.tg("attempt", task, "--json")
    assert answer.json()["task_status"] == "succeeded", answer
