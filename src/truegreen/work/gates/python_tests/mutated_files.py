"""Writes changed expectations into a copy of the tree, where each test is written."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Collection, Sequence

from truegreen.tuples import NamedTuple
from truegreen.work.documents import Document, Trouble, read_regular
from truegreen.work.gates.python_tests.definitions import Definitions, Written
from truegreen.work.gates.python_tests.mutants import Changes

_SOURCE_BYTES = 4 * 1024 * 1024
_LENIENT = (b"xfail", b"dependency", b"incremental")
"""Words of a file in which a test may be skipped because another one failed."""
_IN_STEPS = (b"dependency", b"incremental")
"""Words of a file in which that is meant so."""


class Mutated(NamedTuple):
    """The tests that were changed and how, and what is to be kept in mind about them."""

    changed: dict[str, str]
    unsure: frozenset[str]
    excused: frozenset[str]


class MutatedFiles:
    """Collects changes file by file, and writes them at the end."""

    def __init__(
        self, root: str, roots: Sequence[str], usable: Callable[[str], bool], word: str
    ) -> None:
        self._root, self._word = root, word
        self._definitions = Definitions(self._read, roots, usable)
        self._changes: dict[str, Changes | None] = {}
        self._lenient: dict[str, bool] = {}
        self._written: dict[str, Written] = {}
        self._excused: set[str] = set()
        self._loaded: set[str] = set()
        self._chance = random.SystemRandom()

    def change(self, path: str, tests: Collection[str], red: Collection[str]) -> None:
        """Change tests of a file, given by their node ids, where they are written.

        In steps that depend on each other only those that were red are changed, or the first one
        would keep them from being asked.
        """
        if red and any(word in (self._read(path) or b"") for word in _IN_STEPS):
            tests = red
        places: dict[str, dict[str, bool]] = {}
        for test in tests:
            names = test.partition("::")[2].split("::")
            written = self._definitions.of(path, names) if path.endswith(".py") else None
            if written is None:
                continue
            self._written[test] = written
            if written.places[0][0] != path and self._of(path) and self._lenient[path]:
                self._excused.add(test)
            for place, name in written.places:
                known = places.setdefault(place, {})
                known[name] = known.get(name, False) or test in red
        for place, found in places.items():
            if changes := self._of(place):
                tree = self._definitions.tree(place)
                failing = [name for name, was_red in found.items() if was_red and self._word]
                if tree:
                    changes.change(tree, found, self._chance, failing, self._word)

    def load(self, path: str, tests: Collection[str]) -> bool:
        """Change tests of a file that can't be loaded, and let it load; False if it is no use.

        Only tests whose failure may be hidden need that: then it shows whether it is.
        """
        places = {path}
        unsure = False
        for test in tests:
            names = test.partition("::")[2].split("::")
            written = self._definitions.of(path, names)
            places |= {place for place, _ in written.places} if written else set()
            unsure = unsure or (written is not None and not written.sure)
        if not unsure:
            return False
        self.change(path, tests, tests)
        for place in places - self._loaded:
            tree = self._definitions.tree(place)
            changes = self._of(place)
            if tree and changes:
                changes.without_imports(tree)
        self._loaded |= places
        return True

    def _of(self, path: str) -> Changes | None:
        if path not in self._changes:
            data = self._read(path)
            self._changes[path] = Changes.of(data) if data is not None else None
            self._lenient[path] = any(word in (data or b"") for word in _LENIENT)
        return self._changes[path]

    def _read(self, path: str) -> bytes | None:
        place = os.path.normpath(os.path.join(self._root, path))
        if not os.path.lexists(place):
            return None
        found = read_regular(place, within=self._root, limit=_SOURCE_BYTES)
        if isinstance(found, Trouble) and found.ours and os.path.getsize(place) <= _SOURCE_BYTES:
            raise OSError(f"{path} can't be read: {found.reason}")
        return found.data if isinstance(found, Document) else None

    def write(self) -> Mutated:
        """Write the changed files."""
        kinds: dict[tuple[str, str], str] = {}
        for path, changes in self._changes.items():
            mutant = changes.mutant() if changes else None
            if mutant is None:
                continue
            place = os.path.join(self._root, path)
            os.chmod(place, 0o600)
            with open(place, "wb") as file:
                file.write(mutant.data)
            kinds.update({(path, name): kind for name, kind in mutant.tests.items()})
        changed, unsure, excused = dict[str, str](), set[str](), set(self._excused)
        for test, written in self._written.items():
            found = [kinds[place] for place in written.places if place in kinds]
            if not found:
                continue
            changed[test] = found[0]
            if not written.sure or len(found) < len(written.places):
                unsure.add(test)
            if any(self._lenient.get(path) for path, _ in written.places):
                excused.add(test)
        return Mutated(changed, frozenset(unsure), frozenset(excused))
