"""Two tests of our own that nobody knows: one must pass, and in a control the other must fail.

Written as unittest cases, which pytest finds whatever names the settings give to tests.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from typing import NamedTuple

from truegreen.work.gates.cases import ERROR, FAILED, PASSED, Case

_TEXT = """\
import unittest


class {name}(unittest.TestCase):
    def test_{good}(self):
        self.assertEqual({a} + {b}, {sum})

    def test_{bad}(self):
        self.assertEqual({a} * {b}, {product})
"""


class Canary(NamedTuple):
    """Names that nobody can guess, and whether the second test is to fail."""

    good: str
    bad: str
    fails: bool

    def write(self, folder: str) -> str:
        """Write the file into a folder, and say how it is called."""
        a, b = (secrets.randbelow(10**6) + 2 for _ in range(2))
        text = _TEXT.format(
            name=f"Test{secrets.token_hex(6)}",
            good=self.good,
            bad=self.bad,
            a=a,
            b=b,
            sum=a + b,
            product=a * b + (secrets.randbelow(1000) + 1 if self.fails else 0),
        )
        name = f"test_{secrets.token_hex(8)}.py"
        with open(os.path.join(folder, name), "x", encoding="utf-8") as file:
            file.write(text)
        return name

    def among(self, cases: Iterable[Case]) -> dict[str, str]:
        """What became of the two tests."""
        names = {f"test_{self.good}": "good", f"test_{self.bad}": "bad"}
        return {
            names[name]: case.outcome
            for case in cases
            if (name := case.id.rpartition("::")[2]) in names
        }

    def trouble(self, cases: Iterable[Case]) -> str:
        """What is wrong with what became of them; empty if nothing is."""
        found = self.among(cases)
        if found.get("good") != PASSED:
            return f"a test of ours that must pass {found.get('good', 'did not run')}"
        expected = (FAILED, ERROR) if self.fails else (PASSED,)
        if found.get("bad") in expected:
            return ""
        what = "fail" if self.fails else "pass"
        return f"a test of ours that must {what} {found.get('bad', 'did not run')}"

    def apart(self, cases: Iterable[Case]) -> list[Case]:
        """The cases of the suite itself."""
        names = {f"test_{self.good}", f"test_{self.bad}"}
        return [case for case in cases if case.id.rpartition("::")[2] not in names]


def hatch(*, fails: bool) -> Canary:
    """Two new ones."""
    return Canary(secrets.token_hex(8), secrets.token_hex(8), fails)
