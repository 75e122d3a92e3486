"""Real workspaces for tests of gates: a tree before the agent, what it did, and a site."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truegreen.contract import Before, Contract, Gate, Isolation
from truegreen.model import Phase
from truegreen.work import verify
from truegreen.work.gates.rooms import Site
from truegreen.work.weighing import PINNING
from truegreen.work.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truegreen.facts import Finding

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
DIGEST = "sha256:contract"


class Tree:
    """A workspace with a base. `does` plays the agent; `site` is what was left."""

    def __init__(self, home: Path, files: Mapping[str, str | bytes], *, git: bool = True) -> None:
        self.home, self.root = home, home / "project"
        self.root.mkdir()
        self.write(files)
        if git:
            # Without sample hooks and upkeep: a third of the files and of the work.
            self.git("init", "-q", "-b", "main", "--template=")
            self.git("add", "-A")
            self.git("-c", "maintenance.auto=false", "commit", "-qm", "base", "--allow-empty")
        self.workspace = Workspace(str(self.root), str(home / "mirrors"))
        self.base = self.workspace.base("tsk_1")
        self.remotes = self.workspace.remotes()

    def git(self, *arguments: str) -> str:
        """Run git as the agent would."""
        name = ("-c", "user.name=agent", "-c", "user.email=agent@example.org")
        command = ["git", *name, *arguments]
        return subprocess.run(
            command, cwd=self.root, check=True, capture_output=True, text=True
        ).stdout.strip()

    def write(self, files: Mapping[str, str | bytes]) -> Tree:
        """Write files, with a leading `#!` as programs."""
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            path.chmod(0o755 if path.read_bytes().startswith(b"#!") else 0o644)
        return self

    def site(self, **more: Any) -> Site:
        """What the supervisor would hand in now."""
        # As unlike as real ones: whoever ends a run looks for all that has its name, everywhere.
        run = f"run_{os.urandom(6).hex()}"
        given: dict[str, Any] = {
            "workspace": self.workspace,
            "base": self.base,
            "left": self.workspace.left(run, base=self.base),
            "scratch": str(self.home / "scratch"),
            "path": os.environ["PATH"],
            "contract_digest": DIGEST,
            "run": run,
            "judged": "agent",
            "remotes": self.remotes,
            "isolation": Isolation.AUTO,
        }
        return Site(**{**given, **more})

    def ask(self, gate: Gate, **more: Any) -> Finding:
        """One gate's finding about what was left."""
        finding = verify.check_gate(gate, self.site(**more))
        assert not any((self.home / "scratch").iterdir()), "a gate left its room behind"
        return finding

    def examine(self, *gates: Gate, **more: Any) -> list[Finding]:
        """The findings of several gates."""
        charge = more.pop("charge", None)
        contract = Contract(title="t", gates=gates)
        found = verify.examine(contract, self.site(**more), charge=charge)
        asked = {gate.name for gate in gates if gate.before is not Before.ANY}
        asked |= {gate.name for gate in gates if gate.kind in PINNING}
        # Every required gate is asked about the base; most tests are about what was left.
        return [f for f in found if f.phase is not Phase.BASELINE or f.check in asked]


def run_gate(*words: str, **more: Any) -> Gate:
    """A gate of kind `run`."""
    return Gate(name=more.pop("name", "check"), command=words, **more)
