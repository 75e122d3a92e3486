"""Small projects with tools of their own: environments, packages, and interpreters that pretend."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.work.gates.trees import SYSTEM_PATH, Tree
from truegreen.contract import Contract, Gate, GateKind
from truegreen.work.toolchain import Toolchain
from truegreen.work.toolchain.taking import Base, take


def pretend(place: Path, *, prefix: Path, base: Path, body: str = "", **answer: Any) -> Path:
    """An interpreter that answers what it is told to, and else runs `body`."""
    library = base / "lib" / "python3.12"
    sites = prefix / "lib" / "python3.12" / "site-packages"
    for folder in (library, sites, place.parent):
        folder.mkdir(parents=True, exist_ok=True)
    told = {
        "program": str(place),
        "version": "3.12.1",
        "prefix": str(prefix),
        "base_prefix": str(base),
        "binaries": [],
        "stdlib": [str(library)],
        "path": [str(library), str(sites)],
        "pytest": "9.0.0",
        "plugins": [],
        **answer,
    }
    said = f"truegreen-python:{json.dumps(told)}"
    text = f"#!/bin/sh\nif [ \"$1\" = -I ]; then echo '{said}'; exit 0; fi\n{body}\n"
    place.write_text(text)
    place.chmod(0o755)
    return place


def environment(root: Path, base: Path, *, body: str = "", **answer: Any) -> Path:
    """A virtual environment with such an interpreter."""
    program = pretend(root / "bin" / "python", prefix=root, base=base, body=body, **answer)
    (root / "pyvenv.cfg").write_text(f"home = {base}\n")
    return program


def pytest_gate(python: str = "", name: str = "tests") -> Gate:
    """A gate of kind pytest."""
    return Gate(name=name, kind=GateKind.PYTEST, python=python)


def taken(tree: Tree, *gates: Gate, **more: Any) -> Toolchain:
    """What the supervisor would take now, before an agent starts."""
    tree.base = tree.workspace.base("tsk_tools")
    base = tree.base
    given: dict[str, Any] = {
        "root": tree.workspace.root,
        "folder": "",
        "path": SYSTEM_PATH,
        "environ": {"HOME": os.environ["HOME"]},
        "store": str(tree.home / "state" / "tools"),
        "base": Base(lambda: tree.workspace.paths(base), plain=base.kind != "git"),
    }
    return take(Contract(title="t", gates=gates), **{**given, **more})


def pinned_paths(tools: Toolchain, under: Path) -> list[str]:
    """What is pinned below a folder, by its name from there."""
    top = f"{under}/"
    return [pin.path[len(top) :] for pin in tools.pins if pin.path.startswith(top)]
