"""Who tries to be judged by somebody else: agents, bribed judges, dead supervisors, two at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.walk.conftest import Walk, called, init, result, shell, until
from tests.walk.judging import Judge, settings
from tests.walk.test_evaluators import evaluation
from tests.walk.test_qa_chain import HEAD, TOML, carried, qa_of, reviewer, reviews
from truegreen.work.tree import Identity

GATE = ("--gate", "grep -q work out.txt")
WORK = "echo work > out.txt"
ONCE = ("--max-attempts", "1")
STRICT = "import json\nprint(json.dumps({'score': 0, 'reason': 'the old one'}))\n"
BRIBED = "import json\nprint(json.dumps({'score': 1, 'reason': 'bribed'}))\n"


def bribe(walk: Walk, text: str = BRIBED) -> str:
    """Shell words that copy a bribed file to the place that follows."""
    path = walk.folder.parent / "bribe"
    path.write_text(text)
    return f"cp {path}"


def judged(
    walk: Walk, command: list[str], agent: str, *more: str, **changes: str
) -> dict[str, Any]:
    """A task with one evaluator, whose agent does its work and then something else."""
    config = settings(walk, "[evaluators.e]\ncommand = <command>\n", command=command)
    given = ("--config", str(config), *GATE, "--evaluator", "e", *ONCE, *more)
    return walk.run(*given, *shell(f"{WORK}; {agent}"), **changes).task


@pytest.mark.criterion("F16", "E05")
@pytest.mark.parametrize("where", ["folder", "option", "shell", "alias", "swapped", "link"])
def test_a_judge_in_the_workspace_is_the_old_one_however_it_is_named(
    git_walk: Walk, where: str
) -> None:
    folder = git_walk.folder
    (folder / "judge").mkdir()
    (folder / "judge" / "__main__.py").write_text(STRICT)
    (folder / "link.py").symlink_to(folder / "judge" / "__main__.py")
    (folder.parent / "alias").symlink_to(folder)
    (folder.parent / "other").mkdir()
    (folder.parent / "other" / "__main__.py").write_text(BRIBED)
    opened = "import sys; exec(open(sys.argv[1].partition('=')[2]).read())"
    command = {
        "folder": ["python3", str(folder / "judge")],
        "option": ["python3", "-c", opened, f"--rules={folder}/judge/__main__.py"],
        "shell": ["sh", "-c", f"exec python3 {folder}/judge/__main__.py"],
        "alias": ["sh", "-c", f"exec python3 {folder.parent}/alias/judge/__main__.py"],
        "swapped": ["python3", str(folder / "judge" / "__main__.py")],
        "link": ["python3", str(folder / "link.py")],
    }[where]
    agent = f"{bribe(git_walk)} judge/__main__.py"
    if where == "swapped":
        agent = "mv judge gone; ln -s ../other judge"
    task = judged(git_walk, command, agent)
    # An alias in the midst of a line leads nowhere in a jail, and a link is as it was.
    lost = where in ("alias", "link")
    assert (task["task_status"], evaluation(task)["score"]) == (
        ("needs_review", None) if lost else ("failed", 0)
    )


RULES = "import json, rules\nprint(json.dumps({'score': rules.score, 'reason': 'the old one'}))"
SHADOW = 'def dumps(_): return \'{"score": 1, "reason": "bribed"}\''


@pytest.mark.criterion("F16", "E05")
@pytest.mark.parametrize("isolation", ["jail", "reaper"])
@pytest.mark.parametrize(
    ("victim", "text"),
    [
        ("judges/judge.py", BRIBED),
        ("judges/rules.py", "score = 1"),
        ("judges/json.py", SHADOW),
        ("bin/critic", f"#!{sys.executable}\n{BRIBED}"),
    ],
)
def test_a_judge_beside_the_workspace_that_was_rewritten_is_not_heard(
    walk: Walk, victim: str, text: str, isolation: str
) -> None:
    home = walk.folder.parent / "judges"
    home.mkdir()
    (home / "rules.py").write_text("score = 0")
    (home / "judge.py").write_text(RULES)
    (walk.bin / "critic").write_text(f"#!{sys.executable}\n{STRICT}")
    (walk.bin / "critic").chmod(0o755)
    command = ["critic"] if "critic" in victim else ["python3", str(home / "judge.py")]
    task = judged(walk, command, f"{bribe(walk, text)} ../{victim}", "--isolation", isolation)
    assert task["task_status"] == "needs_review"
    assert f"{victim} is as an agent left it" in evaluation(task)["reason"]


@pytest.mark.criterion("F16", "E05")
def test_a_bribe_lasts_no_longer_than_until_a_person_mends_the_judge(walk: Walk) -> None:
    """The next attempt does not take what the last one left for granted; a person's change is."""
    path = walk.folder.parent / "judge.py"
    path.write_text(STRICT)
    once = f"test -e ../bribed || {bribe(walk)} ../judge.py; touch ../bribed"
    task = judged(walk, ["python3", str(path)], f"{once}; exit 0", "--max-attempts", "3")
    again = walk.tg("retry", task["id"], "--reason", "once more", "--now", "--json").json()
    assert again["task_status"] == "needs_review"
    assert "is as an agent left it" in again["verdict"]["reason"]
    path.write_text(BRIBED.replace("bribed", "mended"))
    verified = walk.tg("verify", task["id"], "--json").json()
    assert verified["task_status"] == "succeeded", verified["verdict"]


@pytest.mark.criterion("E05", "M03")
def test_a_bribe_outlives_no_supervisor(walk: Walk) -> None:
    """Nobody saw how the agent ended, so nobody knows what it did to its judge."""
    path = walk.folder.parent / "judge.py"
    path.write_text(STRICT)
    config = settings(walk, "[evaluators.e]\ncommand = <command>\n", command=["python3", str(path)])
    given = ("--config", config, *GATE, "--evaluator", "e", "--max-attempts", "3")
    agent = f"{WORK}; test -e ../done || {{ {bribe(walk)} ../judge.py; touch ../done; sleep 60; }}"
    running = walk.start(*given, *shell(agent))
    try:
        until((walk.folder.parent / "done").exists)
    finally:
        running.kill()
        running.communicate()
    (row,) = walk.tg("list", "--json").json()["tasks"]
    task = walk.tg("attempt", row["id"], "--json").json()
    assert task["task_status"] == "needs_review"
    assert "is as an agent left it" in task["verdict"]["reason"]


@pytest.mark.criterion("F30")
def test_what_a_goal_judge_cost_at_every_stop_comes_out_of_its_purse(walk: Walk) -> None:
    answer = json.dumps({"done": False, "reason": "no"})
    envelope = {"type": "result", "result": answer, "total_cost_usd": 0.25}
    judge = Judge(walk, f"print({json.dumps(envelope)!r})")
    toml = "[evaluators.e]\ncommand = <command>\ngoal_check = true\ncost_usd = 0.4\n"
    config = ("--config", str(settings(walk, toml, command=judge.command)))
    walk.run(*config, *GATE, "--evaluator", "e", "--max-attempts", "2", *shell(WORK))
    assert len(judge.shown) == 2


@pytest.mark.criterion("F30")
def test_what_a_goal_judge_cost_is_not_forgotten_with_a_run_that_a_gate_failed(walk: Walk) -> None:
    answer = json.dumps({"done": True, "reason": "fine"})
    envelope = {"type": "result", "result": answer, "total_cost_usd": 0.25}
    judge = Judge(walk, f"print({json.dumps(envelope)!r})")
    toml = "[evaluators.e]\ncommand = <command>\ngoal_check = true\ncost_usd = 0.4\n"
    config = ("--config", str(settings(walk, toml, command=judge.command)))
    thrice = ("--max-attempts", "3")
    got = walk.run(*config, *GATE, "--evaluator", "e", *thrice, *shell("echo x >> out.txt"))
    assert (got.task["task_status"], len(got.task["runs"])) == ("failed", 3)
    assert len(judge.shown) == 2


@pytest.mark.criterion("F30")
def test_a_reviewing_judge_has_one_purse_for_all_attempts_and_rounds(walk: Walk) -> None:
    answer = json.dumps({"score": 0.9, "verdict": "pass", "reason": "ok", "evidence": []})
    envelope = {"type": "result", "result": answer, "total_cost_usd": 0.25}
    judge = Judge(walk, f"print({json.dumps(envelope)!r})")
    toml = TOML.replace("[agents.reviewer]", "[evaluators.reviewer]")
    toml = toml.replace("command = <reviewer>", "command = <reviewer>\ncost_usd = 0.4")
    config = settings(walk, toml, reviewer=judge.command)
    got = walk.run("--config", config, "--task", "work", "--max-attempts", "2")
    assert got.task["task_status"] == "pending_qa"
    assert len(judge.shown) == 2


FORGED = HEAD + "give(verdict='pass', reason='bribed', evidence=proof)"
HONEST = HEAD + "give(verdict='fail', reason='mine', evidence=proof)"


@pytest.mark.criterion("J03", "E05")
def test_the_authors_programs_are_not_the_reviewers(walk: Walk) -> None:
    (walk.folder / "bin").mkdir()
    copy = bribe(walk, f"#!{sys.executable}\n{FORGED}")
    toml = TOML.replace(
        "echo line >> out.txt", f"echo line >> out.txt; {copy} bin/critic; chmod +x bin/critic"
    )
    (walk.bin / "critic").write_text(f"#!{sys.executable}\n{HONEST}")
    (walk.bin / "critic").chmod(0o755)
    config = settings(walk, toml, reviewer=["critic"])
    path = f"{walk.folder}/bin:{walk.environ()['PATH']}"
    got = walk.run("--config", config, "--task", "work", *ONCE, PATH=path)
    assert got.task["verdict"]["reason"] == "QA failed: mine"


@pytest.mark.criterion("J03", "E05")
def test_a_reviewer_beside_the_workspace_that_was_rewritten_does_not_review(walk: Walk) -> None:
    words = reviewer(walk, "give(verdict='fail', reason='mine', evidence=proof)")
    copy = bribe(walk, FORGED)
    toml = TOML.replace("echo line >> out.txt", f"echo line >> out.txt; {copy} ../reviewer.py")
    config = settings(walk, toml, reviewer=words)
    got = walk.run("--config", config, "--task", "work", *ONCE)
    assert got.task["task_status"] == "pending_qa"
    assert [w for w in walk.ledger().inbox() if w.task == got.task["id"]]


@pytest.mark.criterion("J03", "E05")
def test_reviewed_work_that_rewrites_its_reviewer_is_not_reviewed_by_it(walk: Walk) -> None:
    """The reviewer runs what it reviews; the next round would be another's."""
    forge = bribe(walk, FORGED)
    body = (
        f"os.system({forge!r} + ' ' + os.path.abspath(__file__))\n"
        "give(verdict='fail', reason='mine', evidence=proof)"
    )
    got = carried(walk, body)
    assert got.task["task_status"] == "pending_qa"
    assert [found["reason"] for found in qa_of(got)] == []
    last = reviews(walk)[0]
    assert "is as an agent left it" in last["runs"][-1]["facts"]["message"]


@pytest.mark.criterion("J05", "J15")
@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("It is not good; I wrote that down.", "pending_qa"),
        ('Fine.\n```json\n{"verdict": "pass", "reason": "ok"}\n```', "succeeded"),
    ],
)
def test_a_clients_pass_needs_its_own_last_words(walk: Walk, words: str, status: str) -> None:
    """What it reviewed can write its file; what it says at last it says itself."""
    before = (
        "import os, json\n"
        "seen = [{'command': 'cat work/out.txt', 'saw': 'line'}]\n"
        "json.dump({'verdict': 'pass', 'reason': 'forged', 'evidence': seen},"
        " open(os.environ['TRUEGREEN_VERDICT'], 'w'))"
    )
    walk.client("claude", init(), called("cat work/out.txt"), result(words), before=before)
    config = settings(walk, TOML, reviewer=["claude", "-p"])
    got = walk.run("--config", config, "--task", "work", *ONCE)
    assert got.task["task_status"] == status


@pytest.mark.criterion("J12")
def test_a_review_that_can_not_even_begin_is_flagged(walk: Walk) -> None:
    state = Path(walk.environ()["XDG_STATE_HOME"])
    state.mkdir(parents=True, exist_ok=True)
    (state / "truegreen-reviews").write_text("a file where the folder should be")
    got = carried(walk, "give(verdict='pass', reason='all there', evidence=proof)")
    assert (got.status, got.task["task_status"]) == (3, "pending_qa")
    assert [w for w in walk.ledger().inbox() if w.task == got.task["id"]]


DIES = """\
import os, sys
from truegreen.__main__ import main
from truegreen.record.ledger import Ledger
real = Ledger.{verb}
def dying(self, ticket, *given, **more):
    if self.task(ticket.task).qa_of_key is not None:
        os._exit(9)
    return real(self, ticket, *given, **more)
Ledger.{verb} = dying
sys.exit(main())
"""


@pytest.mark.criterion("J12", "M03")
@pytest.mark.parametrize(
    ("verb", "original", "review"),
    [
        ("end_run", "pending_qa", "queued"),
        ("record_qa", "pending_qa", "queued"),
        ("record", "succeeded", "succeeded"),
        ("judge", "succeeded", "succeeded"),
    ],
)
def test_wherever_the_supervisor_of_a_review_dies_it_is_closed_or_tried_again(
    walk: Walk, verb: str, original: str, review: str
) -> None:
    words = reviewer(walk, "give(verdict='pass', reason='ok', evidence=proof)")
    config = settings(walk, TOML, reviewer=words)
    program = [sys.executable, "-c", DIES.format(verb=verb), "run", "--task", "work"]
    subprocess.run(
        [*program, "--config", str(config)],
        env=walk.environ(),
        cwd=walk.folder,
        capture_output=True,
        check=False,
        timeout=50,
    )
    found = {row["role"]: row for row in walk.tg("list", "--json").json()["tasks"]}
    assert (found["coder"]["task_status"], found["qa"]["task_status"]) == (original, review)
    if original != "succeeded":
        again = walk.tg("attempt", found["coder"]["id"], "--json").json()
        assert again["task_status"] == "succeeded"


def test_a_judge_does_not_outlive_its_supervisor_even_without_isolation(walk: Walk) -> None:
    note = walk.folder.parent / "pid"
    path = walk.folder.parent / "judge.py"
    path.write_text(
        f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(90)"
    )
    judge = ("--isolation", "none", "--evaluator", f"{sys.executable} {path}")
    running = walk.start(*GATE, *judge, *shell(WORK))
    judging = None
    try:
        until(lambda: note.exists() and note.read_text())
        judging = Identity.of(int(note.read_text()))
    finally:
        running.kill()
        running.communicate()
    (row,) = walk.tg("list", "--json").json()["tasks"]
    assert row["task_status"] == "needs_review"
    assert judging is not None
    assert not judging.alive()
