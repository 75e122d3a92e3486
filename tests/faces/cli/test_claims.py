"""`done`, `fail`, `blocked`, `noop`: what an agent says reaches its run's door, word by word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faces.conftest import Run
from tests.record.lives import started
from truegreen.contract import parse_duration
from truegreen.doors.run_door import RunDoor
from truegreen.facts import SYSTEM, Claim
from truegreen.model import Role
from truegreen.record.ledger import open_ledger

Say = Callable[..., tuple[int, Claim | None]]


@pytest.fixture
def say(tg: Run, sqlite_url: str, tmp_path: Path) -> Iterator[Say]:
    """Declare something inside a run; its exit status, and the claim that is kept."""
    ledger = open_ledger(sqlite_url)
    ticket = started(ledger)
    _, token = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)
    (tmp_path / "token").write_text(token)
    door = RunDoor(
        ledger,
        ticket,
        str(tmp_path / "door"),
        patience=parse_duration("1h"),
        digest=lambda: "tree:x",
    )
    inside = {
        "TRUEGREEN_RUN": ticket.run,
        "TRUEGREEN_SOCKET": str(tmp_path / "door"),
        "TRUEGREEN_TOKEN_FILE": str(tmp_path / "token"),
    }

    def declare(*words: str) -> tuple[int, Claim | None]:
        return tg(*words, **inside).status, ledger.claim(ticket.run)

    yield declare
    door.close()
    ledger.close()


@pytest.mark.parametrize(
    ("words", "kind", "reason"),
    [
        (["done", "parser fixed"], "done", "parser fixed"),
        (["done", "parser", "fixed", "--tests", "3/0"], "done", "parser fixed"),
        (["done", "--reason", "parser fixed"], "done", "parser fixed"),
        (["done"], "done", ""),
        (["fail", "no way"], "failed", "no way"),
        (["blocked", "no network", "--detail", "egress_denied"], "blocked", "no network"),
        (["noop", "nothing", "to", "do"], "noop", "nothing to do"),
    ],
)
def test_the_sentence_is_the_reason(say: Say, words: list[str], kind: str, reason: str) -> None:
    status, claim = say(*words)
    assert status == 0
    assert claim is not None
    assert (claim.kind, claim.reason) == (kind, reason)


@pytest.mark.parametrize(
    "words",
    [["done", "this", "--reason", "that"], ["fail"], ["blocked", " "], ["noop", "--reason", ""]],
)
def test_no_reason_or_two_of_them_declare_nothing(say: Say, words: list[str]) -> None:
    assert say(*words) == (2, None)
