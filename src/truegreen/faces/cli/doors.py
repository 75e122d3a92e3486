"""`guard`, `credential` and `hook`: the doors that agents and their clients come through.

What is typed as usual is answered before this is loaded; here are the help, and `--json`.
"""

from __future__ import annotations

import click

from truegreen.doors import event as own
from truegreen.doors.guard import OPERATIONS, credential, guard
from truegreen.errors import InvalidInput, raised
from truegreen.faces.cli.frame import Frame, command
from truegreen.work.agents.hooks import EVENTS


@command(
    "guard",
    "truegreen guard -- git push origin main",
    "truegreen guard -- terraform apply",
)
@click.argument("words", nargs=-1, required=True, metavar="COMMAND...")
def guard_command(frame: Frame, words: tuple[str, ...]) -> int:
    """Inside a run: run a command, if this run may still act and the command is approved.

    The command takes this process over. Exit status: the command's own; 2 refused, 126 and 127 as
    a shell says them.
    """
    code, _, err = guard(list(words))
    return _refused(frame, code, err)


# The answer is git's or the client's, in its own words: there is no other way to give it.


@command(
    "credential",
    "git config credential.helper '!truegreen credential'",
    "printf 'protocol=https\\nhost=github.com\\n\\n' | truegreen credential get",
)
@click.argument("operation", type=click.Choice(OPERATIONS))
def credential_command(_frame: Frame, operation: str) -> int:
    """Inside a run: lend git the password of a host that the agent's `credentials` name.

    It speaks git's own protocol on standard input and output, whatever is asked for.
    """
    _, out, err = credential(operation)
    click.echo(err.decode(), nl=False, err=True)
    click.echo(out.decode(), nl=False)
    return 0


@command(
    "hook",
    "truegreen hook PreToolUse < event.json",
    "truegreen hook BeforeTool --client gemini < event.json",
)
@click.argument("event")
@click.option(
    "--client",
    type=click.Choice(tuple(EVENTS)),
    default="claude-code",
    show_default=True,
    help="Whose protocol it is.",
)
def hook_command(frame: Frame, event: str, client: str) -> int:
    """Answer an event of an agent's client, as its own protocol wants it.

    Exit status: 0 go on, 2 no. `truegreen install` puts a faster way to call it into a client.
    """
    known = EVENTS[client]
    if event not in (*known, *own.DECIDING, *own.AFTERWARDS, *own.NOTIFYING):
        raise InvalidInput(f"{client} has no event {event!r}: {', '.join(known)}", allowed=known)
    own.main([client, event, frame.load().state_dir])
    return 0


def _refused(frame: Frame, code: int, err: bytes) -> int:
    words = err.decode("utf-8", "replace")
    if not frame.json:
        click.echo(words, nl=False, err=True)
        return code
    name, _, message = words.removeprefix("truegreen: ").strip().partition(": ")
    raise raised({"code": name, "message": message})


COMMANDS = {"guard": guard_command, "credential": credential_command, "hook": hook_command}
