"""`token`: keys for people and programs. A secret is said once; only its digest is kept."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote

import click

from truegreen.contract import checked, parse_duration
from truegreen.errors import InvalidInput, unwritable
from truegreen.faces.cli.frame import Frame, command, family, offered
from truegreen.faces.cli.output import flush, write_text
from truegreen.faces.cli.paper import Column, Paper, Row
from truegreen.faces.documents import token_document
from truegreen.faces.times import local
from truegreen.model import Role
from truegreen.work.workspace import top_of
from truegreen.work.workspace.dotgit import repository_of

ROLES = (Role.VIEWER, Role.LEAD, Role.OPERATOR)
_BOUND = (Role.AGENT, Role.JUDGE)


def _role(_ctx: click.Context, _param: click.Parameter, value: str) -> Role:
    if value in _BOUND:
        message = (
            f"a token for {value} is bound to one run and is made when that run starts;"
            " nobody needs to create one by hand"
        )
        raise InvalidInput(message, allowed=ROLES)
    if value not in ROLES:
        message = f"no role {value!r} has tokens; there are {', '.join(ROLES)}"
        raise InvalidInput(message, allowed=ROLES)
    return Role(value)


def _ttl(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    return parse_duration(value, "--ttl") / 1e6 if value is not None else None


@command(
    "create",
    "truegreen token create --role viewer --name dashboard --ttl 30d --out ~/dashboard.token",
    "TOKEN=$(truegreen token create --role lead --name ci)",
)
@click.option(
    "--role", required=True, callback=_role, metavar="|".join(ROLES), help="What it may do."
)
@click.option("--name", metavar="NAME", help="Who it is for; shown in the history.")
@click.option("--ttl", callback=_ttl, metavar="TIME", help="It expires after 12h, 30d, …")
@click.option(
    "--out",
    metavar="FILE",
    help="Write the secret into a new file for you alone (mode 0600), outside of repositories.",
)
def create(frame: Frame, role: Role, name: str | None, ttl: float | None, out: str | None) -> None:
    """Create a token. Its secret is printed once, alone on stdout, or written to a file."""
    if name is None:
        name = f"{role}-{secrets.token_hex(3)}"  # two of one name can't live together
    if not name.strip():
        raise InvalidInput("--name: is empty; say who the token is for")
    with _secret_file(out) as keep, frame.acting(makes=True) as (ledger, me):
        token, secret = ledger.mint_token(role, name, actor=me, seconds=ttl)
        document = {"token": token_document(token, _now())}
        try:
            if keep is not None:
                os.write(keep, f"{secret}\n".encode())
                os.fsync(keep)
                frame.give({**document, "file": out}, lambda paper: paper.say(token.id))
            else:
                frame.give({**document, "secret": secret}, lambda _: write_text(f"{secret}\n"))
            flush()
        except OSError:
            # Nobody has seen the secret: the key to nothing must not stay.
            ledger.revoke_token(token.id, actor=me, reason="its secret could not be written")
            raise
        ledger.mark()
    if not frame.json:
        until = f", until {local(token.expires_at)}" if token.expires_at else ", without an end"
        click.echo(f"{token.id}: {role}{until}; the secret is not kept here", err=True)
        _warn_of_repository(out, frame.load().state_dir)


def _warn_of_repository(out: str | None, state_dir: str) -> None:
    """Say it if agents that work in the same repository can read the secret."""
    folder = os.path.dirname(os.path.abspath(out)) if out else ""
    top = top_of(folder) if folder else ""
    if out and repository_of(top) is not None:
        place = quote(state_dir)
        click.echo(
            f"{out} is inside the repository {top}: agents that work there can read it, and git can"
            f" commit it. Move it: mkdir -p -m 700 {place} && mv {quote(out)} {place}/",
            err=True,
        )


@contextmanager
def _secret_file(path: str | None) -> Iterator[int | None]:
    """A new file for one secret; gone again if none comes."""
    if path is None:
        yield None
        return
    try:
        place = checked(path, "--out", 4096)
        handle = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise InvalidInput(f"{path} exists already; a secret overwrites nothing") from None
    except OSError as error:
        raise unwritable(f"{path} can't be written: {error.strerror}", error) from None
    try:
        yield handle
    except BaseException:
        os.unlink(place)
        raise
    finally:
        os.close(handle)


@command("list", "truegreen token list", "truegreen token list --json")
def list_tokens(frame: Frame) -> None:
    """List tokens: whose, for what, until when. Never a secret."""
    with frame.ledger() as ledger:
        tokens = ledger.tokens()
    documents = [token_document(token, _now()) for token in tokens]

    def draw(paper: Paper) -> None:
        if not tokens:
            paper.say("no tokens")
            return
        heads = ("TOKEN", "ROLE", "STATE", "CREATED", "EXPIRES")
        columns = [*(Column(head) for head in heads), Column("NAME", grows=True)]
        rows = [
            Row([t.id, t.role, d["state"], local(t.created_at), local(t.expires_at) or "-", t.name])
            for t, d in zip(tokens, documents, strict=True)
        ]
        paper.table(columns, rows)

    frame.give({"tokens": documents}, draw)


@command("revoke", "truegreen token revoke tok_0c3k9")
@click.argument("token", shell_complete=offered("tokens"))
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who read the history.")
def revoke(frame: Frame, token: str, reason: str) -> None:
    """Revoke a TOKEN by its id: it opens nothing from now on. Doing it again changes nothing."""
    with frame.acting() as (ledger, me):
        whole = ledger.find("tok", token)
        revoked = ledger.revoke_token(whole, actor=me, reason=reason)
        ledger.mark()
    document = {"token": token_document(revoked, _now())}
    frame.give(document, lambda paper: paper.say(f"{whole} is revoked"))


def _now() -> int:
    return time.time_ns() // 1000


COMMANDS = {
    "token": family(
        "token",
        "Create, list and revoke access tokens. Runs get theirs by themselves.",
        [create, list_tokens, revoke],
        "truegreen token create --role viewer --name dashboard --ttl 30d --out dashboard.token",
    )
}
