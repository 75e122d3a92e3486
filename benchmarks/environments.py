"""Environments of other programs, made once from pinned requirements and kept in the user's cache.

An environment appears whole or not at all, and anew when its pins change. Whoever can't have
one is told why.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

# Read when the module loads: every test sees another home.
CACHE = os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "truegreen", "peers"
)
PINS = os.path.join(os.path.dirname(__file__), "peers", "pins")
READY = ".ready"
PATIENCE_S = 600


class UnavailableError(Exception):
    """Why a program can't be measured here, in a few words."""


def interpreter(name: str, *, install: bool) -> str:
    """The Python of a peer's environment; made first, where that is allowed and possible."""
    pins, home = os.path.join(PINS, f"{name}.txt"), place(name)
    if not os.path.exists(os.path.join(home, READY)):
        if not install:
            raise UnavailableError("it is not installed here")
        with _alone():
            if not os.path.exists(os.path.join(home, READY)):
                _make(home, pins)
    return os.path.join(home, "bin", "python")


def place(name: str) -> str:
    """Where its environment is or would be."""
    with open(os.path.join(PINS, f"{name}.txt"), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    return os.path.join(CACHE, f"{name}-{sys.version_info[0]}.{sys.version_info[1]}-{digest}")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(home: str, pins: str) -> None:
    """In place, since an environment can't be moved; a mark says that it is whole."""
    uv = os.path.join(os.path.dirname(sys.executable), "uv")
    uv = uv if os.access(uv, os.X_OK) else shutil.which("uv") or ""
    if not uv:
        raise UnavailableError("uv is not here to install it")
    shutil.rmtree(home, ignore_errors=True)
    python = os.path.join(home, "bin", "python")
    _run(uv, "venv", "-q", "--python", sys.executable, home)
    _run(uv, "pip", "install", "-q", "-p", python, "--require-hashes", "-r", pins)
    with open(os.path.join(home, READY), "w", encoding="utf-8"):
        pass


def _run(*words: str) -> None:
    trusting = os.environ | {"UV_SYSTEM_CERTS": "true", "UV_PYTHON_DOWNLOADS": "never"}
    try:
        done = subprocess.run(  # noqa: S603 - the package manager
            words, env=trusting, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"its installation took over {PATIENCE_S} s") from None
    if done.returncode:
        raise UnavailableError(f"it could not be installed: {_last(done.stderr)}")


def _last(text: str) -> str:
    """The last line that says something; addresses of registries are nobody's business."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "://" not in line]
    return lines[-1][:120] if lines else "no reason was given"


def ask(python: str, module: str, *words: str, patience: float) -> str:
    """What a driver says last on its standard output."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""}
    try:
        done = subprocess.run(  # noqa: S603 - our own driver
            [python, "-m", module, *words],
            cwd=root,
            env=environ,
            capture_output=True,
            text=True,
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"it was not done after {patience:.0f} s") from None
    said = done.stdout.split("\n")
    if done.returncode or len(said) < 2:  # noqa: PLR2004 - a line and its end
        raise UnavailableError(f"its driver failed: {_last(done.stderr)}")
    return said[-2]
