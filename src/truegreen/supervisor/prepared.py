"""What is settled before a run is reserved: adapter, isolation, workspace, caps, earlier runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from truegreen.contract import Caps, Contract, Duration, Home, Isolation
from truegreen.facts import Exit, Finding, Usage
from truegreen.record.ledger import Dossier
from truegreen.record.ledger.limits import Leeway
from truegreen.supervisor.admission import check_gateway
from truegreen.supervisor.bribery import changed_since, own_files, unseen
from truegreen.supervisor.examination import findings_of
from truegreen.supervisor.ground import Ground, first_ground, ground_here, uncovered
from truegreen.supervisor.place import Place
from truegreen.supervisor.preflight import check_programs, check_variables
from truegreen.supervisor.purse import spent_on
from truegreen.supervisor.roster import Going, Retold
from truegreen.supervisor.subject import Subject
from truegreen.supervisor.watch import Watch
from truegreen.tuples import NamedTuple
from truegreen.work import verify
from truegreen.work.agents import Adapter, adapter_of
from truegreen.work.agents.sealing import Kept, kept_at
from truegreen.work.jail import choose
from truegreen.work.judges import Spent
from truegreen.work.workspace import Snapshot, Workspace


class Prepared(NamedTuple):
    """What is settled before a run is reserved."""

    contract: Contract
    contract_digest: str
    adapter: Adapter
    isolation: Isolation
    ground: Ground
    workspace: Workspace
    base: Snapshot
    caps: Caps
    feedback: str
    earlier: tuple[Finding, ...]
    failures: int
    deferrals: int
    spent: Mapping[str, Spent]
    judged_by: Contract
    """The terms whose judges and reviewer the agent must not touch."""
    judged_in: str
    """The work tree of these terms."""
    judge_files: dict[str, str]
    """What their files are, outside of the work tree, before the agent comes."""
    unseen: dict[str, str]
    """Those of them that the agent before may have touched."""
    touched: Mapping[str, list[str]] = MappingProxyType({})
    """Those of them that are known to have been touched, by what they were then."""
    kept: Kept | None = None
    """Where the client keeps its conversations."""
    shown: tuple[str, ...] = ()
    """What of the hidden the agent may see all the same."""
    going: Going | None = None
    """The agent whose conversation goes on; without it a new one begins."""
    told: Retold = Retold()
    """What a new one has to hear of what others were told."""
    publish: Callable[[Snapshot], dict[str, Any]] | None = None
    """Leaves the work on a branch, where it was done in a checkout; gives facts of the run."""

    def touched_now(self, place: Place) -> dict[str, str]:
        """Which files of judges are others than before the run."""
        path = place.environ.get("PATH", os.defpath)
        return changed_since(self.judge_files, self.judged_by, self.judged_in, path)

    def subject(self, left: Snapshot, ended: Exit) -> Subject:
        """What is examined of a run of this, and by which terms."""
        return Subject(
            contract=self.ground.contract(self.contract),
            contract_digest=self.contract_digest,
            ground=self.ground,
            workspace=self.workspace,
            base=self.base,
            left=left,
            ended=ended,
            judged=self.adapter.name,
            earlier=self.earlier,
            spent=self.spent,
            touched=self.touched,
        )


def prepare(place: Place, dossier: Dossier, contract: Contract, watch: Watch) -> Prepared:
    """Choose the adapter and the isolation, and keep the workspace as the agent will find it."""
    isolation = choose(contract.isolation)
    adapter = adapter_of(contract.adapter, contract.command, contract.cwd)
    check_gateway(contract, adapter, place.environ)
    check_variables(contract, place.environ)
    watch.phase("snapshot", contract.cwd)
    ground = ground_here(dossier, contract)
    if ground:
        workspace = ground.workspace(place)
        base = ground.snapshot(workspace)
    else:
        ground, workspace, base = first_ground(place, contract, dossier.task.id, watch.phase)
        for note in ground.tools.notes:
            watch.warn(note)
        for glob in uncovered(contract, workspace, base):
            watch.warn(f"--protect {glob}: nothing of that name is there now")
        path, root = place.environ.get("PATH", os.defpath), workspace.root
        check_programs(
            contract, path, ground.folder, lambda name: os.path.lexists(os.path.join(root, name))
        )
    files = own_files(contract, workspace.root, place.environ.get("PATH", os.defpath))
    return Prepared(
        contract=contract,
        contract_digest=dossier.task.contract_digest,
        adapter=adapter,
        isolation=isolation,
        ground=ground,
        workspace=workspace,
        base=base,
        caps=caps_left(contract.caps, [run.usage for run in dossier.runs]),
        feedback=feedback_of(dossier),
        earlier=tuple(row.finding() for row in dossier.findings),
        failures=dossier.task.attempts,
        deferrals=dossier.task.deferrals,
        spent=spent_on(dossier),
        judged_by=contract,
        judged_in=workspace.root,
        judge_files=files,
        unseen=unseen(dossier.runs, files),
        kept=kept_at(adapter.name, place.environ, private=contract.home is Home.PRIVATE),
    )


def caps_left(caps: Caps, usages: list[str]) -> Caps:
    """What earlier runs of the task have left of its caps; never nothing at all."""
    used = [msgspec.json.decode(text, type=Usage) for text in usages if text]
    left = {
        "turns": max(1, caps.turns - sum(u.turns for u in used)),
        "tokens": max(1, caps.tokens - sum(u.tokens for u in used)),
        "cost_usd": max(0.01, caps.cost_usd - sum(u.cost_usd for u in used)),
        "time": Duration(max(1_000_000, caps.time - int(sum(u.seconds for u in used) * 1e6))),
    }
    return msgspec.structs.replace(caps, **left)


def within(caps: Caps, leeway: Leeway) -> Caps:
    """The caps of a run, cut to what limits over everybody leave for it."""
    cost, tokens = leeway
    return msgspec.structs.replace(
        caps,
        cost_usd=caps.cost_usd if cost is None else max(0.01, min(caps.cost_usd, cost)),
        tokens=caps.tokens if tokens is None else max(1, min(caps.tokens, tokens)),
    )


def feedback_of(dossier: Dossier) -> str:
    """What checks found wrong with the attempt before."""
    if not dossier.runs:
        return ""
    return verify.feedback(findings_of(dossier, dossier.runs[-1].key))
