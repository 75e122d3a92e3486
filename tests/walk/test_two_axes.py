"""Run and work are told apart, from the command line to the record: theme A, end to end."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any

import pytest

from tests.walk.conftest import (
    Walk,
    answered,
    called,
    init,
    python,
    result,
    said,
    shell,
)

ONCE = ("--max-attempts", "1")


@pytest.mark.criterion("A01", "A02", "E13")
def test_a_clean_exit_over_unchecked_work_is_unverified_and_never_green(walk: Walk) -> None:
    got = walk.run(*shell("echo work > out.txt"))
    assert got.status == 3
    assert got.axes == ("exited", "needs_review")
    assert (got.cell, got.task["verdict"]["outcome"]) == ("unverified", "unknown")
    assert "unverified" in got.task["badges"]


def test_proven_work_is_green_and_says_by_what(walk: Walk) -> None:
    got = walk.run("--gate", "grep -q work out.txt", *shell("echo work > out.txt"))
    assert (got.status, got.axes, got.cell) == (0, ("exited", "succeeded"), "true_green")
    verdict = got.task["verdict"]
    assert (verdict["outcome"], verdict["level"]) == ("passed", "A2")
    assert [f["check"] for f in got.findings] == ["grep"]
    assert verdict["proof"]["by"] == ["gate:grep"]


@pytest.mark.criterion("A03", "A06", "A15", "J19", "P04", "E01", "L10", "N07")
def test_wq_713_fabricated_passing_tests_over_a_broken_file(walk: Walk) -> None:
    (walk.folder / "test_parser.py").write_text(
        "import unittest, parser_x\nclass T(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual(parser_x.parse('1'), 1)\n"
    )
    lines = init(), said("Fixed. All 212 tests passed."), result("All 212 tests passed.")
    breaks = "open('parser_x.py', 'w').write('def parse(:')"
    gate = ("--gate", "python3 -m unittest -q", "--protect", "test_*.py")
    got = walk.run(*gate, *ONCE, *walk.claude(*lines, before=breaks))
    assert got.status == 1
    assert got.axes == ("exited", "failed")
    assert (got.cell, got.exit) == ("silent_failure", ("done", "completed"))
    assert got.task["claim"]["kind"] == "done"
    (statement,) = got.task["claim"]["statements"]
    assert (statement["text"], statement["outcome"]) == ("All 212 tests passed", "contradicted")
    (waiting,) = walk.ledger().inbox()
    assert (waiting.item.cell, waiting.item.severity) == ("silent_failure", "critical")


@pytest.mark.criterion("A03")
def test_two_lines_say_both_axes_and_what_leads_on_comes_last(walk: Walk) -> None:
    (walk.folder / "x").write_text("")
    lines = init(), said("done"), result("all tests pass")
    answer = walk.tg("run", "--gate", "test -f nope", *ONCE, *walk.claude(*lines))
    run, task = answer.out.splitlines()
    steps = [line for line in answer.err.splitlines() if line.startswith("next: ")]
    assert run.startswith("run   ● exited      done · completed · exit 0 · ")
    assert task.startswith("task  ✗ failed      A2 · gate test: ")
    assert task.endswith("(silent failure: the agent said «all tests pass»)")
    assert steps
    assert all(line.startswith("next: truegreen ") and "…" not in line for line in steps)


@pytest.mark.criterion("A04", "F04")
def test_a_killed_run_is_an_outage_and_no_failure_of_the_work(walk: Walk) -> None:
    got = walk.run("--gate", "true", *ONCE, *shell("echo half > out.txt; kill -9 $$"))
    assert (got.status, got.cell) == (5, "outage")
    assert got.exit == ("fatal_error", "signaled")
    assert got.task["verdict"]["outcome"] == "unknown"
    assert got.findings == []


CAPS = {
    "time": ("time=1s", "time_cap"),
    "idle": ("idle=1s", "idle_cap"),
    "turns": ("turns=2", "turn_cap"),
    "tokens": ("tokens=100", "token_cap"),
    "cost_usd": ("cost_usd=0.01", "cost_cap"),
}


@pytest.mark.criterion("A05", "A14", "E10")
@pytest.mark.parametrize("cap", CAPS)
def test_a_cap_is_a_third_state_and_the_host_runs_the_gate(walk: Walk, cap: str) -> None:
    option, detail = CAPS[cap]
    turns = [said(f"turn {n}", n) for n in range(1, 6)]
    lines = [init(), *turns]
    if cap == "cost_usd":
        lines.append(result("so far"))
    busy = "while True: pass" if cap == "time" else "import time; time.sleep(60)"
    script = walk.claude(*lines)
    path = walk.bin / "claude"
    path.write_text(path.read_text().replace("sys.exit(0)", busy))
    got = walk.run("--gate", "test -f nope", "--cap", option, *script)
    assert (got.status, got.axes[0], got.cell) == (4, "capped", "cap_hit")
    assert got.exit == ("max_iterations", detail)
    assert got.latest["ended_by"] == "cap"
    assert [f["outcome"] for f in got.findings] == ["failed"]


@pytest.mark.criterion("B13")
def test_success_at_exactly_the_last_turn_is_success(walk: Walk) -> None:
    lines = init(), said("one", 1), said("two", 2), result("done")
    ok = walk.run("--gate", "true", "--cap", "turns=2", *walk.claude(*lines))
    assert ok.exit == ("done", "completed")
    over = walk.run("--gate", "true", "--cap", "turns=1", *walk.claude(*lines))
    assert over.exit == ("max_iterations", "turn_cap")


LAST_EVENTS: dict[str, tuple[str, str, list[dict[str, Any]], str]] = {
    "claude turns": (
        "claude",
        "turns=2",
        [init(), said("one", 1), said("two", 2), said("three", 3), result("done")],
        "turn_cap",
    ),
    "claude cost": (
        "claude",
        "cost_usd=5",
        [init(), said("one"), result("done", total_cost_usd=9.5)],
        "cost_cap",
    ),
    "claude json": ("claude", "turns=2", [result("done", num_turns=3)], "turn_cap"),
    "codex tokens": (
        "codex",
        "tokens=100",
        [
            {"type": "thread.started", "thread_id": "11111111-1111-4111-8111-111111111111"},
            {"type": "turn.started"},
            {"type": "item.completed", "item": {"type": "agent_message", "text": "done"}},
            {"type": "turn.completed", "usage": {"input_tokens": 90, "output_tokens": 11}},
        ],
        "token_cap",
    ),
    "gemini tokens": (
        "gemini",
        "tokens=100",
        [
            {"type": "init", "session_id": "s", "model": "m"},
            {"type": "message", "role": "assistant", "content": "done"},
            {"type": "result", "status": "success", "stats": {"total_tokens": 101}},
        ],
        "token_cap",
    ),
}


@pytest.mark.criterion("A05", "B13")
@pytest.mark.parametrize("case", LAST_EVENTS)
def test_a_cap_that_the_last_event_exceeds_is_hit(walk: Walk, case: str) -> None:
    """The client ends right after the event, before the supervisor compares again."""
    client, cap, lines, detail = LAST_EVENTS[case]
    words = {"claude": ["-p", "do it"], "codex": ["exec", "do it"], "gemini": ["-p", "do it"]}
    makes = "open('out.txt', 'w').write('work')"
    command = ["--", walk.client(client, *lines, before=makes), *words[client]]
    options = ("--gate", "test -s out.txt", "--rescue", "none", "--cap", cap)
    got = walk.run(*options, *command)
    assert (got.status, got.axes, got.cell) == (4, ("capped", "failed"), "cap_hit")
    assert got.exit == ("max_iterations", detail)
    assert got.latest["ended_by"] == "cap"


@pytest.mark.criterion("A05", "B13")
@pytest.mark.parametrize(("cap", "ended"), [("0.9", "cost_cap"), ("1.5", "completed")])
def test_the_cost_cap_counts_every_session_of_a_line_of_shell(
    walk: Walk, cap: str, ended: str
) -> None:
    told = result("done", total_cost_usd=0.5)
    before = (
        "import json, uuid\nopen('out.txt', 'w').write('work')\n"
        f"print(json.dumps({told!r} | {{'session_id': str(uuid.uuid4())}}), flush=True)"
    )
    line = "; ".join([f"{walk.client('claude', before=before)} -p x"] * 3)
    options = ("--gate", "test -s out.txt", "--rescue", "none", "--cap", f"cost_usd={cap}")
    got = walk.run(*options, "--", "bash", "-c", line)
    assert got.exit[1] == ended
    assert 0.9 < got.latest["usage"]["cost_usd"] <= 1.5


def test_a_cap_counts_all_stints_when_the_last_one_ends(walk: Walk) -> None:
    """Two turns, sent back by a gate, two turns more: one too many."""
    toml = walk.folder.parent / "truegreen.toml"
    toml.write_text('[gates.made]\ncommand = ["test", "-s", "out.txt"]\nfast = true\n')
    before = (
        "import os\nif os.path.exists('seen.txt'): open('out.txt', 'w').write('work')\n"
        "open('seen.txt', 'w').write('x')"
    )
    client = walk.claude(init(), said("one", 1), said("two", 2), result("done"), before=before)
    options = ("--config", toml, "--gate", "made", "--rescue", "none", *ONCE)
    got = walk.run(*options, "--cap", "turns=3", *client)
    assert got.latest["usage"]["turns"] == 4
    assert got.exit == ("max_iterations", "turn_cap")


MODES: dict[str, tuple[list[dict[str, Any]], int, tuple[str, str]]] = {
    "blocked egress": (
        [
            init(),
            called("curl https://example.org/data"),
            answered("Exit code 56\ncurl: (56) CONNECT tunnel failed, response 403", is_error=True),
            result("Done, everything is in place."),
        ],
        0,
        ("blocked", "egress_denied"),
    ),
    "missing connector": (
        [
            init(mcp_servers=[{"name": "tracker", "status": "failed"}]),
            said("I could not reach the tracker, but the triage is done."),
            result("Triage done."),
        ],
        0,
        ("blocked", "connector_missing"),
    ),
    "refusal": (
        [
            init(),
            {"type": "system", "subtype": "model_refusal_no_fallback"},
            result("I can't help with that.", is_error=True, stop_reason="refusal", safety_stops=1),
        ],
        1,
        ("blocked", "refused"),
    ),
}


@pytest.mark.criterion("A11", "A12", "A13", "P04")
@pytest.mark.parametrize("mode", MODES)
def test_a_hindered_agent_that_says_success_is_blocked(walk: Walk, mode: str) -> None:
    lines, code, expected = MODES[mode]
    got = walk.run("--gate", "test -f triage.md", *walk.claude(*lines, code=code))
    assert (got.status, got.task["task_status"], got.cell) == (3, "blocked", "blocked")
    assert got.exit == expected
    assert len(walk.ledger().inbox()) == 1


@pytest.mark.criterion("A14", "P04")
def test_the_turn_cap_of_the_client_bypasses_its_hooks_but_not_our_gate(walk: Walk) -> None:
    capped = {"subtype": "error_max_turns", "is_error": True, "terminal_reason": "max_turns"}
    lines = init(), called("make"), answered("ok"), result("", **capped)
    got = walk.run("--gate", "test -f nope", *walk.claude(*lines, code=1))
    assert (got.status, got.cell) == (4, "cap_hit")
    assert got.exit == ("max_iterations", "turn_cap")
    finished = walk.run(
        "--gate", "test -f ok", *walk.claude(*lines, code=1, before="open('ok', 'w')")
    )
    assert (finished.status, finished.cell) == (0, "finished_at_the_cap")
    assert finished.task["rescued"]


# --- the artifact


def status_file(walk: Walk, text: str, *more: str) -> Any:
    agent = python(f"open('task-status.json', 'w').write({text!r})")
    return walk.run("--claim-file", "task-status.json", *more, *agent)


@pytest.mark.criterion("A07", "A10", "N07")
def test_an_artifact_is_a_claim_and_its_further_fields_are_kept(walk: Walk) -> None:
    text = json.dumps({"task_status": "succeeded", "reason": "ok", "issues_triaged": 12})
    got = status_file(walk, text, "--gate", "test -f task-status.json")
    assert got.status == 0
    assert got.task["claim"]["extra"] == {"issues_triaged": 12}
    red = status_file(walk, text, "--gate", "false", *ONCE)
    assert (red.status, red.cell) == (1, "silent_failure")


@pytest.mark.criterion("A16", "A10", "P04")
def test_the_nightly_triage_that_triaged_nothing(walk: Walk) -> None:
    text = json.dumps(
        {"task_status": "failed", "reason": "tracker unreachable", "issues_triaged": 0}
    )
    got = status_file(walk, text, "--gate", "true", *ONCE)
    assert got.status == 1
    assert got.axes == ("exited", "failed")
    assert (got.cell, got.exit) == ("reported_failure", ("done", "declared_failure"))
    assert got.task["claim"]["reason"] == "tracker unreachable"
    assert got.task["claim"]["extra"] == {"issues_triaged": 0}


BAD_CLAIMS = {
    "malformed": "{task_status: succeeded",
    "no object": "[]",
    "wrong word": '{"task_status": "green"}',
    "no reason": '{"task_status": "failed"}',
    "another run's": '{"task_status": "succeeded", "run": "run_0000000000000000000"}',
    "oversized": json.dumps({"task_status": "succeeded", "x": "y" * 100_000}),
}


@pytest.mark.criterion("A08", "A09")
@pytest.mark.parametrize("case", BAD_CLAIMS)
def test_a_worthless_artifact_is_never_a_success(walk: Walk, case: str) -> None:
    got = status_file(walk, BAD_CLAIMS[case], "--gate", "test -f task-status.json")
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert got.exit == ("unknown", "unclaimed")
    assert "task-status.json" in got.task["verdict"]["reason"]
    assert got.task["claim"] is None


@pytest.mark.criterion("A08", "O08")
def test_a_linked_artifact_is_rejected(walk: Walk) -> None:
    elsewhere = walk.folder.parent / "elsewhere.json"
    elsewhere.write_text('{"task_status": "succeeded"}')
    agent = shell(f"touch {elsewhere} made; ln -s {elsewhere} task-status.json")
    got = walk.run("--claim-file", "task-status.json", "--gate", "test -f made", *agent)
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert got.task["verdict"]["reason"].startswith("task-status.json: ")
    assert got.task["verdict"]["proof"]["status"] == "shown", "nothing but the claim is wrong"


@pytest.mark.criterion("A09")
def test_last_nights_artifact_is_stale(walk: Walk) -> None:
    path = walk.folder / "task-status.json"
    path.write_text('{"task_status": "succeeded"}')
    os.utime(path, (time.time() - 86400,) * 2)
    got = walk.run("--claim-file", "task-status.json", "--gate", "true", *shell("true"))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "older than the attempt" in got.task["verdict"]["reason"]


@pytest.mark.criterion("F05", "N06")
def test_a_missing_artifact_is_no_claim_and_only_gates_can_find_the_work(walk: Walk) -> None:
    options = ("--claim-file", "task-status.json", "--gate", "test -f out.txt")
    silent = walk.run(*options, *shell("touch out.txt"))
    assert (silent.status, silent.exit) == (0, ("unknown", "unclaimed"))
    assert silent.task["rescued"]
    assert silent.task["claim"] is None
    idle = walk.run(*options, *shell("true"))
    assert (idle.status, idle.task["task_status"]) == (3, "needs_review")


@pytest.mark.criterion("A17")
def test_a_task_whose_artifact_is_its_status_needs_no_second_surface(walk: Walk) -> None:
    (walk.folder / "truegreen.toml").write_text(
        "[tasks.digest]\nclaim_file = 'status.json'\nartifact_is_status = true\n"
    )
    good = python("open('status.json', 'w').write('{\"task_status\": \"succeeded\"}')")
    got = walk.run("--task", "digest", *good)
    assert (got.status, got.axes) == (0, ("exited", "succeeded"))
    assert "artifact_is_status" in got.task["badges"]


@pytest.mark.criterion("A22")
def test_the_third_silent_night_is_one_item_that_counts_to_three(walk: Walk) -> None:
    for _ in range(3):
        walk.run("--gate", "test -f nope", *ONCE, *shell("true"))
    (waiting,) = walk.ledger().inbox()
    assert (waiting.item.cell, waiting.item.times) == ("silent_failure", 3)


@pytest.mark.criterion("A25", "E30")
def test_a_branch_with_the_right_prefix_is_an_artifact(git_walk: Walk) -> None:
    (git_walk.folder / "truegreen.toml").write_text(
        "[gates.branch]\nkind = 'git'\nbranch = 'agent/'\n"
    )
    subprocess.run(["git", "add", "-A"], cwd=git_walk.folder, check=True)
    who = "git -c user.name=a -c user.email=a@example.org"
    work = f"echo x > x && git add -A && {who} commit -qm work"
    wrong = git_walk.run("--gate", "branch", *ONCE, *shell(work))
    assert (wrong.status, wrong.cell) == (1, "silent_failure")
    right = git_walk.run(
        "--gate", "branch", *ONCE, *shell(f"git checkout -qb agent/fix && echo y > y && {work}")
    )
    assert right.status == 0, right.task["verdict"]


@pytest.mark.criterion("A23")
def test_an_agent_whose_own_agents_failed_in_part_is_degraded_whatever_the_verdict(
    walk: Walk,
) -> None:
    lines = []
    for name, word in {"a": "completed", "b": "failed", "c": "stopped"}.items():
        event = {"type": "system", "task_id": name}
        lines += [
            {**event, "subtype": "task_started", "task_type": "local_agent", "description": name},
            {**event, "subtype": "task_notification", "status": word},
        ]
    stream = init(), *lines, said("ok"), result("all done")
    got = walk.run("--gate", "test -f made", *walk.claude(*stream, before="open('made', 'w')"))
    census = {"ok": 1, "failed": 1, "unknown": 0, "skipped": 1}
    assert (got.status, got.task["layers"]["children"]) == (0, {"state": "degraded", **census})
    shown = walk.tg("show", got.task["id"]).out
    assert "children degraded" in " ".join(shown.split())
    assert "children  1 ok, 1 failed, 1 skipped" in shown
    alone = walk.run("--gate", "true", *walk.claude(init(), said("ok"), result("all done")))
    assert "children" not in alone.task["layers"]
