"""Small environments: truegreen with what it needs and pytest, pytest alone, or no package.

The environment that tests run in is ten times as large, and it changes while other tests compile
what they load, so that a gate would copy it again and again. A small one is made once for a whole
run, compiled, and then stays as it is. pytest starts in a third of the time where it is alone.
"""

from __future__ import annotations

import compileall
import fcntl
import shutil
import subprocess
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

import truegreen

WANTED = ("truegreen[postgres,tui]", "pytest")
SCRIPTS = ("truegreen", "tg", "pytest")


def python_of(
    folder: Path, wanted: tuple[str, ...] = WANTED, *, with_truegreen: bool = True
) -> Path:
    """The interpreter of an environment with these packages; the first worker makes it."""
    made = folder.with_suffix(".made")
    with folder.with_suffix(".lock").open("ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not made.exists():
            _make(folder, wanted, with_truegreen=with_truegreen)
            made.touch()
    return folder / "bin" / "python"


def _make(folder: Path, wanted: tuple[str, ...], *, with_truegreen: bool) -> None:
    words = ["-m", "venv", "--without-pip", "--clear", str(folder)]
    subprocess.run([sys.executable, *words], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for found in _needed(wanted):
        for file in found.files or ():
            if ".." not in file.parts and file.suffix != ".pth":
                _copy(Path(str(found.locate_file(file))), site / file)
    if with_truegreen:
        shutil.copytree(Path(truegreen.__file__).parent, site / "truegreen")
    compileall.compile_dir(site, quiet=2)
    for name in SCRIPTS if with_truegreen else [name for name in SCRIPTS if name in wanted]:
        _, _, body = Path(sys.executable).with_name(name).read_text().partition("\n")
        script = folder / "bin" / name
        script.write_text(f"#!{folder}/bin/python\n{body}")
        script.chmod(0o755)


def _copy(file: Path, place: Path) -> None:
    """A file, and what it was compiled to."""
    if not file.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, place)
    if file.suffix == ".py" and Path(compiled := cache_from_source(str(file))).exists():
        beside = Path(cache_from_source(str(place)))
        beside.parent.mkdir(exist_ok=True)
        shutil.copy2(compiled, beside)


def _needed(wanted: tuple[str, ...]) -> list[Distribution]:
    """What is wanted and what that needs, as far as it is installed here."""
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    asked = [Requirement(each) for each in wanted]
    while asked:
        each = asked.pop()
        key = (each.name.lower(), frozenset(each.extras))
        if key in found:
            continue
        try:
            found[key] = distribution(each.name)
        except PackageNotFoundError:
            continue
        needs = [Requirement(line) for line in found[key].requires or ()]
        extras = each.extras or {""}
        asked += [
            need
            for need in needs
            if not need.marker or any(need.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    return list({str(each.locate_file("")) + each.name: each for each in found.values()}.values())
