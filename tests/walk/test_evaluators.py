"""Evaluators from the command line to the record: they confirm, lower, rescue, and never raise."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from tests.record.raw_sql import raw_sql
from tests.walk.conftest import Walk, init, result, said, shell
from tests.walk.judging import Judge, says, settings

GATE = ("--gate", "grep -q work out.txt")
WORK = "echo work > out.txt"
ONCE = ("--max-attempts", "1")
GOOD = says(score=0.9, verdict="pass", reason="it does what was asked")


def evaluation(task: dict[str, Any], check: str = "") -> dict[str, Any]:
    """The one answer of an evaluator."""
    found = [f for f in task["verdict"]["findings"] if f["kind"] == "evaluator"]
    found = [f for f in found if check in ("", f["check"])]
    assert len(found) == 1, found
    answer: dict[str, Any] = found[0]
    return answer


@pytest.mark.criterion("F01", "F06", "F40", "P11")
@pytest.mark.parametrize(
    ("score", "status", "verdict"),
    [(0.70, 0, "passed"), (0.6999, 1, "failed"), (1.0, 0, "passed"), (0, 1, "failed")],
)
def test_the_score_decides_exactly_at_the_threshold(
    walk: Walk, score: float, status: int, verdict: str
) -> None:
    judge = Judge(walk, says(score=score, reason="my view"))
    got = walk.run(*GATE, *judge.option, *ONCE, *shell(WORK))
    assert (got.status, got.task["verdict"]["outcome"]) == (status, verdict)
    assert evaluation(got.task)["score"] == score


@pytest.mark.criterion("F19", "F12")
def test_no_praise_turns_a_red_gate_green_and_none_is_asked_for(walk: Walk) -> None:
    judge = Judge(walk, says(score=1.0, verdict="pass", reason="perfect"))
    got = walk.run(*GATE, *judge.option, *ONCE, *shell("echo nothing > out.txt"))
    assert (got.status, got.axes, got.cell) == (1, ("exited", "failed"), "silent_failure")
    assert judge.shown == []


@pytest.mark.criterion("F02", "F26", "P04")
def test_the_repro_work_that_was_done_before_a_bad_exit_is_rescued(walk: Walk) -> None:
    judge = Judge(walk, GOOD)
    got = walk.run(*GATE, *judge.option, *ONCE, *shell(f"{WORK}; exit 3"))
    assert (got.status, got.axes, got.cell) == (0, ("crashed", "succeeded"), "rescued")
    assert got.task["rescued"]
    assert "rescued" in got.task["badges"]
    events = [event["to"] for event in got.task["events"] if event["to"]]
    assert events == ["running", "failed_pending_eval", "succeeded"]
    (row,) = walk.tg("list", "--json").json()["tasks"]
    assert (row["rescued"], row["badges"]) == (True, ["rescued"])
    assert "rescued" in walk.tg("show", got.task["id"]).out
    walk.tg("retry", got.task["id"], "--reason", "once more")
    assert walk.tg("list", "--json").json()["tasks"][0]["rescued"]


@pytest.mark.criterion("F03", "P04")
def test_the_counter_repro_bad_work_after_a_bad_exit_stays_red(walk: Walk) -> None:
    judge = Judge(walk, says(score=0.2, verdict="fail", reason="half of it is missing"))
    got = walk.run(*GATE, *judge.option, *ONCE, *shell(f"{WORK}; exit 3"))
    assert (got.status, got.axes, got.cell) == (1, ("crashed", "failed"), "failed")
    assert not got.task["rescued"]
    assert "half of it is missing" in got.task["verdict"]["reason"]


@pytest.mark.criterion("F07")
def test_a_rescue_may_need_more_than_a_confirmation(walk: Walk) -> None:
    judge = Judge(walk, says(score=0.8, reason="fine"))
    toml = "[evaluators.strict]\ncommand = <command>\nrescue_threshold = 0.85\n"
    config = ("--config", str(settings(walk, toml, command=judge.command)))
    given = (*config, *GATE, "--evaluator", "strict", *ONCE)
    assert walk.run(*given, *shell(WORK)).status == 0
    (walk.folder / "out.txt").unlink()
    got = walk.run(*given, *shell(f"{WORK}; exit 3"))
    assert (got.status, got.axes) == (1, ("crashed", "failed"))
    assert "0.85" in got.task["verdict"]["reason"]


@pytest.mark.criterion("F04")
@pytest.mark.parametrize("ending", ["kill -9 $$", "kill -TERM $$"])
def test_a_crash_never_starts_a_judge(walk: Walk, ending: str) -> None:
    judge = Judge(walk, GOOD)
    got = walk.run(*GATE, *judge.option, *ONCE, *shell(f"{WORK}; {ending}"))
    assert (got.status, got.axes) == (5, ("crashed", "failed"))
    assert judge.shown == []
    assert [f for f in got.task["verdict"]["findings"] if f["kind"] == "evaluator"] == []


@pytest.mark.criterion("F39")
def test_asked_about_a_dead_agent_a_judge_recommends_and_decides_nothing(walk: Walk) -> None:
    judge = Judge(walk, GOOD)
    dead = walk.run(*GATE, *judge.option, *ONCE, *shell(f"{WORK}; kill -9 $$"))
    again = walk.tg("verify", dead.task["id"])
    assert (again.status, len(judge.shown)) == (3, 1)
    assert "score 0.9000: it does what was asked" in again.out + again.err
    assert "nothing was checked: the run ended with signaled" in again.out
    after = walk.tg("show", dead.task["id"], "--json").json()
    assert (after["task_status"], after["verdict"]["outcome"]) == ("failed", "unknown")


@pytest.mark.criterion("F05")
def test_a_silent_end_without_a_gate_is_rescued_by_a_judge_where_work_is_seen(walk: Walk) -> None:
    lines = init(), said("thinking")
    judge = Judge(walk, GOOD)
    works = "open('out.txt', 'w').write('work')"
    got = walk.run(*judge.option, *ONCE, *walk.claude(*lines, before=works))
    assert (got.status, got.task["task_status"], got.task["rescued"]) == (0, "succeeded", True)
    idle = walk.run(*judge.option, *ONCE, *walk.claude(*lines))
    assert (idle.status, idle.task["task_status"]) == (3, "needs_review")


@pytest.mark.criterion("F09", "F10")
@pytest.mark.parametrize(
    "bodies",
    [
        (says(score=math.nan, verdict="pass"), says(score=7, verdict="pass")),
        (says(score="0.9", verdict="pass"), says(verdict="pass", reason="no score")),
        (says(score=0.9, verdict="splendid"), "print('no JSON')"),
        ("", "sys.exit(1)"),
        ("os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 9)"),
    ],
    ids=["nan, seven", "text, none", "word, prose", "silence, exit", "killed"],
)
def test_no_usable_answer_is_tried_twice_and_then_a_persons(
    walk: Walk, bodies: tuple[str, str]
) -> None:
    """The first answer of a pair is given at the first try: a usable one would decide."""
    judge = Judge(walk, f"exec({bodies!r}[len(open(log.name).readlines()) - 1])")
    got = walk.run(*GATE, *judge.option, *ONCE, *shell(WORK))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "evaluator_unavailable" in got.task["verdict"]["reason"]
    assert len(judge.shown) == 2
    assert evaluation(got.task)["evidence"]["tries"] == 2
    (waiting,) = walk.ledger().inbox()
    assert waiting.task == got.task["id"]


@pytest.mark.criterion("F10", "F29")
def test_a_judge_that_answers_at_the_second_try_is_heard(walk: Walk) -> None:
    flag = Path(walk.environ()["HOME"]) / ".codex" / "tried"
    body = f"p = {str(flag)!r}\nif not os.path.exists(p):\n    open(p, 'w'); sys.exit(9)\n{GOOD}"
    judge = Judge(walk, body)
    got = walk.run(*GATE, *judge.option, *shell(WORK))
    assert (got.status, len(judge.shown)) == (0, 2)
    told = evaluation(got.task)["evidence"]
    assert (told["tries"], len(told["earlier_errors"])) == (2, 1)
    assert "exit 9" in told["earlier_errors"][0]


def test_a_judge_that_is_not_there_is_refused_before_the_agent_costs_anything(walk: Walk) -> None:
    words = ("--evaluator", "/nowhere/judge --strict", *ONCE, *shell(WORK))
    refused = walk.tg("run", "--json", *GATE, *words).error("invalid_input")
    assert "/nowhere/judge" in str(refused["message"])
    assert not (walk.folder / "out.txt").exists()
    assert walk.ledger().page().tasks == []


def test_a_judge_that_is_gone_when_it_is_asked_is_a_persons_at_once(walk: Walk) -> None:
    judge = walk.bin / "critic"
    judge.write_text('#!/bin/sh\necho \'{"score": 1, "reason": "fine"}\'\n')
    judge.chmod(0o755)
    words = ("--evaluator", f"{judge} --strict", *ONCE)
    got = walk.run(*GATE, *words, *shell(f"{WORK}; rm {judge}"))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert str(judge) in got.task["verdict"]["reason"]


@pytest.mark.criterion("F08", "F21")
@pytest.mark.parametrize(
    ("terms", "answer", "status"),
    [
        ("band = 0.1", {"score": 0.65, "reason": "nearly"}, "needs_review"),
        ("band = 0.1", {"score": 0.59, "reason": "not nearly"}, "failed"),
        ("", {"verdict": "uncertain", "reason": "can't tell"}, "needs_review"),
        ('uncertain = "fail"', {"verdict": "uncertain", "reason": "can't tell"}, "failed"),
    ],
)
def test_doubt_goes_where_the_contract_sends_it_and_never_to_green(
    walk: Walk, terms: str, answer: dict[str, Any], status: str
) -> None:
    judge = Judge(walk, says(**answer))
    toml = f"[evaluators.e]\ncommand = <command>\n{terms}\n"
    config = ("--config", str(settings(walk, toml, command=judge.command)))
    got = walk.run(*config, *GATE, "--evaluator", "e", *ONCE, *shell(WORK))
    assert got.task["task_status"] == status
    assert len(judge.shown) == 1


@pytest.mark.criterion("F08")
def test_what_nobody_decides_in_time_fails(walk: Walk) -> None:
    judge = Judge(walk, says(verdict="uncertain", reason="can't tell"))
    toml = '[defaults]\nreview_within = "1s"\n[evaluators.e]\ncommand = <command>\n'
    config = ("--config", str(settings(walk, toml, command=judge.command)))
    got = walk.run(*config, *GATE, "--evaluator", "e", *ONCE, *shell(WORK))
    assert got.task["task_status"] == "needs_review"
    assert walk.tg("wait", got.task["id"], "--timeout", "2s").status == 3
    walk.run(*config, *GATE, *shell("sleep 1.2; true"))
    task = walk.tg("show", "--json", got.task["id"]).json()
    assert (task["task_status"], task["events"][-1]["reason"]) == (
        "failed",
        "nobody decided within 1s",
    )


@pytest.mark.criterion("F20")
def test_two_judges_are_never_averaged(walk: Walk) -> None:
    good, bad = Judge(walk, GOOD, "good"), Judge(walk, says(score=0.69, reason="no"), "bad")
    got = walk.run(*GATE, *good.option, *bad.option, *ONCE, *shell(WORK))
    assert got.task["task_status"] == "failed"
    assert (len(good.shown), len(bad.shown)) == (1, 1)


@pytest.mark.criterion("F33")
def test_a_shadow_judge_is_asked_even_about_red_work_and_decides_nothing(walk: Walk) -> None:
    judge = Judge(walk, says(score=0.1, verdict="fail", reason="dreadful"))
    toml = "[evaluators.e]\ncommand = <command>\nshadow = true\n"
    config = ("--config", str(settings(walk, toml, command=judge.command)))
    got = walk.run(*config, *GATE, "--evaluator", "e", *shell(WORK))
    assert (got.status, got.task["task_status"]) == (0, "succeeded")
    found = evaluation(got.task)
    assert (found["binding"], found["evidence"]["shadow"], found["outcome"]) == (
        False,
        True,
        "failed",
    )
    red = walk.run(*config, *GATE, "--evaluator", "e", *ONCE, *shell("rm -f out.txt"))
    assert red.task["task_status"] == "failed"
    assert len(judge.shown) == 2


@pytest.mark.criterion("F22", "F30")
def test_dimensions_and_cost_are_kept_apart_from_the_runs(walk: Walk) -> None:
    answer = json.dumps({"score": 0.9, "reason": "ok", "dimensions": {"correctness": 0.8}})
    envelope = {"type": "result", "result": answer, "total_cost_usd": 0.25}
    judge = Judge(walk, f"print({json.dumps(envelope)!r})")
    got = walk.run(*GATE, *judge.option, *shell(WORK))
    told = evaluation(got.task)["evidence"]
    assert told["dimensions"] == {"correctness": 0.8}
    assert told["usage"]["cost_usd"] == 0.25
    assert got.latest["usage"]["cost_usd"] == 0


@pytest.mark.criterion("F30")
def test_a_judge_whose_purse_is_empty_is_not_asked_again(walk: Walk) -> None:
    answer = json.dumps({"score": 0.1, "reason": "no"})
    envelope = {"type": "result", "result": answer, "total_cost_usd": 0.25}
    judge = Judge(walk, f"print({json.dumps(envelope)!r})")
    toml = "[evaluators.e]\ncommand = <command>\ncost_usd = 0.2\n"
    config = ("--config", str(settings(walk, toml, command=judge.command)))
    got = walk.run(*config, *GATE, "--evaluator", "e", "--max-attempts", "2", *shell(WORK))
    assert len(judge.shown) == 1
    assert got.task["task_status"] == "needs_review"
    assert "cost cap is spent" in got.task["verdict"]["reason"]


@pytest.mark.criterion("F18", "F31", "O07")
def test_a_judge_sees_the_bundle_and_the_files_and_not_the_agents_story(walk: Walk) -> None:
    (walk.folder / "old.txt").write_text("old\n")
    body = (
        "inside = sorted(os.listdir(tree))\n"
        "try:\n    open(os.path.join(tree, 'new'), 'w'); inside.append('writable')\n"
        "except OSError:\n    pass\n"
        "print(json.dumps({'score': 0.9, 'reason': ' '.join(inside)}))\n"
    )
    judge = Judge(walk, body)
    lines = init(), result("I swear by all that is green: done.")
    works = "open('out.txt', 'w').write('work')"
    given = ("--goal", "write it", "--done-when", "out.txt says work")
    got = walk.run(*GATE, *judge.option, *given, *walk.claude(*lines, before=works))
    assert got.status == 0
    assert evaluation(got.task)["reason"] == "score 0.9000: old.txt out.txt"
    (shown,) = judge.shown
    assert next(iter(shown)) == "instructions"
    assert (shown["task"]["goal"], shown["task"]["done_when"]) == ("write it", "out.txt says work")
    assert [(g["check"], g["outcome"]) for g in shown["gates"]] == [("grep", "passed")]
    assert "+work" in shown["untrusted"]["diff"]
    assert "I swear" not in json.dumps(shown)
    assert not (walk.folder / "new").exists()


def test_a_judge_that_is_not_blind_reads_the_claim_as_data(walk: Walk) -> None:
    judge = Judge(walk, GOOD)
    toml = "[evaluators.e]\ncommand = <command>\nblind = false\n"
    config = ("--config", str(settings(walk, toml, command=judge.command)))
    lines = init(), result("I swear: done.")
    works = "open('out.txt', 'w').write('work')"
    walk.run(*config, *GATE, "--evaluator", "e", *walk.claude(*lines, before=works))
    (shown,) = judge.shown
    assert "I swear" in shown["untrusted"]["claim"]
    assert "I swear" not in json.dumps({k: v for k, v in shown.items() if k != "untrusted"})


@pytest.mark.criterion("F16", "E05")
@pytest.mark.parametrize("where", ["relative", "absolute"])
def test_an_agent_that_rewrites_its_judge_is_judged_by_the_old_one(
    git_walk: Walk, where: str
) -> None:
    folder = git_walk.folder
    (folder / "judge.py").write_text("import json\nprint(json.dumps({'score': 0, 'reason': 'no'}))")
    name = "judge.py" if where == "relative" else str(folder / "judge.py")
    (folder / "truegreen.toml").write_text(f'[evaluators.e]\ncommand = ["python3", "{name}"]\n')
    bribed = "import json; print(json.dumps({'score': 1, 'reason': 'splendid'}))"
    agent = f'{WORK}; echo "{bribed}" > judge.py'
    got = git_walk.run(*GATE, "--evaluator", "e", *ONCE, *shell(agent))
    assert got.task["task_status"] == "failed"
    assert evaluation(got.task)["score"] == 0


@pytest.mark.criterion("F16")
def test_a_judge_in_the_doers_conversation_is_rejected_and_kept(walk: Walk) -> None:
    session = init()["session_id"]
    answer = json.dumps({"score": 1, "reason": "I did well"})
    envelope = {"type": "result", "result": answer, "session_id": session}
    judge = Judge(walk, f"print({json.dumps(envelope)!r})")
    works = "open('out.txt', 'w').write('work')"
    got = walk.run(*GATE, *judge.option, *walk.claude(init(), result("done"), before=works))
    assert got.task["task_status"] == "needs_review"
    assert "the doer's own conversation" in got.task["verdict"]["reason"]


def test_the_agents_programs_are_not_the_judges(git_walk: Walk) -> None:
    """A program of that name where the agent worked is passed over, on the PATH or not."""
    folder = git_walk.folder
    (folder / "bin").mkdir()
    script = '#!/bin/sh\necho \'{"score": 1, "reason": "mine"}\'\n'
    (folder.parent / "fake").write_text(script)
    fake = f"cp ../fake bin/python3; chmod +x bin/python3; {WORK}"
    judge = Judge(git_walk, says(score=0, reason="no"))
    path = f"{folder}/bin:{os.environ['PATH']}"
    given = ("--evaluator", f"python3 {judge.path}")
    got = git_walk.run(*GATE, *given, *ONCE, *shell(fake), PATH=path)
    assert evaluation(got.task)["score"] == 0


def test_verify_asks_the_judges_again_and_an_undecided_task_is_decided_by_them(walk: Walk) -> None:
    flag = Path(walk.environ()["HOME"]) / ".codex" / "awake"
    body = f"if not os.path.exists({str(flag)!r}):\n    sys.exit(9)\n{GOOD}"
    judge = Judge(walk, body)
    got = walk.run(*GATE, *judge.option, *ONCE, *shell(WORK))
    assert got.task["task_status"] == "needs_review"
    flag.write_text("")
    again = walk.tg("verify", got.task["id"], "--json")
    assert (again.status, again.json()["task_status"]) == (0, "succeeded")
    asked = len(judge.shown)
    told = walk.tg("verify", got.task["id"], "--json")
    assert (told.status, told.json()["again"]["outcome"]) == (0, "passed")
    assert len(judge.shown) == asked + 1
    flag.unlink()
    assert walk.tg("verify", got.task["id"]).status == 3
    assert walk.tg("show", "--json", got.task["id"]).json()["task_status"] == "succeeded"


@pytest.mark.criterion("F35", "N14")
def test_a_judge_sees_what_was_left_when_everything_of_the_agent_was_gone(walk: Walk) -> None:
    body = (
        "text = open(os.path.join(tree, 'out.txt')).read()\n"
        "print(json.dumps({'score': 0.9, 'reason': repr(text)}))\n"
    )
    judge = Judge(walk, body)
    late = f"(setsid sh -c 'sleep 1; echo late >> out.txt' &) ; {WORK}"
    got = walk.run(*GATE, *judge.option, *shell(late))
    assert got.status == 0
    assert evaluation(got.task)["reason"] == r"score 0.9000: 'work\n'"
    assert (walk.folder / "out.txt").read_text() == "work\n"


@pytest.mark.criterion("F24")
def test_what_a_task_depends_on_is_there_before_it_and_frozen_with_it(walk: Walk) -> None:
    """So no dependency can ever lead back into a task that waits to be rescued, or reviewed."""
    refused = walk.tg("add", "--depends-on", "tsk_nobody", *shell(WORK))
    assert (refused.status, "no task tsk_nobody" in refused.err) == (2, True)
    first = walk.tg("add", "--title", "first", *shell(WORK)).out.strip()
    second = walk.tg("add", "--depends-on", first, *shell(WORK)).out.strip()
    with raw_sql(walk.store) as raw:
        back = f"UPDATE tasks SET contract = replace(contract, '[]', '[\"{second}\"]')"
        assert "frozen" in (raw.tried(f"{back} WHERE id = '{first}'") or "")
