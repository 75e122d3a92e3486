"""What is examined, by which terms, and who did it. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from truegreen.contract import Contract
from truegreen.facts import Claim, Exit, Finding
from truegreen.supervisor.ground import Ground
from truegreen.tuples import NamedTuple
from truegreen.work.judges import Opinion, Spent
from truegreen.work.workspace import Snapshot, Workspace


class Author(NamedTuple):
    """Who did the work: the definition's digest, the conversation and the model, where known."""

    definition: str = ""
    session: str = ""
    model: str = ""


class Heard(NamedTuple):
    """What a judge said about a tree, after which troubles, and what asking it took."""

    judge: str
    digest: str
    opinion: Opinion
    troubles: tuple[str, ...] = ()
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


class Subject(NamedTuple):
    """What is examined, and by which terms."""

    contract: Contract
    contract_digest: str
    workspace: Workspace
    base: Snapshot
    left: Snapshot
    ground: Ground
    ended: Exit
    judged: str
    claim: Claim | None = None
    rejected: str = ""
    unconfirmed: bool = False
    """Nobody can know that nothing of the agent lives on."""
    baseline: tuple[Finding, ...] = ()
    earlier: tuple[Finding, ...] = ()
    """What was found about earlier runs of the task."""
    author: Author = Author()
    heard: tuple[Heard, ...] = ()
    """What judges said at the stops of the agent."""
    spent: Mapping[str, Spent] = MappingProxyType({})
    """What each judge used on the task before."""
    touched: Mapping[str, list[str]] = MappingProxyType({})
    """Judges' own files outside of the work tree as agents left them: contents by path."""
