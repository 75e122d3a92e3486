"""Every command by name, where it lives and what it is for: enough for help, without loading one.

Neither click nor any room of the house is imported here.
"""

from __future__ import annotations

GROUPS = {
    "Look at the work": {
        "list": ("tasks", "tasks on both axes, silent failures first"),
        "show": ("tasks", "everything about one task"),
        "events": ("events", "the history, of one task or of all; --follow waits for more"),
    },
    "Keep house": {
        "doctor": ("house", "examine settings, store and history; exit 5 when something is wrong"),
        "migrate": ("house", "create or upgrade the store; --repair puts wrecked guards back"),
        "backup": ("house", "copy the store into a new file while it is in use"),
        "config": ("settings", "the settings in force and where each comes from"),
        "token": ("tokens", "create, list and revoke access tokens"),
    },
    "Know the words": {
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
  truegreen list --cell silent_failure     green runs over undone work
  truegreen show tsk_0c                    any unique beginning of an id will do
  truegreen states                         what the words and colours mean

Exit status: 0 fine, 2 usage or refused, 5 store or surroundings, 70 internal error, 130 interrupted
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
