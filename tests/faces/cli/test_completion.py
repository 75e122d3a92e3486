"""The Tab key in real shells."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.conftest import missing
from tests.faces.conftest import SCRIPT, Furnished, Run
from tests.record.lives import opened
from tests.table import each_row
from truegreen.faces.cli.offers import MOST, PATIENCE_SECONDS
from truegreen.faces.cli.root import make_root
from truegreen.model import TaskStatus
from truegreen.record.ledger import Filter, open_ledger

BASH = """
eval "$({name} completion bash)"
COMP_WORDS=({typed}); COMP_CWORD={last}
compopt() {{ :; }}
_{name}_completion {name}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
autoload -Uz compinit && compinit -u -D
eval "$({name} completion zsh)"
words=({typed}); CURRENT={current}
_describe() {{ local -a found; found=("${{(@P)3}}"); print -l -- "${{found[@]%%:*}}"; }}
compadd() {{ print -l -- "${{(@P)${{@[-1]}}}}"; }}
_{name}_completion
"""
FISH = "{name} completion fish | source; complete -C '{line}'"


def typed(shell: str, line: str) -> set[str]:
    """What is offered after a line."""
    program = shutil.which(shell)
    if program is None:
        missing(shell)
    words = line.split(" ")
    fill = {
        "name": words[0],
        "line": line,
        "typed": " ".join(word or "''" for word in words),
        "last": len(words) - 1,
        "current": len(words),
    }
    template = {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell]
    quiet = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [program, *quiet, "-c", template.format(**fill)],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return {text.split("\t")[0] for text in done.stdout.splitlines() if text}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize("line", ["truegreen list --stat", "tg list --stat"])
def test_a_real_shell_completes_both_names(shell: str, line: str) -> None:
    assert typed(shell, line) == {"--status"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_real_shell_offers_the_ids_of_tasks(shell: str, furnished: Furnished) -> None:
    task = furnished.tasks[TaskStatus.BLOCKED]
    assert typed(shell, "truegreen unblock ") == {task}
    assert typed(shell, f"truegreen show {task[:-1]}") == {task}


@pytest.mark.parametrize(
    "line", ["runn --ga", "token revok x", "list --statsu fa", "run --gate true -- cl"]
)
def test_after_a_typo_the_tab_key_offers_nothing_and_never_a_traceback(line: str, tg: Run) -> None:
    words = f"truegreen {line}"
    answer = tg(
        _TRUEGREEN_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split()) - 1),
    )
    assert answer.status == 0, answer
    assert answer.err == ""


# --- ids and names


def offered(tg: Run, line: str, **changes: str) -> list[str]:
    """What bash is told after a line; its last word is the one that is completed."""
    words = f"truegreen {line}"
    count = str(len(words.split(" ")) - 1)
    answer = tg(_TRUEGREEN_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count, **changes)
    assert (answer.status, answer.err) == (0, ""), answer
    return [text.split(",", 1)[1] for text in answer.out.split("\n") if text]


def test_a_database_that_does_not_answer_holds_up_nobody_at_the_tab_key(
    environ: Callable[..., dict[str, str]],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it listens, and never says a word
        port = silent.getsockname()[1]
        settings = environ(
            TRUEGREEN_STORE=f"postgresql://nobody@127.0.0.1:{port}/x",
            _TRUEGREEN_COMPLETE="bash_complete",
            COMP_WORDS="truegreen show tsk_",
            COMP_CWORD="2",
        )
        began = time.monotonic()
        done = subprocess.run([SCRIPT], env=settings, capture_output=True, check=True, timeout=30)
        took = time.monotonic() - began
    assert done.stdout.strip() + done.stderr == b""
    assert took < PATIENCE_SECONDS + 3, "the driver itself gives up after five seconds"


def test_ids_are_offered_from_a_database_that_answers(
    tg: Run, furnished_anywhere: Furnished
) -> None:
    task = furnished_anywhere.tasks[TaskStatus.BLOCKED]
    assert offered(tg, "unblock ") == [task]


EVERY_TASK = (
    *("show ", "log ", "events ", "wait ", "verify ", "retry ", "junit ", "review ", "terminate "),
    *("receipt show ", "receipt export ", "add --depends-on ", "receipt verify x --task "),
    "waive tsk_1 --needs ",
)
ONLY = {
    "attempt ": (TaskStatus.QUEUED,),
    "why ": (TaskStatus.QUEUED,),
    "waive ": (TaskStatus.QUEUED,),
    "unblock ": (TaskStatus.BLOCKED,),
    "approve ": (TaskStatus.AWAITING_APPROVAL,),
    "reject ": (TaskStatus.AWAITING_APPROVAL,),
    "stop ": (TaskStatus.RUNNING, TaskStatus.AWAITING_APPROVAL),
}


@each_row("line", EVERY_TASK)
def test_a_task_is_offered_wherever_one_is_wanted(line: str, tg: Run, furnished: Furnished) -> None:
    known = [task.id for task in open_ledger(furnished.url).page().tasks]
    assert sorted(offered(tg, f"{line}tsk_")) == sorted(known)


@each_row("line", ONLY)
def test_where_only_some_statuses_will_do_only_those_are_offered(
    line: str, tg: Run, furnished: Furnished
) -> None:
    ledger = open_ledger(furnished.url)
    known = {task.id for task in ledger.page(Filter(ONLY[line])).tasks}
    assert set(offered(tg, line)) == known


def test_what_is_settled_is_not_offered_to_cancel(tg: Run, furnished: Furnished) -> None:
    found = offered(tg, "cancel ")
    assert furnished.tasks[TaskStatus.QUEUED] in found
    assert furnished.tasks[TaskStatus.SUCCEEDED] not in found


@pytest.mark.parametrize(
    "line", ["agents show ", "agents calloff ", "send ", "resume ", "terminate ", "list --agent "]
)
def test_agents_are_offered_by_id(line: str, tg: Run, furnished: Furnished) -> None:
    known = {agent.id for agent in open_ledger(furnished.url).agents()}
    assert set(offered(tg, f"{line}agt_")) == known


@pytest.mark.usefixtures("furnished")
def test_what_an_agent_did_can_be_asked_for_by_its_name(tg: Run) -> None:
    assert offered(tg, "list --agent cod") == ["coder"]


def test_a_run_is_offered_by_the_beginning_of_its_id(tg: Run, furnished: Furnished) -> None:
    ledger = open_ledger(furnished.url)
    run = ledger.dossier(furnished.tasks[TaskStatus.SUCCEEDED]).runs[0].id
    assert offered(tg, f"log {run[:-1]}") == [run]


def test_tokens_that_open_something_are_offered(tg: Run, furnished: Furnished) -> None:
    for name in ("eve", "bob"):
        tg("token", "create", "--role", "viewer", "--name", name)
    gone, left = (token["id"] for token in tg("token", "list", "--json").json()["tokens"])
    tg("token", "revoke", gone)
    assert offered(tg, "token revoke ") == [left]


SETTINGS = """
[agents.coder]
command = ["true"]
[gates.tests]
command = ["true"]
[evaluators.judge]
command = ["true"]
[tasks.fix]
agent = "coder"
[[notify]]
name = "ops"
command = ["true"]
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("run --agent ", "coder"),
        ("add --task ", "fix"),
        ("run --gate ", "tests"),
        ("gate ", "tests"),
        ("run --evaluator ", "judge"),
        ("evaluators probe ", "judge"),
        ("outlets test ", "ops"),
    ],
)
def test_names_of_the_settings_are_offered_also_where_there_is_no_store(
    line: str, name: str, tg: Run, tmp_path: Path
) -> None:
    (tmp_path / "truegreen.toml").write_text(SETTINGS)
    assert offered(tg, line, TRUEGREEN_STORE=f"sqlite://{tmp_path}/none.db") == [name]


def test_the_tab_key_makes_no_store(tg: Run, tmp_path: Path) -> None:
    store = tmp_path / "none.db"
    assert offered(tg, "show ", TRUEGREEN_STORE=f"sqlite://{store}") == []
    assert not store.exists()


@pytest.mark.parametrize(
    "store", ["sqlite:///nowhere/at/all.db", "postgresql://nobody@127.0.0.1:1/none", "nonsense://x"]
)
def test_where_no_store_can_be_asked_nothing_is_offered_and_nothing_said(
    store: str, tg: Run
) -> None:
    assert offered(tg, "show ", TRUEGREEN_STORE=store) == []


def test_the_store_of_the_line_is_the_one_that_is_asked(
    tg: Run, furnished: Furnished, tmp_path: Path
) -> None:
    other = f"sqlite://{tmp_path / 'other.db'}"
    task = tg("add", "--store", other, "--json", "--", "true").json()["id"]
    assert offered(tg, f"show --store {other} ") == [task]
    assert offered(tg, f"--store {other} show ") == [task]


def test_few_are_looked_at_and_an_older_one_is_found_by_more_of_its_id(
    tg: Run, furnished: Furnished
) -> None:
    ledger = open_ledger(furnished.url)
    newer = [opened(ledger).id for _ in range(MOST)]
    old = furnished.tasks[TaskStatus.QUEUED]
    assert sorted(offered(tg, "why ")) == sorted(newer)
    assert offered(tg, f"why {old[:-1]}") == [old]


def test_a_shell_that_shows_help_is_told_what_each_is(tg: Run, furnished: Furnished) -> None:
    task = opened(open_ledger(furnished.url), title="fix the parser").id
    words = {"COMP_WORDS": f"truegreen show {task}", "COMP_CWORD": "2"}
    out = tg(_TRUEGREEN_COMPLETE="zsh_complete", **words).out
    assert out.splitlines() == ["plain", task, "queued · fix the parser"]


WANTED = {"TASK", "TASK...", "TASK|AGENT", "RUN|TASK", "AGENT", "WAKE|AGENT"}


def test_whatever_takes_an_id_offers_some() -> None:
    """A new command can't forget it."""
    silent = [
        f"{path} {param.name}"
        for path, command in _walked(make_root(), "truegreen")
        for param in command.params
        if (param.metavar or (param.name or "").upper()) in WANTED
        and param._custom_shell_complete is None
    ]
    assert silent == []


def _walked(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    found = [(path, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below
            found += _walked(below, f"{path} {name}")
    return found
