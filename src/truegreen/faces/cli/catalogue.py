"""Every command by name, where it lives and what it is for: enough for help, without loading one.

Neither click nor any room of the house is imported here.
"""

from __future__ import annotations

GROUPS = {
    "Run work": {
        "up": ("up", "dashboard, scheduler and seats in one process, until it is stopped"),
        "run": ("run", "create a task and take it to a verdict, here and now"),
        "add": ("run", "create a queued task"),
        "attempt": ("run", "carry out a queued task here and now"),
        "hold": ("announcing", "let a queued task wait for something more"),
        "announce": ("announcing", "say what tasks wait for; inside a run, from its task, too"),
        "scheduler": ("scheduling", "carry out queued tasks, and wake agents, until it is stopped"),
        "routine": ("routines", "schedules and cycles: list, show, run now, pause, resume"),
        "worker": ("working", "seats on this host, one of many on a store; SIGTERM drains it"),
        "wait": ("waiting", "until tasks are settled or need a person"),
        "gate": ("verification", "run one gate now"),
        "evaluators": (
            "evaluators",
            "the judges that are set; probe: ask one about known bad work",
        ),
        "verify": ("verification", "check again what the latest run of a task left"),
    },
    "Look at the work": {
        "list": ("tasks", "tasks on both axes, silent failures first"),
        "show": ("tasks", "everything about one task"),
        "why": ("queue", "what holds a queued task back first, and what leads on"),
        "breakers": ("budgets", "what holds tasks back after failures alike; close: let them go"),
        "limits": ("budgets", "what all may spend together, and what of it is spent"),
        "workers": ("working", "who offers seats on which host, what is queued, who fell silent"),
        "log": ("logs", "what the agent of a run wrote; --follow waits for more"),
        "events": ("events", "the history, of one task or of all; --follow waits for more"),
        "matrix": ("matrix", "how runs ended against what the work is worth, in numbers"),
        "top": ("top", "all of it live in a terminal, with keys to act; --once for a pipe"),
        "inbox": ("inbox", "what waits for a person, most urgent first; --group: by cause"),
        "receipt": (
            "receipts",
            "a task's signed receipt; verify checks one with public keys alone",
        ),
        "audit": ("audit", "what agents claimed against what was found; --html writes a page"),
        "agents": (
            "agents",
            "the agents that are known; agents show: one with its post",
        ),
        "junit": ("outlets", "a JUnit report of tasks: a test case for each check"),
        "web": ("up", "the dashboard and the HTTP API alone, until it is stopped"),
        "login": ("login", "a link that logs one browser in, for a server that runs"),
    },
    "Recover": {
        "send": ("agents", "leave a message for an agent; --wake wakes it to read it"),
        "resume": ("agents", "let an agent go on in its own conversation, now or later"),
        "retry": ("recovery", "queue a task again, also one that is settled"),
        "waive": ("queue", "let a task do without something that it waits for"),
        "unblock": ("recovery", "queue a blocked task again, in another mode if asked"),
        "approve": ("people", "let a task go on that waits for an approval"),
        "reject": ("people", "say no instead: it is blocked, or called off before it began"),
        "review": ("people", "decide what checks could not; or overturn what they accepted"),
        "ack": ("inbox", "take an item of the inbox: you look into it"),
        "snooze": ("inbox", "put an item off; it comes back by itself"),
        "resolve": ("inbox", "take an item out of the inbox: it is dealt with"),
        "stop": ("recovery", "end the run of a task; --force seals the task for ever"),
        "cancel": ("recovery", "call a task off"),
        "terminate": ("terminate", "end a task or an agent for ever; --all is the kill switch"),
        "freeze": ("terminate", "let nothing start any more, in the whole store"),
        "thaw": ("terminate", "let runs start again"),
    },
    "Inside a run, for the agent": {
        "done": ("claims", "declare the work done; checks decide whether it is"),
        "fail": ("claims", "declare that it failed"),
        "blocked": ("claims", "declare that it can't go on without somebody"),
        "noop": ("claims", "declare that there was nothing to do"),
        "checkpoint": ("claims", "ask for approval before an action"),
        "guard": ("doors", "run a command if this run may still act, and the command is approved"),
        "credential": ("doors", "git's credential helper: lends a password to a live run"),
        "hook": ("doors", "answer an event of the agent's client, by its own protocol"),
    },
    "Keep house": {
        "doctor": ("house", "examine settings, store and history; exit 5 when something is wrong"),
        "migrate": ("house", "create or upgrade the store; --repair puts wrecked guards back"),
        "backup": ("house", "copy the store into a new file while it is in use"),
        "config": ("settings", "the settings in force and where each comes from"),
        "outlets": ("outlets", "where news goes, and what did not get there; test: try one"),
        "token": ("tokens", "create, list and revoke access tokens"),
        "install": (
            "install",
            "hooks and tools in the settings of a client: shown, written, seen to fire",
        ),
        "mcp": ("mcp", "serve the tools of agents and leads to an MCP client"),
    },
    "Know the words": {
        "demo": ("demo", "scripted agents play the failures that truegreen is for"),
        "states": ("states", "statuses, what they mean, and every edge between them"),
        "completion": ("settings", "the completion script for bash, zsh or fish"),
        "version": ("settings", "the version of this program"),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

SHARED = {
    "--json": "one JSON document on stdout and nothing else",
    "--store URL": "the store; default $TRUEGREEN_STORE, else SQLite in your state directory",
    "--config FILE": "the settings; default truegreen.toml, found upward",
    "--help": "what a command does, with examples",
}

_HEAD = """\
truegreen: green means the work is done.

Usage: truegreen COMMAND [OPTIONS]
"""
_TAIL = """
Examples
  truegreen run --gate "pytest -q" --protect "tests/**" -- claude -p "fix the parser"
  truegreen list --cell silent_failure     green runs over undone work
  truegreen show tsk_0c                    any unique beginning of an id will do
  truegreen states                         what the words and colours mean

Exit status: 0 fine, 2 usage or refused, 5 store or surroundings, 70 internal error, 130 interrupted
Of run, attempt, resume, wait, verify: 0 succeeded and nothing else, 1 failed, 3 a person is needed,
4 cap hit, 5 infrastructure, 6 canceled or terminated, 75 deferred or not settled yet
"""


def root_help() -> str:
    """What `truegreen --help` says."""
    sections = {
        **{title: {n: e[1] for n, e in group.items()} for title, group in GROUPS.items()},
        "Every command takes": SHARED,
    }
    lines = [_HEAD]
    for title, entries in sections.items():
        lines += [title, *(f"  {name:<14} {words}" for name, words in entries.items()), ""]
    return "\n".join(lines).rstrip() + "\n" + _TAIL
