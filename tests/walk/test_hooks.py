"""Hooks in a whole run: put in, called, told of, left out, and what they are not needed for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.walk.conftest import Outcome, Walk, init, result, said, shell

# A client that honours its settings: it calls its hooks as the real one does, in exec form.
CLIENT = """
import json, os, subprocess
words = sys.argv
path = words[words.index("--settings") + 1] if "--settings" in words else ""
hooks = json.load(open(path))["hooks"] if path else {}
def fire(event, **more):
    for group in hooks.get(event, []):
        for hook in group["hooks"]:
            asked = json.dumps({"session_id": "11111111-1111-4111-8111-111111111111", **more})
            done = subprocess.run([hook["command"], *hook["args"]], input=asked.encode(),
                                  capture_output=True, timeout=hook["timeout"])
            print(json.dumps({"type": "x", "event": event, "code": done.returncode}), flush=True)
            return done.returncode, done.stdout.decode(), done.stderr.decode()
    return 0, "", ""
def bash(line):
    call = {"tool_name": "Bash", "tool_input": {"command": line}, "tool_use_id": line}
    if fire("PreToolUse", **call)[0] == 2:
        return
    code = subprocess.run(["sh", "-c", line]).returncode
    if code:
        fire("PostToolUseFailure", error=f"Exit code {code}", **call)
    else:
        fire("PostToolUse", tool_response={"stdout": ""}, **call)
fire("SessionStart")
"""
LINES = (init(), said("On it."), result("I am done."))


def played(walk: Walk, code: str, *options: str, **environ: str) -> Outcome:
    words = walk.claude(*LINES, before=CLIENT + code)
    return walk.run("--max-attempts", "1", *options, *words, **environ)


def test_a_client_that_calls_its_hooks_tells_what_it_ran(walk: Walk) -> None:
    got = played(walk, "bash('true')\nbash('exit 7')")
    facts = got.latest["facts"]
    assert facts["hooks"] == "fired"
    assert facts["commands"]["last"] == [
        {"command": "true", "code": 0},
        {"command": "exit 7", "code": 7},
    ]
    shown = walk.tg("show", got.task["id"]).out
    assert "2 run, 1 failed (told by the client's hooks, proven by nothing)" in shown
    assert "exit 7  exit 7" in shown
    log = Path(facts["log"]).parent / "commands.jsonl"
    assert [json.loads(line)["code"] for line in log.read_text().splitlines()] == [0, 7]


def test_secrets_are_taken_out_of_the_commands(walk: Walk) -> None:
    key = "a-key-that-nobody-should-see"
    code = "bash('true ' + os.environ['ANTHROPIC_API_KEY'])\nbash('true ' + open(os.environ["
    code += "'TRUEGREEN_TOKEN_FILE']).read())\nbash('true ghp_' + 'a' * 36)"
    got = played(walk, code, ANTHROPIC_API_KEY=key)
    told = got.latest["facts"]["commands"]["last"]
    assert [each["command"] for each in told] == ["true [redacted]"] * 3


def test_a_client_that_calls_none_of_its_hooks_is_said_so_once(walk: Walk) -> None:
    words = walk.claude(*LINES)
    answer = walk.tg("run", "--max-attempts", "1", *words)
    assert answer.err.count("called none of its hooks") == 1
    got = walk.run("--max-attempts", "1", *words)
    assert got.latest["facts"]["hooks"] == "silent"
    assert got.axes == ("exited", "succeeded") or got.task["task_status"] == "needs_review"


def test_settings_that_the_agent_changed_are_noticed(walk: Walk) -> None:
    got = played(walk, "open(path, 'w').write('{}')")
    assert got.latest["facts"]["hooks"] == "altered"
    assert "altered" in walk.tg("show", got.task["id"]).out


def test_hooks_can_be_left_out(walk: Walk) -> None:
    terms = walk.folder.parent / "truegreen.toml"
    terms.write_text('[agents.x]\nhooks = false\ncommand = ["claude", "-p", "{goal}"]\n')
    walk.client("claude", *LINES, before=CLIENT + "assert not path, words")
    got = walk.run("--config", terms, "--agent", "x", "--goal", "do it", "--max-attempts", "1")
    assert got.exit[0] == "done"
    assert "hooks" not in got.latest["facts"]


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ('adapter = "codex"\ncommand = ["codex", "exec", "{goal}"]', "codex calls no address"),
        (
            'network = false\ncommand = ["claude", "-p", "{goal}"]',
            "a jail without a network has no way",
        ),
    ],
)
def test_who_can_t_post_is_said_so(walk: Walk, agent: str, why: str) -> None:
    terms = walk.folder.parent / "truegreen.toml"
    terms.write_text(f'[agents.x]\nhooks = "http"\n{agent}\n')
    for program in ("claude", "codex"):
        walk.client(program, *LINES)
    words = ("--config", str(terms), "--agent", "x", "--goal", "do it", "--max-attempts", "1")
    answer = walk.tg("run", *words)
    assert f"its hooks are commands, not posted: {why}" in answer.err


def test_a_command_that_is_no_client_gets_nothing(walk: Walk) -> None:
    got = walk.run("--max-attempts", "1", *shell("env | grep -c SETTINGS; true"))
    assert "hooks" not in got.latest["facts"]


@pytest.mark.criterion("D02")
def test_approvals_hold_without_the_client_knowing_of_them(walk: Walk) -> None:
    terms = walk.folder.parent / "truegreen.toml"
    terms.write_text('[defaults]\napprovals = ["touch pushed"]\n')
    got = played(walk, "bash('touch pushed')", "--config", str(terms))
    assert got.exit == ("blocked", "approval_checkpoint")
    assert not (walk.folder / "pushed").exists()


@pytest.mark.criterion("N05", "E03")
def test_a_stop_is_checked_under_the_same_budget_as_ever(walk: Walk) -> None:
    """Sent back by its hook once for each tree, and by the host for one that did not change."""
    terms = walk.folder.parent / "truegreen.toml"
    terms.write_text(
        '[gates.three]\ncommand = ["sh", "-c", "test $(wc -l < n) -ge 3"]\nfast = true\n'
        '[defaults]\ngates = ["three"]\nbudget = { reentries = 4 }\n'
    )
    code = """
answers = []
for _ in range(9):
    bash("echo x >> n")
    answers.append(fire("Stop", last_assistant_message="done")[1])
    if not answers[-1]:
        break
open("answers", "w").write(json.dumps(answers))
"""
    got = played(walk, code, "--config", str(terms))
    assert got.status == 0, got.task
    answers = json.loads((walk.folder / "answers").read_text())
    assert [json.loads(each)["decision"] for each in answers[:-1]] == ["block", "block"]
    assert answers[-1] == ""
    assert got.task["budget"]["reentries"] == [2, 4]
    assert "stints" not in got.latest["facts"]


@pytest.mark.criterion("N05", "E03")
def test_an_unchanged_tree_is_sent_back_by_its_hook_once(walk: Walk) -> None:
    terms = walk.folder.parent / "truegreen.toml"
    terms.write_text(
        '[gates.no]\ncommand = ["false"]\nfast = true\n'
        '[defaults]\ngates = ["no"]\nbudget = { reentries = 2 }\n'
    )
    told = walk.folder.parent / "answers"  # in the workspace it would be another tree
    code = f"for _ in range(3): open({str(told)!r}, 'a').write(fire('Stop')[1][:9] + chr(10))"
    got = played(walk, code, "--config", str(terms))
    assert got.exit == ("max_iterations", "reentry_cap")
    assert got.task["budget"]["reentries"] == [2, 2]
    answers = told.read_text().split("\n")[:-1]
    assert [bool(each) for each in answers] == [True, False, False] + [False] * 3


@pytest.mark.criterion("G24")
def test_git_in_a_run_borrows_a_password_that_its_log_does_not_show(walk: Walk) -> None:
    home = walk.folder.parent / "home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text("[credential]\n\thelper = store\n")
    (home / ".git-credentials").write_text("https://ana:p4ssw0rd-of-ana@git.example\n")
    terms = walk.folder.parent / "truegreen.toml"
    ask = "printf 'protocol=https\\\\nhost=%s\\\\n\\\\n' $1 | git credential fill > $1 2>&1; cat $1"
    terms.write_text(
        f'[agents.x]\nhome = "private"\ncredentials = ["git.example"]\n'
        f'command = ["sh", "-c", "for h in git.example other.example; do set -- $h; {ask}; done"]\n'
    )
    got = walk.run("--config", terms, "--agent", "x", "--max-attempts", "1", HOME=str(home))
    assert "password=p4ssw0rd-of-ana" in (walk.folder / "git.example").read_text()
    assert "p4ssw0rd" not in (walk.folder / "other.example").read_text()
    log = Path(got.latest["facts"]["log"]).read_text()
    assert "username=ana" in log
    assert "p4ssw0rd" not in log


def test_a_private_home_that_hides_the_interpreter_leaves_the_hooks_out(walk: Walk) -> None:
    terms = walk.folder.parent / "truegreen.toml"
    command = [str(walk.bin / walk.client("claude", *LINES)), "-p", "{goal}"]
    terms.write_text(f'[agents.x]\nhome = "private"\ncommand = {json.dumps(command)}\n')
    home = Path(sys.base_prefix).parent
    words = ("run", "--config", terms, "--agent", "x", "--goal", "do it", "--max-attempts", "1")
    answer = walk.tg(*words, HOME=str(home))
    assert "gets no hooks: a private home hides" in answer.err
