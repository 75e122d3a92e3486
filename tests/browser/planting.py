"""A store in which every text that an agent chooses is hostile, planted by the ledger's own verbs.

Each planted text begins with the name of its field, so that a test knows what it has seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from tests.faces.web.hostile_web import TEXTS, packed, storable
from tests.record.lives import OPERATOR, agent_of, ended, finding, opened, started, verdict
from truegreen.contract import Budget
from truegreen.contract.reading import LINE_CHARACTERS
from truegreen.errors import Refused
from truegreen.facts import AgentKind, Child, Claim, Finding, Statement, Ticket
from truegreen.model import ClaimKind, ExitDetail, FindingOutcome, Mode, Outcome, Role
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.telling import Owed

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_WORD, _REASON, _BODY = 180, 2000, 6000
_EACH = 3
_STATEMENTS = 60


class Planted(NamedTuple):
    """Where hostile words are."""

    tasks: list[str]
    """One for every pack of titles; the first few carry the most."""
    agents: list[str]


class Seeds:
    """Texts of every length; each field gets all of them in turn."""

    def __init__(self) -> None:
        self._packs = {room: packed(room) for room in (_WORD, _REASON, _BODY)}
        self._turns: dict[str, Iterator[str]] = {}
        self._unsaid = [storable(text) for text in TEXTS]

    def _next(self, field: str, room: int) -> str:
        turns = self._turns.setdefault(field, cycle(self._packs[room]))
        return f"{field}: {next(turns)}"

    def word(self, field: str) -> str:
        """A short one, as names are."""
        return self._next(field, _WORD)

    def line(self, field: str) -> str:
        """A short one without what breaks a line."""
        return _CONTROLS.sub("", self.word(field))

    def name(self, field: str) -> str:
        """A short one of what can be printed: the record takes nothing else for a name."""
        return "".join(each for each in self.word(field) if each.isprintable())

    def words(self, field: str) -> list[str]:
        """So many that all tasks together have all texts."""
        return [self.word(field) for _ in range(_EACH)]

    def unsaid(self) -> list[str]:
        """The next that nobody has stated yet; nothing in the end."""
        said, self._unsaid = self._unsaid[:_STATEMENTS], self._unsaid[_STATEMENTS:]
        return said

    def reason(self, field: str) -> str:
        """One as long as a reason may be."""
        return self._next(field, _REASON)

    def body(self, field: str) -> str:
        """One as long as a letter may be."""
        return self._next(field, _BODY)


def titles() -> Iterator[str]:
    """All texts as titles: one line, without what a contract refuses."""
    for pack in packed(LINE_CHARACTERS - 10, _WORD):
        line = _CONTROLS.sub("", f"title: {pack}")
        yield line[:LINE_CHARACTERS]


def plant(ledger: Ledger, state_dir: Path) -> Planted:
    """Hostile words in every field."""
    seeds = Seeds()
    agents = [_agent(ledger, seeds) for _ in range(len(packed(_WORD)))]
    tasks = [
        _task(ledger, seeds, title, agent) for title, agent in zip(titles(), agents, strict=False)
    ]
    for run in [run for task in tasks[:3] for run in ledger.dossier(task).runs]:
        _log(state_dir, run.id)
    _questions(ledger, seeds)
    _desk(ledger, seeds, agents[0])
    return Planted(tasks, agents)


def _agent(ledger: Ledger, seeds: Seeds) -> str:
    name, session = seeds.name("agent name"), seeds.word("session")
    definition = seeds.word("definition")
    return ledger.register_agent(name, definition, actor=OPERATOR, session=session).id


def _task(ledger: Ledger, seeds: Seeds, title: str, agent: str) -> str:
    """A silent failure with something to say in every field."""
    task = opened(
        ledger,
        title=title,
        goal=seeds.body("goal"),
        done_when=seeds.reason("done when"),
        command=("agent", *seeds.words("command")),
        approvals=tuple(seeds.line("approval") for _ in range(_EACH)),
        budget=Budget(attempts=1),
    ).id
    ticket = started(ledger, task, agent_id=agent)
    for _ in range(_EACH):
        name = seeds.name("artifact").replace("/", "")
        ledger.attach(ticket, name, "0" * 64, 1, actor=agent_of(ticket))
        child = Child(AgentKind.SUBAGENT, seeds.word("inner session"), seeds.word("inner"))
        ledger.converse(ticket, children=[child])
    ledger.end_run(ticket, ended(message=seeds.reason("exit message")), claim=_claim(seeds))
    found = [_found(ledger, ticket, seeds) for _ in range(_EACH)]
    ledger.record(ticket, [*found, _heard(ledger, ticket, seeds)])
    reason = seeds.reason("verdict")
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.FAILED, reason=reason))
    with suppress(Refused):
        ledger.end_run(ticket, ended(message=seeds.word("late")))
    return task


def _claim(seeds: Seeds) -> Claim:
    return Claim(
        kind=ClaimKind.DONE,
        reason=seeds.reason("claim"),
        statements=tuple(map(Statement, seeds.words("statement"))),
        extra=dict(zip(seeds.words("extra key"), seeds.words("extra"), strict=True)),
        source=seeds.word("source")[:25],
    )


def _found(ledger: Ledger, ticket: Ticket, seeds: Seeds) -> Finding:
    evidence = {
        "output": seeds.body("evidence"),
        "tampered_diff": seeds.body("diff"),
        "tampering": seeds.word("tampering"),
        "argv": seeds.words("argv"),
        "short": seeds.words("short"),
    }
    told: dict[str, Any] = {"check": seeds.word("check"), "judge": seeds.word("judge")}
    reason = seeds.reason("finding")
    return finding(ledger, ticket, FindingOutcome.FAILED, reason=reason, evidence=evidence, **told)


def _heard(ledger: Ledger, ticket: Ticket, seeds: Seeds) -> Finding:
    """Every text as a statement that was contradicted."""
    said = [
        {
            "text": f"stated: {text[:2000]}",
            "kind": "tests",
            "outcome": "contradicted",
            "observed": seeds.word("observed"),
        }
        for text in seeds.unsaid()
    ]
    told = {"check": "claim", "kind": "claim", "reason": "", "binding": False}
    evidence = {"statements": said}
    return finding(ledger, ticket, FindingOutcome.FAILED, evidence=evidence, **told)


def _log(state_dir: Path, run: str) -> None:
    folder = state_dir / "runs" / run
    folder.mkdir(parents=True)
    lines = "\n".join(f"log: {text}" for text in TEXTS)
    (folder / "stdout.log").write_bytes(lines.encode("utf-8", "surrogatepass") + b"\xff\xfe\n")


def _questions(ledger: Ledger, seeds: Seeds) -> None:
    """Approvals that are asked for, and an end that nobody understands."""
    for number in range(12):
        ticket = started(ledger, title=f"asks {number}", mode=Mode.ASSISTED)
        ledger.checkpoint(ticket, seeds.line("checkpoint"), actor=agent_of(ticket))
    ticket = started(ledger, title="blocked")
    ledger.end_run(ticket, ended(ExitDetail.REFUSED, message=seeds.reason("refusal")))
    live = started(ledger, title=seeds.line("live title"))
    ledger.seen(live)


def _desk(ledger: Ledger, seeds: Seeds, agent: str) -> None:
    """What stands around tasks: letters, wake-ups, answers, posts, keys."""
    for text in TEXTS[:50]:
        ledger.send(agent, f"message: {storable(text)[:2000]}", actor=OPERATOR)
    ledger.arm(agent, seeds.body("wake"), actor=OPERATOR, after_seconds=3600)
    waiting = [each.item.id for each in ledger.inbox(limit=100)]
    for item in waiting[:3]:
        ledger.resolve(item, outcome=seeds.reason("outcome"), actor=OPERATOR)
    ledger.owe("webhook", [Owed(seeds.word("subject"), "{}")], (0, 0))
    for post in ledger.take_posts("webhook"):
        ledger.unposted(post.id, seeds.reason("post error"), again_in=None)
    ledger.mint_token(Role.VIEWER, seeds.name("token"), actor=OPERATOR)
