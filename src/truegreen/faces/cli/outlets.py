"""`outlets`, `junit`: what leaves the house, whether it arrived, and reports for other tools."""

from __future__ import annotations

import time
from typing import Any

import click

from truegreen.errors import InvalidInput
from truegreen.faces.axes import LIGHTS, Look
from truegreen.faces.cli.frame import Frame, command, family, offered
from truegreen.faces.cli.outcome import INFRASTRUCTURE, OK
from truegreen.faces.cli.output import write_bytes
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark, tint
from truegreen.faces.cli.trusting import trust_settings
from truegreen.faces.documents import Document
from truegreen.faces.meant import nearest
from truegreen.faces.times import instant
from truegreen.model import Light
from truegreen.outlets.following import doubts, unused
from truegreen.outlets.posting import Look as Looked
from truegreen.outlets.posting import Posting, outlets_of, set_outlets, warnings
from truegreen.outlets.sending import Outlet
from truegreen.outlets.trust import NEXT, settle
from truegreen.outlets.trust import look as standing
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.outbox import POSTED
from truegreen.record.ledger.reads import LONGEST_PAGE
from truegreen.record.rows import Post

_LIGHTS = {
    "waiting": Light.AMBER,
    "sent": Light.GREEN,
    "given_up": Light.RED,
    "unsaid": Light.AMBER,
}
_SHOWN = 20
_NONE = "truegreen.toml names no outlet: [[notify]], [github], [otel]"
_GONE = "not in truegreen.toml any more"
_UNUSED = f"not used yet: {NEXT}"


# --- list, and send now


@click.pass_context
def _outlets(ctx: click.Context, limit: int, *, once: bool) -> int | None:
    frame = ctx.find_object(Frame)
    if frame is None or ctx.invoked_subcommand:
        return None
    if once:
        return _send(frame)
    with frame.ledger() as ledger:
        config = frame.settings or frame.load()
        found = standing(ledger, config)
        changes = [change.words for change in found.changes] if found.suspect else []
        document = {
            "outlets": outlet_documents(ledger, outlets_of(ledger, config), unused(found)),
            "posts": [post_document(post) for post in ledger.posts(limit=limit)],
            "warnings": [*doubts(found), *changes, *warnings(ledger, config)],
        }
    frame.give(document, lambda paper: _draw(paper, document))
    return OK


def outlet_documents(ledger: Ledger, outlets: list[Outlet], idle: dict[str, str]) -> list[Document]:
    """Each outlet with what it owes and what came of its tries; also one that is set no more.

    Those that nobody has trusted yet are set, and not used.
    """
    counted = {(outlet, state): n for outlet, state, n in ledger.posts_counted()}
    tried = {label: n for (name, label), n in ledger.meters().items() if name == POSTED}
    known = {outlet.name: outlet.where for outlet in outlets} | idle
    gone = {outlet for outlet, _ in counted} - set(known)
    silent = ledger.last_unsaid()
    return [
        {
            "name": name,
            "where": known.get(name),
            "is_set": name in known,
            "is_used": name in known and name not in idle,
            "waiting": counted.get((name, "waiting"), 0),
            "given_up": counted.get((name, "given_up"), 0),
            "unsaid": counted.get((name, "unsaid"), 0),
            "last_unsaid": post_document(silent[name]) if name in silent else None,
            "sent": tried.get(f"sent|{name}", 0),
            "failed_tries": tried.get(f"failed|{name}", 0),
        }
        for name in (*known, *sorted(gone))
    ]


def post_document(post: Post) -> Document:
    """Something that an outlet sent, owes or gave up; its text is between it and the receiver."""
    return {
        "id": post.id,
        "outlet": post.outlet,
        "task": post.task_id,
        "subject": post.subject,
        "state": post.state,
        "tries": post.tries,
        "error": post.error,
        "due_at": instant(post.due_at) if post.state == "waiting" else None,
        "created_at": instant(post.created_at),
        "updated_at": instant(post.updated_at),
    }


def _send(frame: Frame) -> int:
    with frame.acting(makes=True) as (ledger, _):
        config = settle(ledger, frame.settings or frame.load(), _told)
        looks = Posting(ledger, config, report=_told).once()
    document = {"outlets": [{"name": name, **look._asdict()} for name, look in looks.items()]}
    frame.give(document, lambda paper: _draw_looks(paper, looks))
    return INFRASTRUCTURE if any(look.failed for look in looks.values()) else OK


def _told(words: str) -> None:
    click.echo(words, err=True)


def _draw_looks(paper: Paper, looks: dict[str, Looked]) -> None:
    if not looks:
        paper.say(_NONE)
    for name, look in looks.items():
        trouble = f", {look.failed} did not get through" if look.failed else ""
        paper.say(Ink(name, "bold"), f"  {look.sent} sent{trouble}")


def _draw(paper: Paper, document: Document) -> None:
    for warning in document["warnings"]:
        glyph, rgb = LIGHTS[Light.AMBER]
        paper.hanging([Ink(f"{glyph} ", tint(rgb))], warning)
    if not document["outlets"]:
        paper.say(_NONE)
        return
    columns = [
        *(Column("OUTLET"), Column("WHERE", grows=True), Column("SENT", right=True)),
        *(Column("WAITING", right=True), Column("GIVEN UP", right=True)),
        Column("NOT SAID", right=True),
    ]
    paper.table(columns, [_row(told) for told in document["outlets"]])
    for told in document["outlets"]:
        _draw_silence(paper, told)
    open_posts = [post for post in document["posts"] if post["state"] in ("waiting", "given_up")]
    for post in open_posts:
        glyph, rgb = LIGHTS[_LIGHTS[post["state"]]]
        look = mark(Look(glyph, post["state"].replace("_", " "), rgb))
        paper.say(look, f"  {post['outlet']}  {post['id']}  {post['tries']} tries")
        if post["error"]:
            paper.hanging(["   "], post["error"])
        if post["state"] == "given_up":
            paper.hanging([Ink("   next  ", "dim")], f"truegreen outlets retry {post['id']}")


def _draw_silence(paper: Paper, told: Document) -> None:
    """An outlet that says nothing says why."""
    last = told["last_unsaid"]
    if last:
        words = f"{told['name']}: last not said about {last['task']}: {last['error']}"
        paper.hanging([Ink("   ", "dim")], words)


def _row(told: Document) -> Row:
    numbers = [str(told[name]) for name in ("sent", "waiting", "given_up", "unsaid")]
    where = told["where"] if told["is_used"] else _UNUSED if told["is_set"] else _GONE
    return Row([told["name"], where, *numbers])


# --- test, retry


@command("test", "truegreen outlets test ops      send something that says nothing")
@click.argument("name", shell_complete=offered("outlets"))
def test_outlet(frame: Frame, name: str) -> int:
    """Try whether the outlet NAME would arrive: a test message, or a question where one will do."""
    with frame.acting(makes=True) as (ledger, _):
        config = frame.settings or frame.load()
        known = {each.name: each for each in outlets_of(ledger, config)}
        if name not in known:
            raise _unknown(name, set_outlets(config))
        sent = known[name].test(int(time.time() * 1e6))
    document: dict[str, Any] = {
        "outlet": name,
        "where": known[name].where,
        "arrived": not sent.trouble,
        "trouble": sent.trouble,
    }
    words = f"did not arrive: {sent.trouble}" if sent.trouble else "arrived"
    frame.give(document, lambda paper: paper.say(Ink(name, "bold"), f"  {words}"))
    return INFRASTRUCTURE if sent.trouble else OK


def _unknown(name: str, there: frozenset[str]) -> InvalidInput:
    if name in there:
        return InvalidInput(f"{name} is in truegreen.toml, but {_UNUSED}", allowed=(NEXT,))
    near = nearest(name, list(there))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    allowed = tuple(sorted(there))
    return InvalidInput(f"no outlet {name!r} in truegreen.toml{hint}", allowed=allowed)


@command("retry", "truegreen outlets retry pst_0c3k9…      try once more what was given up")
@click.argument("post")
def retry_post(frame: Frame, post: str) -> None:
    """Try POST again, which was given up; whatever sends posts sends it next."""
    with frame.acting() as (ledger, me):
        again = post_document(ledger.post_again(post, actor=me))
    words = f"{again['id']} is due: truegreen outlets --once, or wait for truegreen up"
    frame.give(again, lambda paper: paper.say(words))


@command("drop", "truegreen outlets drop webhook-1      nobody wants any more what it owes")
@click.argument("name")
def drop_posts(frame: Frame, name: str) -> None:
    """Send no more what the outlet NAME owes, or gave up; it is not in truegreen.toml any more."""
    with frame.acting() as (ledger, me):
        if name in set_outlets(frame.settings or frame.load()):
            raise InvalidInput(f"{name} is in truegreen.toml: take it out first, or let it send")
        dropped = ledger.drop_posts(name, actor=me)
    document: Document = {"outlet": name, "dropped": dropped}
    words = f"{dropped} dropped" if dropped else "owes nothing: nothing was dropped"
    frame.give(document, lambda paper: paper.say(Ink(name, "bold"), f"  {words}"))


outlets = family(
    "outlets",
    "List where news goes, what has arrived and what has not; `test` tries one.",
    [test_outlet, retry_post, drop_posts, trust_settings],
    "truegreen outlets                    each outlet, and what it still owes",
    "truegreen outlets test ops           does it arrive?",
    "truegreen outlets retry pst_0c3k9…   once more what was given up",
    "truegreen outlets drop webhook-1     nobody wants any more what it owes",
    "truegreen outlets trust              use settings that a run could have written",
    "truegreen outlets --once             send what is due now, without a server",
)
outlets.invoke_without_command = True
outlets.callback = _outlets
outlets.params[:0] = [
    click.Option(["--once"], is_flag=True, help="Read on and send what is due, here and now."),
    click.Option(
        ["--limit"],
        type=click.IntRange(1, LONGEST_PAGE),
        default=_SHOWN,
        show_default=True,
        metavar="N",
        help="Look at so many posts, newest first.",
    ),
]


# --- junit


@command(
    "junit",
    "truegreen junit tsk_0c3k9 > report.xml      for a CI that reads JUnit",
)
@click.argument(
    "tasks", nargs=-1, required=True, metavar="TASK...", shell_complete=offered("tasks")
)
def junit(frame: Frame, tasks: tuple[str, ...]) -> None:
    """Write a JUnit report of each TASK: a test case for each check, and one for the verdict."""
    from truegreen.outlets.junit import report  # noqa: PLC0415 - only this needs it

    with frame.ledger() as ledger:
        text = report([ledger.dossier(ledger.find("tsk", task)) for task in tasks])
    if frame.json:
        frame.give({"junit": text.decode()})
    else:
        write_bytes(text)


COMMANDS = {"outlets": outlets, "junit": junit}
