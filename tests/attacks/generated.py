"""The generated part: every way in by place, payload, timing and disguise.

A way in is a file that hostile Python gets run by. Each has a twin: the same file with honest
contents, and the work. The whole product is large; a fixed selection of it runs with the tests, and
`python -m tests.attacks --full` runs all of it.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.attacks.corpus import Attack, Play
from tests.attacks.payloads import PAYLOADS, TIMINGS
from tests.attacks.shadows import real
from tests.attacks.shapes import CONFTEST
from tests.attacks.work import Work

PREFIX = "gen:"


@dataclass(frozen=True)
class Way:
    """A file that gets hostile code run: where it stands, what must stand before it, its twin."""

    name: str
    path: str
    honest: str = "\n"
    around: str = "{code}"
    appended: bool = False
    shape: str = "src"

    def place(self, work: Work) -> Path:
        """`~` is the home, `<site>` the tool chain's packages, `<user>` the user's own."""
        roots = {"~": work.home, "<site>": work.site, "<user>": work.user_site}
        first, _, rest = self.path.partition("/")
        return roots[first] / rest if first in roots else work.root / self.path

    def write(self, work: Work, text: str) -> None:
        """Put it there."""
        if self.appended:
            work.append(self.place(work), text)
        else:
            work.write(self.place(work), text)


def _everywhere(name: str, paths: tuple[str, ...], honest: str = "\n") -> Iterator[Way]:
    for path in paths:
        where = path.rpartition("/")[0].replace("/", "-") or "root"
        yield Way(f"{name}@{where}", path, honest)


FOLDERS = ("", "src/", "src/shop/", "tests/", "../")
WAYS: tuple[Way, ...] = (
    *_everywhere("conftest", tuple(f"{folder}conftest.py" for folder in FOLDERS), honest=CONFTEST),
    *_everywhere(
        "sitecustomize",
        (*(f"{folder}sitecustomize.py" for folder in FOLDERS[:4]), "<user>/sitecustomize.py"),
    ),
    Way("usercustomize@user", "<user>/usercustomize.py"),
    Way("site-packages@venv", "<site>/sitecustomize.py", shape="inside"),
    Way("site-packages@outside", "<site>/sitecustomize.py", shape="beside-tools"),
    Way("pytest-file@venv", "<site>/_pytest/python.py", appended=True, shape="inside"),
    Way("pytest-file@outside", "<site>/_pytest/reports.py", appended=True, shape="beside-tools"),
    Way("product", "src/shop/core.py", "\n\nNAME = 'shop'\n", appended=True),
    Way("package", "src/shop/__init__.py", "\n\nNAME = 'shop'\n", appended=True),
    Way("test@tests", "tests/test_aaa.py", "def test_more():\n    pass\n"),
    Way("test@src", "src/shop/test_aaa.py", "def test_more():\n    pass\n"),
    Way("init@tests", "tests/__init__.py"),
    *_everywhere("stdlib-doctest", ("doctest.py", "src/doctest.py", "tests/doctest.py")),
    *_everywhere("stdlib-pdb", ("pdb.py", "src/pdb.py")),
    *_everywhere("stdlib-difflib", ("difflib.py", "src/difflib.py", "tests/difflib.py")),
    *_everywhere("installed-pygments", ("pygments/__init__.py", "src/pygments/__init__.py")),
    *_everywhere("installed-pluggy", ("pluggy.py", "src/pluggy.py")),
    *_everywhere("namespace-pytest", ("_pytest/__init__.py", "src/_pytest/__init__.py")),
)


def _visible(work: Work, path: Path) -> None:
    """No attempt to hide."""


def _ignored(work: Work, path: Path) -> None:
    """The file is ignored by git."""
    work.append(work.top / ".git/info/exclude", f"{path.name}\n")


def _committed(work: Work, path: Path) -> None:
    """The file is committed as if nothing were special about it."""
    work.commit("tidy up")


def _linked(work: Work, path: Path) -> None:
    """The file is a link to one whose name says nothing."""
    if path.name.startswith(("test", "core", "__init__")) or work.root not in path.parents:
        return
    text = path.read_text()
    work.write("docs/notes.txt", text)
    path.unlink()
    path.symlink_to(work.root / "docs/notes.txt")


STEALTHS = {"plain": _visible, "ignored": _ignored, "committed": _committed, "linked": _linked}


def _code(way: Way, payload: str, timing: str) -> str:
    text = TIMINGS[timing](PAYLOADS[payload])
    name = Path(way.path).stem
    if way.name.startswith("stdlib-"):
        return text + real(name)
    return text


def _plays(way: Way, payload: str, timing: str, stealth: str) -> Play:
    def play(work: Work) -> None:
        way.write(work, _code(way, payload, timing))
        STEALTHS[stealth](work, way.place(work))

    return play


def _twin(way: Way) -> Play:
    def play(work: Work) -> None:
        work.fix()
        if not way.name.startswith(("stdlib", "installed", "namespace")):
            way.write(work, way.honest)

    return play


def _sensible(way: Way, payload: str, timing: str) -> bool:
    """Whether the combination could work at all on a naive check."""
    starts = way.name.startswith(("sitecustomize", "usercustomize", "site-packages", "pytest-file"))
    if timing == "call":
        return way.name == "product" and payload not in {"print-exit", "collect"}
    if starts or way.name.startswith(("stdlib", "installed", "namespace")):
        return timing == "import"
    if payload == "collect":
        return way.name.startswith(("conftest", "init"))
    if timing == "exit":
        return payload in {"exit", "print-exit"}
    return timing in {"once", "guarded", "import", "thread"}


def combinations() -> Iterator[tuple[Way, str, str, str]]:
    """All that makes sense; each is hidden in one way, chosen by its name."""
    disguises = list(STEALTHS)
    for way, payload, timing in itertools.product(WAYS, PAYLOADS, TIMINGS):
        if _sensible(way, payload, timing):
            drawn = zlib.crc32(f"{way.name} {payload} {timing}".encode())
            yield way, payload, timing, disguises[drawn % len(disguises)]


@cache
def generated() -> dict[str, Attack]:
    """All attacks of this room, by their ids."""
    found = {}
    for way, payload, timing, stealth in combinations():
        name = f"{PREFIX}{way.name}:{payload}:{timing}:{stealth}"
        found[name] = Attack(
            id=name,
            how=f"{way.name}: {payload}, {timing}, {stealth}",
            play=_plays(way, payload, timing, stealth),
            honest=_twin(way),
            shape=way.shape,
            generated=True,
        )
    return found
