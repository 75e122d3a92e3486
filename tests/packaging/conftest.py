"""The wheel and the sdist, built once, and the wheel in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
NOT_SOURCE = ("[.]venv", "[.]git", "dist", "__pycache__", ".*_cache", ".hypothesis", "*.db")
EPOCH = "1700000000"


class Built(NamedTuple):
    """What a build left."""

    wheel: Path
    sdist: Path


def build(source: Path, into: Path, **environ: str) -> Built:
    """Wheel and sdist of a source tree, with the builder that is locked."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(into)],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **environ},
        check=True,
        capture_output=True,
        timeout=60,
    )
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return Built(wheel, sdist)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The archives of this tree."""
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same source on another day, in another place, written by somebody with other habits."""
    source = tmp_path_factory.mktemp("elsewhere") / "checkout"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*NOT_SOURCE), symlinks=True)
    for path in source.rglob("*"):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)
            os.utime(path, (1_000_000_000, 1_000_000_000))
    return source


@pytest.fixture(scope="session")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an environment that has the wheel and nothing else: no index is asked."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    uv = Path(sys.executable).with_name("uv")
    quiet = {**os.environ, "UV_PYTHON_DOWNLOADS": "never", "UV_OFFLINE": "1"}
    for words in (
        ["venv", "-q", "-p", sys.executable, str(place)],
        ["pip", "install", "-q", "-p", str(place), "--no-deps", str(built.wheel)],
    ):
        subprocess.run([uv, *words], check=True, env=quiet, capture_output=True, timeout=60)
    return place


@pytest.fixture(scope="session")
def furnished_install(installed: Path) -> Path:
    """The same, beside the libraries of these tests, but without the truegreen that they test."""
    (folder,) = installed.glob("lib/python*/site-packages")
    # A path that is added this way is not searched for .pth files: the editable install stays out.
    (folder / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return installed
