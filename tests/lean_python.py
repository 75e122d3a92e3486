"""A Python installation of which gates see little: the standard library, and no package.

Whoever judges a command looks at every file of the Python on the PATH, several times in a run. The
installation that the tests run with may hold tens of thousands, which have no part in any test.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

PACKAGES = ("site-packages", "dist-packages")
UNUSED = ("test", "tests", "idlelib", "lib2to3", "tkinter", "turtledemo", "ensurepip", "config-*")
OPTIMISED = "*.opt-?.pyc"


def lean_python(folder: Path) -> Path:
    """The interpreter of an installation that whoever comes first copies into this folder."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if sys.platform != "linux":  # an installation may not work in another place
        return program
    _once(folder, lambda: _install(program, folder))
    return folder / "bin" / program.name


def on_lean_python(python: Path, folder: Path) -> Path:
    """The interpreter of a copy of an environment, whose base is a lean installation."""
    program = lean_python(folder.with_name(f"{folder.name}-base"))
    _once(folder, lambda: _rebase(python.parents[1], program, folder))
    return folder / "bin" / python.name


def _once(folder: Path, make: Callable[[], None]) -> None:
    made = folder.with_suffix(".made")
    with folder.with_suffix(".lock").open("ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make()
            made.touch()


def _install(program: Path, folder: Path) -> None:
    base = Path(sys.base_prefix)
    library = Path(sysconfig.get_path("stdlib"))
    without = shutil.ignore_patterns(*PACKAGES, *UNUSED, OPTIMISED)
    shutil.copytree(library, folder / library.relative_to(base), symlinks=True, ignore=without)
    for file in (base / "lib").glob("libpython*.so*"):
        (folder / "lib" / file.name).symlink_to(file)
    (folder / "bin").mkdir()
    shutil.copy2(program, folder / "bin")
    for name in ("python", "python3"):
        (folder / "bin" / name).symlink_to(program.name)


def _rebase(environment: Path, program: Path, folder: Path) -> None:
    subprocess.run(["cp", "-a", environment, folder], check=True)
    settings = folder / "pyvenv.cfg"
    lines = [line.partition(" = ") for line in settings.read_text().splitlines()]
    said = {name: text for name, _, text in lines} | {"home": str(program.parent)}
    settings.write_text("".join(f"{name} = {text}\n" for name, text in said.items()))
    for file in (folder / "bin").iterdir():
        if not file.is_symlink():
            file.write_text(file.read_text().replace(f"{environment}/", f"{folder}/"))
        elif file.readlink().is_absolute():
            file.unlink()
            file.symlink_to(program)
