"""`receipt`: what was found about a task, signed; and whether somebody's receipt is genuine.

Looking at a receipt needs no store and no network, unless its gates are to be run again.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from truegreen.contract import checked
from truegreen.errors import InvalidInput
from truegreen.faces.axes import LIGHTS, WORDLESS, Look, run_look, task_look
from truegreen.faces.cli.dossier import outcome
from truegreen.faces.cli.frame import Frame, command, family, offered, unwritten
from truegreen.faces.cli.outcome import FAILED, INFRASTRUCTURE, OK, draw_answers, draw_level
from truegreen.faces.cli.output import write_bytes, write_text
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark
from truegreen.facts import EXIT, Proof
from truegreen.model import CELLS, Light, TaskStatus
from truegreen.outlets.answers import Answer, checks_answer, level_answer, proof_answer
from truegreen.outlets.envelope import LARGEST
from truegreen.outlets.keys import Keyring, PublicKey, read_public
from truegreen.outlets.receipts import Receipt, Verification, exposed, issue
from truegreen.outlets.receipts import verify as check
from truegreen.outlets.statement import RunPart, Statement, checks_in, plain
from truegreen.outlets.whole import write_whole

if TYPE_CHECKING:
    from truegreen.outlets.replay import Replay

_PATH_BYTES = 4096
_PEM_BYTES = 16 * 1024
_ID_BYTES = 100
_OWN = "this machine's own keys; whoever can read the key here can sign the same"
_GIVEN = "the keys that were given"
_STDIN = "-"
_UNTRUSTED = "by a key that is not trusted"
_ASK = (
    "get the public key from whoever signed it (truegreen receipt key --pem), and give it as --key"
)


# --- show and export


@command(
    "show",
    "truegreen receipt show tsk_0c           what is signed, and what that leaves open",
    "truegreen receipt show tsk_0c --json    the envelope and the statement in it",
)
@click.argument("task", shell_complete=offered("tasks"))
def show(frame: Frame, task: str) -> None:
    """Show the receipt of a settled TASK: what is signed, its level first."""
    receipt = _issued(frame, task)
    document = {
        "envelope": msgspec.json.decode(receipt.envelope),
        "statement": plain(receipt.statement),
        "keyid": receipt.keyid,
    }

    def drawn(paper: Paper) -> None:
        _draw(paper, receipt.statement)
        paper.heading("Signed")
        paper.say(f"  by    {receipt.keyid}")
        paper.say(f"  next  truegreen receipt export {receipt.statement.predicate.task.id}")

    frame.give(document, drawn)


@command(
    "export",
    "truegreen receipt export tsk_0c --output receipt.json",
    "truegreen receipt export tsk_0c | truegreen receipt verify -",
)
@click.argument("task", shell_complete=offered("tasks"))
@click.option("--output", metavar="FILE", help="Write it into a new file instead of stdout.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def export(frame: Frame, *, task: str, output: str | None, force: bool) -> None:
    """Give out the receipt of a settled TASK: a DSSE envelope, one line of JSON."""
    if force and not output:
        raise InvalidInput("--force goes with --output")
    receipt = _issued(frame, task)
    size, private = len(receipt.envelope), exposed(receipt.statement)
    if output:
        path = os.path.abspath(checked(output, "--output", _PATH_BYTES))
        _write(path, receipt.envelope, force=force)
        document = {"file": path, "bytes": size, "keyid": receipt.keyid, "exposes": private}
        frame.give(document, lambda paper: paper.say(f"{size:,} bytes in {path}"))
    else:
        write_bytes(receipt.envelope)
    if private and not frame.json:
        words = f"! whoever gets it reads the values of {', '.join(private)} in the contract"
        click.echo(words, err=True)


def _issued(frame: Frame, task: str) -> Receipt:
    with frame.ledger() as ledger:
        task_id = ledger.find("tsk", task)
        config = frame.settings or frame.load()
        return issue(ledger, task_id, Keyring(config.state_dir).signing())


def _write(path: str, receipt: bytes, *, force: bool) -> None:
    try:
        write_whole(path, receipt, replace=force)
    except FileExistsError:
        message = f"{path} exists already; --force overwrites it"
        raise InvalidInput(message, path=path) from None
    except OSError as error:
        raise unwritten(path, error) from None


# --- verify


@command(
    "verify",
    "truegreen receipt verify receipt.json --key theirs.pem    offline, with the public key alone",
    "truegreen receipt verify receipt.json --succeeded         also exit 1 unless it is green",
    "truegreen receipt verify receipt.json --replay            and run its gates again here",
)
@click.argument("file", metavar="FILE")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="PEM",
    help="A public key to trust; default: those of this machine.",
)
@click.option(
    "--task",
    default="",
    metavar="TASK",
    help="The whole id that it must be about.",
    shell_complete=offered("tasks"),
)
@click.option("--succeeded", is_flag=True, help="Also exit 1 unless the task succeeded.")
@click.option("--replay", "again", is_flag=True, help="Run its gates again on the same tree.")
def verify(
    frame: Frame, *, file: str, keys: tuple[str, ...], task: str, succeeded: bool, again: bool
) -> int:
    """Check the receipt in FILE (- for stdin): signatures, shape, and every digest in it.

    A receipt of a task that failed is as genuine as any: read what it says, or give --succeeded.

    Exit status: 0 all of it holds, 1 something is wrong or other now, 5 it can't be replayed here.
    """
    envelope = _read(file)
    trusted = {key.keyid: key for key in map(_public, keys)} if keys else _own(frame)
    found = check(envelope, trusted, checked(task, "--task", _ID_BYTES))
    repeated = _replayed(frame, found.statement) if again and found.statement else None
    document = {
        "genuine": found.genuine,
        "faults": list(found.faults),
        "signers": list(found.signers),
        "trusted": "given" if keys else "own",
        "statement": plain(found.statement) if found.statement else None,
        "replay": _replay_document(repeated) if repeated else None,
    }

    def drawn(paper: Paper) -> None:
        _draw_verification(paper, found, repeated, given=bool(keys))
        if succeeded and found.statement:
            _draw_success(paper, found.statement.predicate.task.status)

    frame.give(document, drawn)
    return _status(found, repeated, succeeded=succeeded)


def _status(found: Verification, repeated: Replay | None, *, succeeded: bool) -> int:
    if found.statement is None or (repeated and repeated.word == "other"):
        return FAILED
    if succeeded and found.statement.predicate.task.status is not TaskStatus.SUCCEEDED:
        return FAILED
    return OK if repeated is None or repeated.word == "same" else INFRASTRUCTURE


def _own(frame: Frame) -> dict[str, PublicKey]:
    known = Keyring(frame.load().state_dir).trusted()
    if not known:
        raise InvalidInput("there is no key on this machine to trust; give --key PUBLIC.pem")
    return known


def _public(path: str) -> PublicKey:
    return read_public(_bounded(path, "--key", _PEM_BYTES), path)


def _read(file: str) -> bytes:
    if file == _STDIN:
        return sys.stdin.buffer.read(LARGEST + 1)
    return _bounded(file, "FILE", LARGEST + 1)


def _bounded(path: str, what: str, limit: int) -> bytes:
    """A regular file's first bytes; a pipe under its name would hang us."""
    checked(path, what, _PATH_BYTES)
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(f"{path} is not a regular file", path=path)
            return file.read(limit)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror}", path=path) from None


def _replayed(frame: Frame, statement: Statement) -> Replay:
    from truegreen.app import is_missing, place_of  # noqa: PLC0415 - who only looks starts nothing
    from truegreen.faces.cli.progress import shown  # noqa: PLC0415 - the same
    from truegreen.outlets.replay import Replay, replay  # noqa: PLC0415 - the same

    config = frame.load()
    if is_missing(config):
        return Replay(hindered="there is no store here that could know the task")
    place = place_of(config)
    with frame.ledger() as ledger, shown(frame) as watch:
        return replay(ledger, place, watch, statement)


def _replay_document(repeated: Replay) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(repeated)
    return {"word": repeated.word, **document}


def _draw_verification(
    paper: Paper, found: Verification, repeated: Replay | None, *, given: bool
) -> None:
    if found.statement is None:
        glyph, rgb = LIGHTS[Light.RED]
        paper.say(mark(Look(glyph, "not genuine", rgb)), "  nothing in it may be believed")
        for fault in found.faults:
            paper.hanging(["  "], fault)
        if any(_UNTRUSTED in fault for fault in found.faults):
            paper.hanging(["  next: "], _ASK)
        return
    _draw(paper, found.statement)
    paper.heading("Genuine")
    paper.say("  signatures, shape and every digest in it agree")
    for keyid in found.signers:
        paper.say(f"  signed by {keyid}")
    paper.hanging(["  trusting "], _GIVEN if given else _OWN)
    if repeated:
        _draw_replay(paper, repeated)


def _draw_success(paper: Paper, status: TaskStatus) -> None:
    if status is not TaskStatus.SUCCEEDED:
        glyph, rgb = LIGHTS[Light.RED]
        words = f"  its task is {status}: genuine, and not what --succeeded asks for"
        paper.say()
        paper.say(mark(Look(glyph, "not succeeded", rgb)), words)


def _draw_replay(paper: Paper, repeated: Replay) -> None:
    paper.heading(Ink("Again", "bold"), f"  {repeated.word}")
    paper.say(f"  history: {repeated.history}")
    if repeated.hindered:
        paper.hanging(["  "], repeated.hindered)
    columns = [
        *(Column("GATE"), Column("COMPARED"), Column("SIGNED"), Column("NOW")),
        Column("WHAT IT FOUND", grows=True),
    ]
    rows = [
        Row([g.check, g.word, outcome(g.signed), outcome(g.now) if g.now else "-", g.reason])
        for g in repeated.gates
    ]
    if rows:
        paper.table(columns, rows, indent=2)


# --- a statement on paper


def _draw(paper: Paper, statement: Statement) -> None:
    predicate = statement.predicate
    task, verdict = predicate.task, predicate.verdict
    look = task_look(task.status)
    why = CELLS[task.cell].title if task.cell else "no run has ended"
    paper.hanging([Ink("task   ", "bold"), mark(look), "  "], f"{why} · {task.title}")
    if verdict.level:
        paper.hanging([Ink(f"level  {verdict.level}  ", "bold")], verdict.reason)
        draw_level(paper, verdict.level, indent=7)
        draw_answers(paper, _answers(statement.latest), indent=7)
    else:
        paper.say(Ink("level  none  ", "bold"), "no check has concluded, so nothing is proven")
    for subject in statement.subject:
        digests = " ".join(f"{name} {value}" for name, value in subject.digest.items())
        paper.say(Ink("about  ", "bold"), f"{subject.name}  {digests}")
    paper.heading(task.id)
    told = [task.role, task.mode, f"attempt {task.attempt}", *task.badges]
    paper.say("  ", " · ".join(word for word in told if word))
    paper.say(f"  contract  {predicate.contract.digest}")
    history = predicate.history
    paper.say(f"  history   revision {history.revision}, head {history.head}")
    if statement.latest:
        _draw_run(paper, statement.latest)
    for review in predicate.reviews:
        words = f"{review.verdict or 'called off'} by {review.by}: {review.reason}"
        paper.hanging([f"  QA review {review.task}  "], words)
    if predicate.refusals:
        paper.say(f"  {len(predicate.refusals)} late or conflicting writes were refused")


def _answers(run: RunPart | None) -> list[Answer]:
    """The three answers; a receipt from before they were recorded has none."""
    verdict = run.verdict if run else None
    if run is None or verdict is None or not (verdict.checks and verdict.level and verdict.proof):
        return []
    proof = Proof(verdict.proof.status, verdict.proof.by, verdict.proof.reason)
    return [
        checks_answer(verdict.checks, checks_in(run)),
        level_answer(verdict.level, verdict.require),
        proof_answer(proof),
    ]


def _draw_run(paper: Paper, run: RunPart) -> None:
    ended = " · ".join(str(word) for word in (run.exit_reason, run.exit_detail) if word)
    paper.say(f"  {run.id}  ", mark(run_look(run.run_status)), f"  {ended} · {run.isolation}")
    if run.claim:
        spoken = (f"{run.claim.kind}  ", f"«{run.claim.reason}»")
        kind, words = ("", WORDLESS) if run.claim.source == EXIT else spoken
        paper.hanging([f"  the agent said {kind}"], words)
        for said in run.claim.statements:
            paper.say("    ", outcome(said.outcome), f"  {said.text}")
    columns = [
        *(Column("CHECK"), Column("PHASE"), Column("OUTCOME"), Column("LEVEL"), Column("JUDGE")),
        Column("WHAT IT FOUND", grows=True),
    ]
    rows = [
        Row([f.check, f.phase, outcome(f.outcome), f.level, f.judge, f.reason])
        for f in run.findings
    ]
    if rows:
        paper.table(columns, rows, indent=2)


# --- the key


@command(
    "key",
    "truegreen receipt key                          its id, and where its public half lies",
    "truegreen receipt key --pem > truegreen.pem    for whoever checks your receipts",
    "truegreen receipt key --rotate                 a new key; old receipts stay valid",
)
@click.option("--pem", is_flag=True, help="Print the public key alone, in PEM.")
@click.option("--rotate", is_flag=True, help="Make a new key and destroy the old private one.")
def key(frame: Frame, *, pem: bool, rotate: bool) -> None:
    """Show the public key that receipts are signed with. The first use makes it."""
    ring = Keyring(frame.load().state_dir)
    old, now = ring.rotate() if rotate else (None, ring.signing())
    public = now.public.pem().decode()
    file = os.path.join(ring.public, f"{now.keyid}.pem")
    kept = sorted(keyid for keyid in ring.trusted() if keyid != now.keyid)
    document = {
        "keyid": now.keyid,
        "public_key": public,
        "file": file,
        "replaced": old.keyid if old else None,
        "kept": kept,
    }

    def drawn(paper: Paper) -> None:
        paper.say(Ink("key    ", "bold"), now.keyid)
        paper.say(Ink("public ", "bold"), shlex.quote(file))
        if old:
            paper.say(f"in place of {old.keyid}, whose private half is destroyed")
        for keyid in kept:
            paper.say(f"kept   {keyid}, for the receipts that it signed")

    frame.give(document, (lambda _: write_text(public)) if pem else drawn)


COMMANDS = {
    "receipt": family(
        "receipt",
        "Signed receipts of settled tasks: show, export, verify, and the key.",
        [show, export, verify, key],
        "truegreen receipt export tsk_0c --output receipt.json",
        "truegreen receipt verify receipt.json --key theirs.pem",
    )
}
