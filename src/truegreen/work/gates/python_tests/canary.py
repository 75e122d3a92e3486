"""Two tests of our own that nobody knows, and that pass in every session that is alive.

They are the same in a session and in its control: one that failed would tell the two apart.
Written as unittest cases, which pytest finds whatever names the settings give to tests.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable

from truegreen.tuples import NamedTuple
from truegreen.work.gates.cases import PASSED, Case

_TEXT = """\
import unittest


class {name}(unittest.TestCase):
    def test_{first}(self):
        self.assertEqual({a} + {b}, {sum})

    def test_{second}(self):
        self.assertEqual({a} * {b}, {product})
"""


class Canary(NamedTuple):
    """Names that nobody can guess."""

    first: str
    second: str

    def write(self, folder: str) -> str:
        """Write the file into a folder, and say how it is called."""
        a, b = (secrets.randbelow(10**6) + 2 for _ in range(2))
        text = _TEXT.format(
            name=f"Test{secrets.token_hex(6)}",
            first=self.first,
            second=self.second,
            a=a,
            b=b,
            sum=a + b,
            product=a * b,
        )
        name = f"test_{secrets.token_hex(8)}.py"
        with open(os.path.join(folder, name), "x", encoding="utf-8") as file:
            file.write(text)
        return name

    @property
    def names(self) -> set[str]:
        """How the two tests are called."""
        return {f"test_{self.first}", f"test_{self.second}"}

    def trouble(self, cases: Iterable[Case]) -> str:
        """What is wrong with what became of them; empty if nothing is."""
        found = {case.id.rpartition("::")[2]: case.outcome for case in cases}
        wrong = [found.get(name, "did not run") for name in self.names]
        return next((f"a test of ours that must pass {how}" for how in wrong if how != PASSED), "")

    def apart(self, cases: Iterable[Case]) -> list[Case]:
        """The cases of the suite itself."""
        return [case for case in cases if case.id.rpartition("::")[2] not in self.names]


def hatch() -> Canary:
    """Two new ones."""
    return Canary(secrets.token_hex(8), secrets.token_hex(8))
