"""One gate on demand: about the workspace as it is now, and whether it is a gate at all.

A gate has to go red without the work, and green with it. The negative controls are the tree as it
is now (an agent that does nothing) and the same tree with every file emptied that is not part of
the check. A gate that passes there decides nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from truegreen.contract import Before, Contract, Gate, contract_digest
from truegreen.errors import NotFound
from truegreen.facts import Exit, Finding
from truegreen.model import EndedBy, ExitDetail, ExitReason, FindingOutcome, Level, RunStatus
from truegreen.supervisor.examination import site_of
from truegreen.supervisor.ground import first_ground
from truegreen.supervisor.place import Place
from truegreen.supervisor.preflight import check_variables
from truegreen.supervisor.second_look import scratch
from truegreen.supervisor.subject import Subject
from truegreen.tuples import NamedTuple
from truegreen.work import verify
from truegreen.work.gates.rooms import Site, check_files
from truegreen.work.weighing import compared, has_baseline, levelled
from truegreen.work.workspace import Snapshot, Workspace

_PASSED, _FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
NOTHING, FAULT, GOOD, BAD = "nothing done", "seeded fault", "good", "bad"


_DONE = Exit(
    status=RunStatus.EXITED,
    reason=ExitReason.DONE,
    detail=ExitDetail.COMPLETED,
    ended_by=EndedBy.AGENT,
)


class Now(NamedTuple):
    """The workspace as it is, with everything that a gate needs to look at it."""

    workspace: Workspace
    base: Snapshot
    scratch: str
    here: Site

    def site(self, tree: Snapshot) -> Site:
        """Where a gate looks at a tree as if an agent had left it."""
        return replace(self.here, left=tree)


@contextmanager
def now_at(place: Place, contract: Contract) -> Iterator[Now]:
    """Take the workspace as it is; nothing of it is kept in the record."""
    check_variables(contract, place.environ)
    with scratch(place) as folder:
        name = os.path.basename(folder)
        ground, workspace, base = first_ground(place, contract, name)
        subject = Subject(
            contract=contract,
            contract_digest=contract_digest(contract),
            ground=ground,
            workspace=workspace,
            base=base,
            left=base,
            ended=_DONE,
            judged="",
        )
        with site_of(place._replace(state_dir=folder), subject, name) as site:
            yield Now(workspace, base, folder, site)


def check_now(place: Place, contract: Contract, tree: str = "") -> Finding:
    """The contract's one gate on the workspace as it is now, or on another tree.

    There is no run that an artifact could be of: `fresh` is not asked for.
    """
    gate = replace(contract.gates[0], fresh=None)
    contract = replace(contract, gates=(gate,))
    with now_at(place, contract) as now:
        site = now.site(_kept(now.workspace, tree) if tree else now.base)
        before = verify.baseline(contract, site) if tree and has_baseline(gate) else []
        return verify.examine(contract, site, baseline_findings=before)[-1]


def _kept(workspace: Workspace, tree: str) -> Snapshot:
    """A snapshot of the mirror by its ref, a run or a task; or a commit of the repository."""
    names = (f"refs/truegreen/{kind}/{tree}" for kind in ("left", "base"))
    for ref in (tree,) if tree.startswith("refs/truegreen/") else names:
        found = workspace.snapshot_of(ref)
        if found:
            return found
    found = workspace.fetched(tree)
    if found is None:
        raise NotFound(f"{tree} is no run, task, commit, branch or tag that is known here")
    return found


class Trial(NamedTuple):
    """A gate's answer about one tree, and the answer that proves something."""

    name: str
    tree: str
    expected: str
    finding: Finding

    @property
    def held(self) -> bool | None:
        """Whether it answered as it must; None where any answer would do."""
        if self.expected == "any":
            return None
        return self.finding.outcome == self.expected


class Proof(NamedTuple):
    """All trials of a gate, and the best level that it can reach."""

    trials: tuple[Trial, ...]
    level: Level

    @property
    def goes_red(self) -> bool:
        """Whether it failed on a tree without the work, and passed on none."""
        red = [t for t in self.trials if t.name in (NOTHING, FAULT, BAD)]
        return any(t.finding.outcome is _FAILED for t in red) and not self.refused

    @property
    def refused(self) -> bool:
        """Whether it passed where it must not: it would call undone work done."""
        return any(t.held is False and t.expected == _FAILED and t.finding.outcome is _PASSED
                   for t in self.trials)  # fmt: skip

    @property
    def goes_green(self) -> bool | None:
        """Whether it passed on a tree with the work; None where none was given."""
        good = [t.held for t in self.trials if t.expected == _PASSED]
        return all(good) if good else None


def prove(place: Place, contract: Contract, *, good: str = "", bad: str = "") -> Proof:
    """Ask the contract's one gate about trees whose answers are known; none is of a run."""
    gate = replace(contract.gates[0], fresh=None)
    with now_at(place, contract) as now:
        trials = tuple(_trials(now, gate, good=good, bad=bad))
    return Proof(trials, _reach(trials))


def _trials(now: Now, gate: Gate, *, good: str, bad: str) -> Iterator[Trial]:
    wanted = {Before.FAIL: _FAILED, Before.PASS: _PASSED}.get(gate.before, "any")
    known = verify.check_gate(gate, now.site(now.base))
    first = Trial(NOTHING, "as it is now", str(wanted), known)
    yield first
    trees = [(name, ref, expected) for name, ref, expected in
             ((GOOD, good, _PASSED), (BAD, bad, _FAILED)) if ref]  # fmt: skip
    fault = _faulty(now, gate)
    if fault is not None:
        shown = "every file emptied but those of the check"
        yield _tried(now, gate, Trial(FAULT, shown, str(_FAILED), known), fault)
    for name, ref, expected in trees:
        tree = _kept(now.workspace, ref)
        yield _tried(now, gate, Trial(name, ref, str(expected), known), tree)


def _tried(now: Now, gate: Gate, trial: Trial, tree: Snapshot) -> Trial:
    """The gate about a tree, beside what it said about the tree as it is."""
    known = trial.finding if has_baseline(gate) else None
    pinned = known.evidence if known else {}
    found = verify.check_gate(gate, now.site(tree), pinned=pinned)
    changed = now.base.digest != tree.digest
    return trial._replace(finding=levelled(gate, compared(gate, found, known, changed=changed)))


def _faulty(now: Now, gate: Gate) -> Snapshot | None:
    """The tree with all files emptied that are not part of the check; None if there are none."""
    base = now.base
    own = check_files(gate, now.site(base))
    emptied = [path for path in now.workspace.paths(base) if not own(path)]
    if not emptied:
        return None
    folder = os.path.join(now.scratch, "fault")
    now.workspace.lay(base, folder)
    for path in emptied:
        place = os.path.join(folder, path)
        if os.path.isfile(place) and not os.path.islink(place):
            os.truncate(place, 0)
    return now.workspace.kept_from(folder, f"{os.path.basename(now.scratch)}_fault", base)


def _reach(trials: tuple[Trial, ...]) -> Level:
    """The best level among the answers that count: passes on good trees, else what reds carried."""
    good = [t.finding.level for t in trials if t.expected == _PASSED and t.held]
    red = [t.finding.level for t in trials if t.finding.outcome is _FAILED]
    return max(good or red, default=Level.A0)
