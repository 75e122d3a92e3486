"""The command that attacks are played with: loaded once, forked for every run.

The base of a shape is the same for all attacks on it, and so are its gates and tools: what gates
said about it is kept, failures too, while the product keeps passes only. What they say after the
agent is asked in every run.

Run as a program this module is the process that is forked.
"""

from __future__ import annotations

import pkgutil
import socket
import sys
from importlib import import_module
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tests.forking import Forge, serve
from truegreen.contract import Gate
from truegreen.facts import Finding
from truegreen.model import FindingOutcome
from truegreen.work import baselines
from truegreen.work.gates.rooms import Site

ENVIRON = {"LANG": "C.UTF-8"}
"""Settings that are read at the start, as every ground has them."""
LOADED = ("truegreen.record", "truegreen.supervisor", "truegreen.work")
keep, recall = baselines.keep, baselines.recall


def loaded_command() -> Forge:
    """The process that is forked."""
    return Forge(__name__, ENVIRON)


def _keep(gate: Gate, site: Site, found: Finding) -> None:
    keep(gate, site, found)
    if found.outcome is FindingOutcome.FAILED:
        place = _place(gate, site)
        place.parent.mkdir(exist_ok=True)
        baselines._write(str(place), msgspec.json.encode(found))


def _recall(gate: Gate, site: Site) -> Finding | None:
    if kept := recall(gate, site):
        return kept
    try:
        found = msgspec.json.decode(_place(gate, site).read_bytes(), type=Finding)
    except FileNotFoundError:
        return None
    return replace(found, contract_digest=site.contract_digest, judged=site.judged)


def _place(gate: Gate, site: Site) -> Path:
    """By the product's own question: tree, gate, protected paths, tools, PATH and isolation."""
    question = baselines._question(gate, site)
    return Path(baselines._place(site, question)).with_suffix(".failed")


def main(socket_number: str) -> None:
    """Load what a run loads, and serve."""
    for package in LOADED:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    baselines.keep, baselines.recall = _keep, _recall
    with socket.socket(fileno=int(socket_number)) as orders:
        serve(orders)


if __name__ == "__main__":
    main(sys.argv[1])
