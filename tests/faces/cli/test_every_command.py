"""What every command promises: plain lines, one JSON document, and refusals in both."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import SCRIPT, Answer, Furnished, Run
from tests.table import each_row
from truegreen.faces.cli.catalogue import COMMANDS, GROUPS, SHARED
from truegreen.model import TaskStatus

RIGHT: dict[str, list[str]] = {
    "run": ["run", "--gate", "test -f made", "--", "touch", "made"],
    "add": ["add", "--title", "later", "--", "true"],
    "wait": ["wait", "TASK:succeeded"],
    "why": ["why", "TASK:queued"],
    "matrix": ["matrix"],
    "scheduler": ["scheduler", "--once"],
    "workers": ["workers"],
    "agents": ["agents"],
    "send": ["send", "agt_1", "hello"],
    "agents adapters": ["agents", "adapters"],
    "retry": ["retry", "TASK", "--reason", "once more"],
    "unblock": ["unblock", "TASK:blocked"],
    "approve": ["approve", "TASK:awaiting_approval"],
    "reject": ["reject", "TASK:awaiting_approval", "--reason", "no"],
    "review": ["review", "TASK:needs_review", "--accept", "--reason", "I read it"],
    "inbox": ["inbox"],
    "top": ["top"],
    "stop": ["stop", "TASK:running", "--force"],
    "cancel": ["cancel", "TASK:queued"],
    "terminate": ["terminate", "TASK"],
    "freeze": ["freeze", "--reason", "something is wrong"],
    "thaw": ["thaw", "--reason", "all clear"],
    "gate": ["gate", "true"],
    "list": ["list"],
    "breakers": ["breakers"],
    "limits": ["limits"],
    "show": ["show", "TASK"],
    "events": ["events", "TASK", "--limit", "1"],
    "receipt show": ["receipt", "show", "TASK"],
    "receipt export": ["receipt", "export", "TASK"],
    "receipt key": ["receipt", "key"],
    "audit": ["audit"],
    "evaluators": ["evaluators"],
    "junit": ["junit", "TASK"],
    "outlets": ["outlets"],
    "outlets trust": ["outlets", "trust"],
    "doctor": ["doctor"],
    "migrate": ["migrate"],
    "backup": ["backup", "copy.db"],
    "config": ["config"],
    "token create": ["token", "create", "--role", "viewer", "--name", "eve"],
    "token list": ["token", "list"],
    "routine list": ["routine", "list"],
    "install": ["install", "claude-code", "--dry-run"],
    "states": ["states"],
    "completion": ["completion", "bash"],
    "version": ["version"],
}
ELSEWHERE = {
    "worker",
    "mcp",
    "up",
    "web",
    "login",
    "attempt",
    "resume",
    *("ack", "snooze", "resolve", "waive", "hold", "announce"),
    "verify",
    "log",
    "done",
    "fail",
    "blocked",
    "noop",
    "checkpoint",
    "guard",
    "credential",
    "hook",
    "demo",
}
"""They need a run or a server, not only a record: tests of their own show that they work."""
WRONG: dict[str, list[str]] = {
    "up": ["up", "--seats", "0"],
    "web": ["web", "--port", "65536"],
    "login": ["login"],
    "run": ["run", "--gate", "true"],
    "add": ["add", "--cap", "turns", "--", "true"],
    "attempt": ["attempt"],
    "wait": ["wait"],
    "why": ["why", "tsk_nobody"],
    "waive": ["waive", "TASK"],
    "hold": ["hold", "TASK"],
    "announce": ["announce", "Not A Topic"],
    "gate": ["gate"],
    "verify": ["verify", "tsk_nobody"],
    "log": ["log", "run_nobody"],
    "matrix": ["matrix", "--since", "yesterday"],
    "scheduler": ["scheduler", "--seats", "0"],
    "worker": ["worker", "--labels", "a b"],
    "workers": ["workers", "all"],
    "agents": ["agents", "--status", "asleep"],
    "send": ["send", "agt_1", " "],
    "resume": ["resume", "agt_1"],
    "agents adapters": ["agents", "adapters", "all"],
    "retry": ["retry", "TASK"],
    "unblock": ["unblock", "TASK:blocked", "--mode", "careless"],
    "approve": ["approve"],
    "reject": ["reject", "TASK:awaiting_approval"],
    "review": ["review", "TASK:needs_review", "--reason", "what now"],
    "inbox": ["inbox", "--limit", "0"],
    "top": ["top", "--filter", "colour=red"],
    "ack": ["ack", "inb_nobody"],
    "snooze": ["snooze", "inb_nobody", "--for", "4h", "--until", "2026-03-01"],
    "resolve": ["resolve", "inb_nobody", "--outcome", "done"],
    "stop": ["stop", "tsk_nobody"],
    "cancel": ["cancel", "a b"],
    "terminate": ["terminate", "tsk_nobody"],
    "freeze": ["freeze"],
    "thaw": ["thaw", "--reason", " "],
    "done": ["done", "--tests", "all"],
    "fail": ["fail"],
    "blocked": ["blocked"],
    "noop": ["noop"],
    "checkpoint": ["checkpoint"],
    "guard": ["guard"],
    "credential": ["credential", "take"],
    "hook": ["hook"],
    "demo": ["demo", "me"],
    "list": ["list", "--limit", "many"],
    "breakers": ["breakers", "close", "brk_none", "--reason", "x"],
    "limits": ["limits", "more"],
    "show": ["show"],
    "events": ["events", "a b"],
    "receipt": ["receipt", "shwo"],
    "receipt show": ["receipt", "show", "tsk_nobody"],
    "receipt export": ["receipt", "export", "TASK", "--force"],
    "receipt verify": ["receipt", "verify", "nothing.json"],
    "receipt key": ["receipt", "key", "mine"],
    "audit": ["audit", "--since", "yesterday"],
    "evaluators": ["evaluators", "porbe"],
    "evaluators probe": ["evaluators", "probe", "nobody"],
    "junit": ["junit"],
    "outlets": ["outlets", "tset"],
    "outlets test": ["outlets", "test", "nobody"],
    "outlets retry": ["outlets", "retry", "pst_nobody"],
    "outlets trust": ["outlets", "trust", "everybody"],
    "doctor": ["doctor", "me"],
    "migrate": ["migrate", "--rapair"],
    "backup": ["backup"],
    "config": ["config", "--shema"],
    "token create": ["token", "create", "--role", "king"],
    "token list": ["token", "list", "all"],
    "token revoke": ["token", "revoke", "tok_nobody"],
    "token": ["token", "crate"],
    "routine": ["routine", "lst"],
    "routine list": ["routine", "list", "all"],
    "routine show": ["routine", "show", "nobody"],
    "routine run": ["routine", "run", "nobody"],
    "routine pause": ["routine", "pause", "nobody"],
    "routine resume": ["routine", "resume"],
    "install": ["install", "emacs"],
    "mcp": ["mcp", "--as", "judge"],
    "states": ["states", "--mermaids"],
    "completion": ["completion", "tcsh"],
    "version": ["version", "9"],
}
TASK = {"id", "task_status", "run_status", "cell", "exit_reason", "budget", "verdict"}
SHAPES: dict[str, set[str]] = {
    "inbox": {"inbox"},
    "top": {"at", "figures", "cells", "live", "inbox", "groups", "put_off"},
    "run": TASK,
    "add": TASK,
    "wait": TASK,
    "why": {"task", "hold", "reason", "needs", "labels", "lane", "next"},
    "matrix": {"cells", "matrix", "figures", "counted", "silent_failures", "total"},
    "scheduler": {"counts", "tasks", "refused"},
    "workers": {"workers", "queue", "suspects"},
    "agents": {"agents"},
    "send": {"id", "agent", "disposition", "wakes", "at"},
    "agents adapters": {"adapters"},
    "retry": TASK,
    "unblock": TASK,
    "approve": TASK,
    "reject": TASK,
    "review": TASK,
    "stop": {"task", "agents", "outcome", "prior_status", "killed", "survivors", "fence"},
    "cancel": TASK,
    "terminate": {"task", "agents", "outcome", "prior_status", "killed", "survivors", "fence"},
    "freeze": {"frozen", "changed"},
    "thaw": {"frozen", "changed"},
    "gate": {"check", "kind", "outcome", "reason", "counts", "isolation"},
    "breakers": {"breakers"},
    "limits": {"limits"},
    "list": {"tasks", "after", "silent_failures", "total", "frozen"},
    "show": {"id", "task_status", "run_status", "claim", "verdict", "runs", "events", "next"},
    "events": {"id", "task", "event", "at", "actor"},
    "receipt show": {"envelope", "statement", "keyid"},
    "receipt export": {"payload", "payloadType", "signatures"},
    "receipt key": {"keyid", "public_key", "file", "replaced", "kept"},
    "audit": {"since", "headline"},
    "evaluators": {"evaluators"},
    "junit": {"junit"},
    "outlets": {"outlets", "posts", "warnings"},
    "outlets trust": {"file", "trusted", "run", "changes", "reach"},
    "doctor": {"healthy", "settings", "schema", "ailments"},
    "migrate": {"from", "to", "dry_run", "done"},
    "backup": {"file", "bytes", "anchor", "restore"},
    "config": {"settings", "warnings"},
    "token create": {"token", "secret"},
    "token list": {"tokens"},
    "routine list": {"routines"},
    "install": {"client", "scope", "file", "changed", "dry_run", "diff", "notes", "mcp"},
    "states": {"statuses", "edges"},
    "completion": {"shell", "script"},
    "version": {"version"},
}


def words_of(line: list[str], furnished: Furnished) -> list[str]:
    """The words, with the id of a failed task for TASK, or of one in the status that is named."""
    named = {"TASK": furnished.tasks[TaskStatus.FAILED]}
    named |= {f"TASK:{status}": task for status, task in furnished.tasks.items()}
    return [named.get(word, word) for word in line]


def test_no_command_is_forgotten_here():
    assert {name.split()[0] for name in RIGHT} == set(COMMANDS) - ELSEWHERE
    assert {name.split()[0] for name in WRONG} >= set(COMMANDS)
    assert SHAPES.keys() == RIGHT.keys()


@pytest.fixture
def small_path(small_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gates of the furnished tasks find a pytest that starts quickly."""
    monkeypatch.setenv("PATH", f"{small_python.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("own_tools", "small_path")
@pytest.mark.parametrize("name", RIGHT)
def test_plain_output_is_plain_and_succeeds(name: str, tg: Run, furnished: Furnished):
    answer = tg(*words_of(RIGHT[name], furnished))
    assert answer.status == 0, answer
    assert answer.out.strip()
    assert "\x1b" not in answer.out + answer.err


@pytest.mark.usefixtures("own_tools", "small_path")
@pytest.mark.parametrize("name", RIGHT)
def test_json_is_one_document_and_nothing_else(name: str, tg: Run, furnished: Furnished):
    answer = tg("--json", *words_of(RIGHT[name], furnished))
    assert answer.status == 0, answer
    assert answer.err == ""
    assert SHAPES[name] <= answer.json().keys()


@each_row("name", ["list", "token list", "states", "doctor"])
def test_shared_options_stand_before_or_after_the_command(
    name: str, tg: Run, furnished: Furnished, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("TRUEGREEN_STORE", raising=False)
    before = tg("--json", "--store", furnished.url, *RIGHT[name])
    after = tg(*RIGHT[name], "--store", furnished.url, "--json")
    assert before == after
    assert before.status == 0


def test_the_last_of_two_stores_counts(tg: Run, furnished: Furnished, tmp_path: Path):
    other = f"sqlite://{tmp_path}/other.db"
    assert tg("migrate", "--store", other).status == 0
    assert tg("--store", furnished.url, "list", "--json", "--store", other).json()["total"] == 0
    assert tg("--store", other, "list", "--json", "--store", furnished.url).json()["total"] > 0


MAKERS = {"run", "add", "scheduler", "outlets trust", "token create", "migrate"}
"""They have something to put into a store that is not there yet; others have nothing to look at."""
STORELESS = {
    *("agents adapters", "evaluators", "receipt key", "gate", "config", "doctor", "install"),
    *("states", "completion", "version"),
}


@each_row("name", RIGHT)
def test_only_who_has_something_to_write_makes_a_store_that_was_named(
    name: str, tg: Run, furnished: Furnished, tmp_path: Path
):
    other = tmp_path / f"mistyped {name}.db"
    answer = tg("--store", str(other), *words_of(RIGHT[name], furnished))
    assert other.exists() == (name in MAKERS), answer
    if name not in MAKERS | STORELESS:
        assert f"there is no store at {other}" in answer.err
        assert answer.status in {2, 5}


def test_a_store_that_nobody_named_is_made_by_the_first_look(tg: Run, tmp_path: Path):
    answer = tg("list", TRUEGREEN_STORE=str(tmp_path / "new.db"))
    assert (answer.status, answer.err) == (0, "")
    assert "nothing has been recorded yet" in answer.out


@each_row("name", WRONG)
def test_wrong_arguments_are_refused_in_a_sentence(name: str, called: Run, furnished: Furnished):
    answer = called(*words_of(WRONG[name], furnished))
    assert answer.status == 2, answer
    assert answer.out == ""
    assert answer.err.startswith("truegreen: ")
    assert len(answer.err.splitlines()) <= 2


@each_row("name", WRONG)
def test_wrong_arguments_are_refused_in_json(name: str, called: Run, furnished: Furnished):
    answer = called("--json", *words_of(WRONG[name], furnished))
    assert answer.status == 2, answer
    assert answer.err == ""
    body = answer.json()["error"]
    assert body["code"] in {"usage", "invalid_input", "not_found"}
    assert body["message"]
    assert isinstance(body["allowed"], list)


@each_row("name", sorted({" ".join(line.split()) for line in [*RIGHT, *WRONG]}))
def test_help_says_what_it_does_with_examples(name: str, called: Run):
    answer = called(*name.split(), "--help")
    assert answer.status == 0
    assert answer.out.startswith(f"Usage: truegreen {name}")
    assert "Examples:" in answer.out
    assert "--json" in answer.out
    assert "--store URL" in answer.out
    assert "--config FILE" in answer.out


def test_help_as_json_is_json(tg: Run):
    assert "Usage: truegreen list" in tg("list", "--help", "--json").json()["help"]


def test_root_help_names_every_command_and_shared_option(tg: Run):
    answers = [tg("--help"), tg("-h"), tg("--config", "x.toml", "--help")]
    assert {answer.status for answer in answers} == {0}
    assert len({answer.out for answer in answers}) == 1
    for name, (_, words) in COMMANDS.items():
        assert f"  {name:<14} {words}" in answers[0].out
    for word in (*GROUPS, *SHARED):
        assert word in answers[0].out
    assert max(map(len, answers[0].out.splitlines())) <= 100


def test_no_command_at_all_is_a_usage_error_with_the_help(tg: Run):
    answer = tg()
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == tg("--help").out
    assert "list" in tg("--json").error("usage")["allowed"]


@each_row(
    ("words", "nearest"),
    [
        (["lsit"], "list"),
        (["stetes"], "states"),
        (["token", "revok"], "revoke"),
        (["list", "--statsu", "failed"], "--status"),
        (["list", "--status", "succeded"], "succeeded"),
        (["list", "--cell", "silent_failur"], "silent_failure"),
        (["list", "--exit-reason", "don"], "done"),
    ],
)
def test_a_slip_of_the_finger_is_answered_with_the_nearest(
    words: list[str], nearest: str, tg: Run, furnished: Furnished
):
    answer = tg(*words)
    assert answer.status == 2
    assert "Did you mean" in answer.err
    assert nearest in answer.err
    assert nearest in tg(*words, "--json").error("usage")["allowed"]


def test_both_names_are_the_same_program(environ: Callable[..., dict[str, str]], tg: Run):
    import subprocess  # noqa: PLC0415 - only here

    short = subprocess.run(
        [SCRIPT.with_name("tg"), "version", "--json"],
        capture_output=True,
        check=True,
        env=environ(),
        text=True,
    )
    assert Answer(0, short.stdout, short.stderr) == tg("version", "--json")


@each_row("words", [["--version"], ["version"], ["version", "--store", "x.db"]])
def test_version_is_one_line(words: list[str], tg: Run):
    from truegreen import __version__  # noqa: PLC0415 - next to its use

    assert tg(*words) == Answer(0, f"truegreen {__version__}\n", "")
    document: dict[str, Any] = tg(*words, "--json").json()
    assert document["version"] == __version__


@each_row("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_for_this_program(shell: str, tg: Run):
    script = tg("completion", shell).out
    assert "_TRUEGREEN_COMPLETE" in script
    assert f"{shell}_complete" in script


@each_row(
    ("typed", "offered"),
    [
        ("truegreen sta", {"states"}),
        ("truegreen list --stat", {"--status"}),
        ("truegreen list --status succ", {"succeeded"}),
        ("truegreen token re", {"revoke"}),
        ("truegreen completion f", {"fish"}),
    ],
)
def test_the_tab_key_offers_words(typed: str, offered: set[str], tg: Run):
    answer = tg(
        _TRUEGREEN_COMPLETE="bash_complete",
        COMP_WORDS=typed,
        COMP_CWORD=str(len(typed.split()) - 1),
    )
    assert {line.split(",")[1] for line in answer.out.splitlines()} == offered
