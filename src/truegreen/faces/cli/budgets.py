"""`breakers` and `limits`: what holds over everybody, and how a person lets it go on."""

from __future__ import annotations

import click

from truegreen.faces.budgets import breaker_document, limit_document
from truegreen.faces.cli.frame import Frame, command, family, offered
from truegreen.faces.cli.paper import Column, Paper, Row
from truegreen.faces.cli.recovery import because
from truegreen.faces.times import local
from truegreen.record.ledger.fleet import Standing
from truegreen.record.ledger.limits import Used


@click.pass_context
def _breakers(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is not None:
        return
    frame = ctx.ensure_object(Frame)
    with frame.ledger() as ledger:
        found = ledger.breakers()
    document = {"breakers": [breaker_document(each) for each in found]}
    frame.give(document, lambda paper: _draw_breakers(paper, found))


def _draw_breakers(paper: Paper, found: list[Standing]) -> None:
    if not found:
        paper.say("no breaker has opened")
        return
    heads = ("BREAKER", "KIND", "STATE", "UNTIL", "TRIPS", "WHOSE")
    columns = [*(Column(head) for head in heads), Column("SIGNATURE", grows=True)]
    paper.table(columns, [Row(_cells(each)) for each in found])


def _cells(found: Standing) -> list[str]:
    what = found.breaker
    until = "a person" if found.waits_for_a_person else local(what.open_until)
    shown = "-" if what.closed_at is not None else until
    return [what.id, what.kind, found.state, shown, str(what.trips), what.name, what.signature]


@command("close", "truegreen breakers close brk_0c3k9 --reason 'the key was renewed'")
@click.argument("breaker", shell_complete=offered("breakers"))
@because
def close(frame: Frame, breaker: str, reason: str) -> None:
    """Close a BREAKER: what it held back starts again. The history keeps who said so, and why."""
    with frame.acting() as (ledger, me):
        whole = ledger.find("brk", breaker)
        ledger.close_breaker(whole, actor=me, reason=reason)
        ledger.mark()
        found = next(each for each in ledger.breakers() if each.breaker.id == whole)
    document = {"breaker": breaker_document(found)}
    frame.give(document, lambda paper: paper.say(f"{whole} is closed"))


@command("limits", "truegreen limits", "truegreen limits --json")
def limits(frame: Frame) -> None:
    """Show what all may spend together per day or hour, and what of it is spent or set aside."""
    with frame.ledger() as ledger:
        found = ledger.limits()
    document = {"limits": [limit_document(each) for each in found]}
    frame.give(document, lambda paper: _draw_limits(paper, found))


def _draw_limits(paper: Paper, found: list[Used]) -> None:
    if not found:
        paper.say("no limits are set: [[limits]] in truegreen.toml")
        return
    heads = ("PER", "WHAT", "USED", "OF", "ANEW AT")
    columns = [*(Column(head) for head in heads), Column("WHOSE", grows=True)]
    rows = [
        Row([each.per, what, f"{used:g}", f"{most:g}", local(each.until), each.about])
        for each in found
        for what, (used, most) in each.amounts().items()
    ]
    paper.table(columns, rows)


breakers = family(
    "breakers",
    "List what holds tasks back after failures alike, then what did; `close` lets them go on.",
    [close],
    "truegreen breakers                      whose, since when, until when",
    "truegreen breakers close brk_0c3k9 --reason 'the key was renewed'",
)
breakers.invoke_without_command = True
breakers.callback = _breakers

COMMANDS = {"breakers": breakers, "limits": limits}
