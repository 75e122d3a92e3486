"""Packages whose tests are measured: source files, test folders, and the score to reach."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Package(NamedTuple):
    """What is mutated, and which tests may notice it."""

    paths: tuple[str, ...]
    """Globs below `src/truegreen`."""
    tests: tuple[str, ...]
    """Folders and files below `tests` for lines that no test executes in its own process."""
    goal: float = 0.0
    without: tuple[str, ...] = ()

    def sources(self, source: Path) -> list[Path]:
        """The source files, sorted."""
        root = source / "truegreen"
        left_out = {path for glob in self.without for path in root.glob(glob)}
        found = {path for glob in self.paths for path in root.glob(glob)}
        return sorted(found - left_out)


POLICY = ("work/verify.py", "work/weighing.py", "work/exits.py", "record/lifecycle.py")
FENCING = (
    "record/ledger/fencing.py",
    "record/ledger/leases.py",
    "record/ledger/tripwires.py",
    "supervisor/termination.py",
    "supervisor/pulse.py",
    "supervisor/takeover.py",
    "doors/marks.py",
)
PACKAGES = {
    "domain": Package(("*.py",), ("test_model.py", "test_errors.py", "test_config.py")),
    "contract": Package(("contract/*.py",), ("test_contract.py", "test_contract_file.py")),
    "policy": Package(POLICY, ("work/test_verify.py", "record/test_lifecycle.py"), 0.95),
    "store": Package(("record/*.py",), ("record",), 0.95, ("record/lifecycle.py",)),
    "ledger": Package(("record/ledger/*.py",), ("record",), 0.95, FENCING),
    "fencing": Package(FENCING, ("record", "supervisor", "doors", "walk/test_terminate.py"), 0.95),
    "gates": Package(("work/gates/**/*.py",), ("work/gates",), 0.95),
    "process": Package(("work/*.py",), ("work",), 0.0, POLICY),
    "workspace": Package(("work/workspace/*.py", "work/toolchain/*.py"), ("work/workspace",)),
    "adapters": Package(("work/agents/**/*.py",), ("work/agents",)),
    "evaluators": Package(("work/judges/*.py", "work/claims/*.py"), ("work/judges", "work/claims")),
    "agent_api": Package(("doors/**/*.py",), ("doors", "walk/test_hooks.py"), 0.0, FENCING),
    "supervisor": Package(("supervisor/*.py",), ("supervisor", "walk"), 0.0, FENCING),
    "scheduler": Package(("scheduler/*.py", "engines/*.py"), ("test_scheduler.py", "engines")),
    "integrations": Package(("outlets/**/*.py",), ("outlets",)),
    "cli": Package(("faces/cli/*.py",), ("faces/cli",)),
    "web": Package(("faces/web/**/*.py",), ("faces/web",)),
    "interfaces": Package(
        ("faces/*.py", "faces/mcp/*.py", "faces/top/*.py", "faces/demo/*.py"), ("faces",)
    ),
}
