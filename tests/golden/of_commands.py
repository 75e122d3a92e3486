"""Every command on the furnished store: its JSON document, its plain text and its exit status.

A scene is a row of commands on one fresh copy of the store. It is played twice: with `--json` and
without. A word in capitals stands for an id: `TASK:failed` is the furnished task in that status,
`AGENT:coder` the furnished agent of that name, `ITEM:failed` the inbox item about that task, and
`NEW:tok` the latest id of that kind which a command of the scene printed.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator

from tests.faces.conftest import Answer
from tests.golden.normalise import ID
from tests.golden.scratch import Scratch, shown, told

STATUSES = (
    *("queued", "running", "awaiting_approval", "pending_eval", "failed_pending_eval"),
    *("pending_qa", "needs_review", "blocked", "succeeded", "failed", "canceled", "terminated"),
)
HELP_IS_ENOUGH = {"up", "web", "worker", "mcp", "demo"}
"""Servers, which run until they are stopped; and a demo, which takes its time."""
ELSEWHERE = {"install"}
"""Recorded with the clients that it is for."""
FAMILIES = {"receipt", "routine", "token"}
"""They do nothing without a command below them."""

Scene = list[tuple[str, str]]
"""The name of each document and the command line; without a name the answer is not recorded."""

READING: Scene = [
    ("list", "list"),
    ("list-status", "list --status failed --status blocked"),
    ("list-cell", "list --cell silent_failure"),
    ("list-search", "list --search parser --limit 3"),
    ("list-nothing", "list --role nobody"),
    *((f"show-{status}", f"show TASK:{status}") for status in STATUSES),
    ("why-queued", "why TASK:queued"),
    ("why-failed", "why TASK:failed"),
    ("breakers", "breakers"),
    ("limits", "limits"),
    ("workers", "workers"),
    ("log-missing", "log TASK:failed"),
    ("events", "events"),
    ("events-of-task", "events TASK:failed --limit 3"),
    ("matrix", "matrix"),
    ("matrix-since", "matrix --since 7d"),
    ("top", "top --once"),
    ("inbox", "inbox"),
    ("inbox-group", "inbox --group"),
    ("inbox-all", "inbox --all --limit 2"),
    ("audit", "audit"),
    ("agents", "agents"),
    ("agents-show", "agents show AGENT:coder"),
    ("agents-adapters", "agents adapters"),
    ("junit", "junit TASK:succeeded TASK:failed TASK:blocked"),
    ("receipt-show-succeeded", "receipt show TASK:succeeded"),
    ("receipt-show-failed", "receipt show TASK:failed"),
    ("receipt-show-running", "receipt show TASK:running"),
    ("wait-succeeded", "wait TASK:succeeded"),
    ("wait-failed", "wait TASK:failed"),
    ("wait-needs_review", "wait TASK:needs_review"),
    ("evaluators", "evaluators"),
    ("outlets", "outlets"),
    ("config", "config"),
    ("doctor", "doctor"),
    ("migrate-dry-run", "migrate --dry-run"),
    ("routine-list", "routine list"),
    ("routine-show", "routine show nightly"),
    ("token-list-empty", "token list"),
    ("states", "states"),
    ("version", "version"),
    ("login-without-a-server", "login"),
]
"""They change nothing: one copy of the store serves all of them."""

TEXTS: Scene = [
    ("config-schema", "config --schema"),
    ("states-mermaid", "states --mermaid"),
    *((f"completion-{shell}", f"completion {shell}") for shell in ("bash", "zsh", "fish")),
]
"""Text for other programs: with --json it would be the same in quotes."""

CHANGING: list[Scene] = [
    [
        ("add", "add --title later --gate true --role coder --priority 5 -- echo hello"),
        ("hold", "hold NEW:tsk --wait-for message:built --reason 'not yet'"),
        ("why-held", "why NEW:tsk"),
        ("waive", "waive NEW:tsk --needs message:built --reason 'built by hand'"),
    ],
    [
        ("", "add -- true"),
        ("", "hold NEW:tsk --wait-for message:built"),
        ("announce", "announce built 'version 2'"),
    ],
    [("add-template", "add --task tidy --depends-on TASK:queued")],
    [("gate-passed", "gate true"), ("gate-failed", "gate 'test -f nothing'")],
    [("send", "send AGENT:coder hello"), ("agents-show-unread", "agents show AGENT:coder")],
    [
        ("send-wake", "send AGENT:coder hello --wake"),
        ("agents-calloff", "agents calloff AGENT:coder --reason 'dealt with'"),
    ],
    [
        ("resume-later", "resume AGENT:writer --message 'go on' --in 15m"),
        ("agents-woken", "agents"),
    ],
    [("retry", "retry TASK:failed --reason 'once more' --more-attempts 1")],
    [("unblock", "unblock TASK:blocked --mode assisted --reason 'mended'")],
    [("approve", "approve TASK:awaiting_approval --reason 'looked at it'")],
    [("reject", "reject TASK:awaiting_approval --reason no")],
    [("review-accept", "review TASK:needs_review --accept --reason 'I read it'")],
    [("review-reject", "review TASK:needs_review --reject --reason 'wrong'")],
    [("review-overturn", "review TASK:succeeded --reject --reason 'it breaks'")],
    [("ack", "ack ITEM:failed"), ("inbox-acknowledged", "inbox")],
    [("snooze", "snooze ITEM:blocked --for 4h --group"), ("inbox-snoozed", "inbox --snoozed")],
    [("resolve", "resolve ITEM:failed --outcome 'dealt with'")],
    [("stop-not-running", "stop TASK:failed")],
    [("stop-force", "stop TASK:queued --force --reason 'out of hand'")],
    [("cancel", "cancel TASK:queued --reason 'not needed'")],
    [("terminate-dry-run", "terminate TASK:failed --dry-run")],
    [
        ("terminate", "terminate TASK:failed --reason 'out of hand'"),
        ("terminate-again", "terminate TASK:failed"),
    ],
    [("terminate-agent", "terminate AGENT:coder")],
    [("terminate-all", "terminate --all --yes --freeze --reason stop")],
    [
        ("freeze", "freeze --reason 'something is wrong'"),
        ("attempt-frozen", "attempt TASK:queued"),
        ("thaw", "thaw --reason 'all clear'"),
    ],
    [("attempt", "attempt TASK:queued")],
    [("verify-without-a-tree", "verify TASK:failed")],
    [("migrate", "migrate"), ("backup", "backup copy.db")],
    [
        ("token-create", "token create --role viewer --name eve --ttl 30d"),
        ("token-list", "token list"),
        ("token-revoke", "token revoke NEW:tok"),
    ],
    [
        ("routine-pause", "routine pause nightly --reason 'the registry is down'"),
        ("routine-resume", "routine resume nightly"),
        ("routine-run", "routine run nightly --reason 'a test'"),
        ("routine-show-run", "routine show nightly"),
    ],
    [("outlets-trust", "outlets trust"), ("outlets-once", "outlets --once")],
    [
        ("receipt-key", "receipt key"),
        ("", "receipt export TASK:failed --output receipt.json"),
        ("receipt-verify", "receipt verify receipt.json"),
        ("receipt-verify-succeeded", "receipt verify receipt.json --succeeded"),
    ],
]

REFUSED: Scene = [
    ("no-command", "lsit"),
    ("no-option", "list --statsu failed"),
    ("no-word", "list --status succeded"),
    ("no-argument", "show"),
    ("not-found", "show tsk_nothing"),
    ("ambiguous", "show tsk_1"),
    ("empty-value", "list --role ''"),
    ("illegal-move", "approve TASK:failed"),
    ("no-reason", "retry TASK:failed"),
    ("terminated", "retry TASK:terminated --reason 'once more'"),
    ("no-store", "list --store missing.db"),
    ("no-config", "config --config missing.toml"),
    ("outlets-test", "outlets test nobody"),
    ("outlets-retry", "outlets retry pst_nothing"),
    ("outlets-drop", "outlets drop nobody"),
    ("breakers-close", "breakers close brk_nothing --reason x"),
    ("evaluators-probe", "evaluators probe nobody"),
    ("hook-without-an-event", "hook PreToolUse"),
]


SCHEDULED: Scene = [("scheduler-once", "scheduler --once --seats 1")]
"""Its lines for people tell the time and how long each task took."""

OUTSIDE: Scene = [
    *((word, f"{word} --reason x") for word in ("done", "fail", "blocked", "noop")),
    ("checkpoint", "checkpoint push"),
    ("guard", "guard -- true"),
    ("credential", "credential get"),
]
"""The words of agents, where there is no run."""

RUNS: list[Scene] = [
    [
        ("succeeds", "run --gate 'test -f made' -- sh -c 'echo work; touch made'"),
        ("log", "log NEW:tsk"),
        ("verify", "verify NEW:tsk"),
        ("junit", "junit NEW:tsk"),
        ("receipt-show", "receipt show NEW:tsk"),
        ("limits", "limits"),
    ],
    [
        ("silent-failure", "run --gate 'test -f made' -- sh -c 'echo all done'"),
        ("list", "list --cell silent_failure"),
    ],
]
TWICE = (
    "touch made; truegreen guard -- echo guarded;"
    " truegreen done --reason made --tests 3/0/0 --json; truegreen fail --reason no 2>&1"
)
ANNOUNCED = "truegreen announce built x; truegreen blocked --reason key --detail permission_denied"
INSIDE: list[Scene] = [
    [
        (
            "done",
            f"run --gate 'test -f made' -- sh -c '{TWICE}'",
        ),
        ("done-log", "log NEW:tsk"),
    ],
    [("fail", "run -- sh -c 'truegreen fail --reason no'"), ("fail-log", "log NEW:tsk")],
    [
        (
            "blocked",
            f"run -- sh -c '{ANNOUNCED}'",
        ),
        ("blocked-log", "log NEW:tsk"),
    ],
    [("noop", "run -- sh -c 'truegreen noop --reason nothing'"), ("noop-log", "log NEW:tsk")],
]
"""The words of agents: what they print is in the log of the run."""


def of_commands(scratch: Scratch) -> dict[str, str]:
    """The documents of all scenes."""
    scratch.refresh()
    names = _furnished_names(scratch)
    made: dict[str, str] = {}
    for folder, scene, modes in _scenes():
        for mode in modes:
            scratch.refresh()
            made |= _played(scratch, folder, scene, mode, dict(names))
    return made


def not_covered(known: Iterable[str]) -> set[str]:
    """Commands, by their words, that no scene calls."""
    lines = [shlex.split(line) for _, scene, _ in _scenes() for _, line in scene]
    called = {" ".join(words[:n]) for words in lines for n in (1, 2)}
    kept = HELP_IS_ENOUGH | ELSEWHERE
    return {name for name in set(known) - called - FAMILIES if name.split()[0] not in kept}


def _scenes() -> Iterator[tuple[str, Scene, tuple[str, ...]]]:
    both = ("json", "txt")
    yield "cli", READING, both
    yield from (("cli", scene, both) for scene in CHANGING)
    yield "cli", TEXTS, ("txt",)
    yield "cli", SCHEDULED, ("json",)
    yield "cli/refused", REFUSED, both
    yield "cli/outside-a-run", OUTSIDE, ("txt",)
    yield from (("cli/run", scene, both) for scene in RUNS)
    yield from (("cli/run", scene, ("txt",)) for scene in INSIDE)


def _played(
    scratch: Scratch, folder: str, scene: Scene, mode: str, names: dict[str, str]
) -> dict[str, str]:
    made: dict[str, str] = {}
    for name, line in scene:
        words = [names.get(word, word) for word in shlex.split(line)]
        json_wanted = mode == "json" or not name
        answer = scratch.tg(*(["--json", *words] if json_wanted else words))
        names |= {f"NEW:{found[1]}": found[0] for found in _new(answer, set(names.values()))}
        if not name:
            assert answer.status == 0, (line, answer)
            continue
        write = told if mode == "json" else shown
        command = f"truegreen {'--json ' if mode == 'json' else ''}{line}"
        made[f"{folder}/{name}.{mode}"] = scratch.normalised(write(command, answer))
    return made


def _new(answer: Answer, known: set[str]) -> Iterator[re.Match[str]]:
    """The ids in an answer, but for known ones; the first of a kind is the last to come."""
    found = [each for each in ID.finditer(answer.out + answer.err) if each[0] not in known]
    yield from reversed(found)


def _furnished_names(scratch: Scratch) -> dict[str, str]:
    """What the words in capitals stand for; the same in every copy of the store."""
    statuses = {task: status for status, task in scratch.furnished.tasks.items()}
    names = {f"TASK:{status}": task for task, status in statuses.items()}
    for agent in json.loads(scratch.tg("agents", "--json").out)["agents"]:
        names[f"AGENT:{agent['name']}"] = agent["id"]
    for item in json.loads(scratch.tg("inbox", "--json").out)["inbox"]:
        names[f"ITEM:{statuses[item['task']]}"] = item["id"]
    return names
