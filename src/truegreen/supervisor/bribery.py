"""What judges and reviewers are made of outside of the work tree, and whether an agent touched it.

Of the work tree there is a copy from before. Elsewhere an agent can write what its user can write:
what became another file while it worked is not run, until a person has changed it again. Packages
of an interpreter, and what clients keep in the home directory, are not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from os import path as paths
from typing import Any

import msgspec

from truegreen.contract import Contract
from truegreen.paths import name_inside
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.rows import Run
from truegreen.supervisor.reach import safe_path
from truegreen.work.toolchain.programs import chain_of, contents_of, same, signatures

FILES = "judge_files"
"""The fact of a run: a digest of the judges' files before its agent came."""
TOUCHED = "touched"
"""The fact of a run: which of them are others since, and by what they are known now."""
UNSEEN = "touched_unseen"
"""The same of the run before, whose supervisor did not live to see it."""
_GONE = "gone gone"
_MOST = 2000
_KEPT = 100

Signed = Mapping[str, str]


def own_files(contract: Contract, root: str, path: str) -> dict[str, str]:
    """The files of all judges and of the reviewer, and what each is known by."""
    return signatures(list(_files(contract, root, path)))


def digest_of(files: Signed) -> str:
    """All of them in one word, for the record."""
    whole = sorted((path, contents_of(signature)) for path, signature in files.items())
    return f"sha256:{sha256(msgspec.json.encode(whole)).hexdigest()}" if whole else ""


def changed_since(before: Signed, contract: Contract, root: str, path: str) -> dict[str, str]:
    """Files that are others now, that came, or that are gone; by what they are known now."""
    there = dict.fromkeys(_files(contract, root, path))
    others = [each for each in there if not (each in before and same(each, before[each]))]
    gone = [each for each in before if each not in there]
    return {**signatures(others[:_KEPT]), **dict.fromkeys(gone[:_KEPT], _GONE)}


def touched_before(ledger: Ledger, dossier: Dossier) -> dict[str, list[str]]:
    """What agents of a task, or of its reviews, left of judges' files: contents by path."""
    reviews = [ledger.dossier(each.id) for each in ledger.reviews_of(dossier.task.id)]
    found: dict[str, list[str]] = {}
    for each in (dossier, *reviews):
        for run in each.runs:
            for name in (TOUCHED, UNSEEN):
                found = merged(found, _facts(run).get(name, {}))
    return found


def unseen(runs: Sequence[Run], files: Signed) -> dict[str, str]:
    """What may have been touched in a run whose supervisor did not live to see it."""
    facts = _facts(runs[-1]) if runs else {}
    if TOUCHED in facts or facts.get(FILES, digest_of(files)) == digest_of(files):
        return {}
    return dict(list(files.items())[:_KEPT])


def merged(known: Mapping[str, Iterable[str]], fresh: Signed) -> dict[str, list[str]]:
    """What was touched before, and what has been just now."""
    found = {path: list(left) for path, left in known.items()}
    for path, signature in fresh.items():
        found.setdefault(path, []).append(contents_of(signature))
    return found


def bribed(touched: Mapping[str, Iterable[str]]) -> str:
    """A judge's file that still is as an agent left it; empty for none."""
    return next((path for path, left in touched.items() if _contents(path) in left), "")


def _contents(path: str) -> str:
    return contents_of(signatures([path]).get(path, _GONE)) if paths.isfile(path) else "gone"


def _facts(run: Run) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.json.decode(run.facts)
    return facts


# --- which files they are


def _files(contract: Contract, root: str, path: str) -> Iterator[str]:
    qa = contract.qa
    commands = [(judge.command, judge.at) for judge in contract.evaluators if judge.command]
    modules = [(judge.python, judge.at) for judge in contract.evaluators if judge.python]
    if qa.definition and qa.definition.command:
        commands.append((qa.definition.command, contract.cwd))
    if qa.evaluator and qa.evaluator.command:
        commands.append((qa.evaluator.command, qa.evaluator.at))
    if qa.evaluator and qa.evaluator.python:
        modules.append((qa.evaluator.python, qa.evaluator.at))
    found = [
        each for words, at in commands for each in _of_command(words, at, safe_path(path, root))
    ]
    found += [each for entry, at in modules for each in _of_module(entry, at)]
    yield from dict.fromkeys(each for each in found if not name_inside(each, root))


def _of_command(words: Sequence[str], at: str, path: str) -> Iterator[str]:
    first, *rest = words
    yield from chain_of(first if "/" not in first else paths.normpath(paths.join(at, first)), path)
    for word in rest:
        value = word.partition("=")[2] if word.startswith("-") else word
        place = paths.normpath(paths.join(at, value))
        if value and paths.isfile(place):
            yield place
            yield from _beside(paths.dirname(place), paths.splitext(place)[1])
        elif paths.isabs(value) and paths.isdir(place):
            yield from _beside(place, "")


def _of_module(entry: str, at: str) -> Iterator[str]:
    top = entry.partition(":")[0].partition(".")[0]
    yield from _beside(at, ".py")
    yield from _beside(paths.join(at, top), ".py")


def _beside(folder: str, suffix: str) -> Iterator[str]:
    """Files of a kind in a folder, and packages: a script takes modules from where it lies."""
    if not paths.isdir(folder):
        return
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    places = [paths.join(folder, name) for name in names]
    packages = [paths.join(place, f"__init__{suffix}") for place in places]
    kind = [place for place in places if place.endswith(suffix)]
    yield from [place for place in (*kind, *packages) if paths.isfile(place)][:_MOST]
