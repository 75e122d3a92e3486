"""A Python that is small enough to be looked through: gates compare and copy what they run with.

The one that runs the tests may have ten thousand files of packages beside its standard library,
and every gate that is a script looks at all of them. This one is a copy without them, from which
environments are made as a person makes them.
"""

from __future__ import annotations

import compileall
import fcntl
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from tests.small_environment import _copy, _needed

LEFT_OUT = (
    *("site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "turtledemo"),
    *("ensurepip", "lib2to3", "pydoc_data", "config-*", "*.opt-[12].pyc"),
)
LEXERS = ("__init__.py", "_mapping.py", "diff.py", "python.py")
NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"


@contextmanager
def _made_once(folder: Path) -> Iterator[bool]:
    """Whether this worker is the one to make a folder; the others wait for it."""
    made = folder.with_suffix(".made")
    with folder.with_suffix(".lock").open("ab") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield not made.exists()
        made.touch()


def environment(folder: Path, *wanted: str) -> Path:
    """The programs of an environment with these packages, which whoever comes first makes."""
    base = _base(folder.with_name("base"))
    with _made_once(folder) as mine:
        if mine:
            subprocess.run([base, "-m", "venv", "--without-pip", folder], check=True)
            (site,) = folder.glob("lib/python*/site-packages")
            for found in _needed(wanted):
                for file in filter(_is_used, found.files or ()):
                    _copy(Path(str(found.locate_file(file))), site / file)
            compileall.compile_dir(site, quiet=2)
            for name in wanted:
                _, _, body = Path(sys.executable).with_name(name).read_text().partition("\n")
                script = folder / "bin" / name
                script.write_text(f"#!{folder}/bin/python\n{body}")
                script.chmod(0o755)
    return folder / "bin"


def _is_used(file: PurePath) -> bool:
    """Whether a file of a package is copied: most lexers of Pygments are for other languages."""
    lexer = file.parts[:2] == ("pygments", "lexers") and file.name not in LEXERS
    return ".." not in file.parts and file.suffix not in (".pth", ".pyc") and not lexer


def _base(folder: Path) -> Path:
    """A copy of this interpreter with what its standard library needs."""
    program = folder / "bin" / NAME
    with _made_once(folder) as mine:
        if mine:
            library = Path(sysconfig.get_path("stdlib"))
            ignored = shutil.ignore_patterns(*LEFT_OUT)
            copy = folder / sys.platlibdir / NAME
            shutil.copytree(library, copy, ignore=ignored, symlinks=True)
            program.parent.mkdir()
            shutil.copy2(Path(sys.executable).resolve(), program)
            shared = Path(*map(sysconfig.get_config_var, ("LIBDIR", "INSTSONAME")))
            if ".so" in shared.name and shared.is_file():  # some look for it beside themselves
                shutil.copy2(shared, copy.parent)
    return program
