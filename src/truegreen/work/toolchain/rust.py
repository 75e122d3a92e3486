"""Rust by rustup: a program on the PATH that only leads to compilers in a person's home."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from truegreen.tuples import NamedTuple

_SETTINGS_BYTES = 65_536
_FILES = ("rust-toolchain", "rust-toolchain.toml")


class Home(NamedTuple):
    """A folder that tools keep their things in, the variable that leads there, and what is idle."""

    variable: str
    folder: str
    without: tuple[str, ...] = ()


def is_rustup(program: str) -> bool:
    """Whether a program is one of the many names of rustup."""
    return os.path.basename(os.path.realpath(program)) == "rustup"


def homes_of(environ: Mapping[str, str], starts: tuple[str, ...]) -> list[Home]:
    """Where compilers and packages are; `starts` are folders that may choose another compiler."""
    home = environ.get("HOME", "")
    rustup = environ.get("RUSTUP_HOME") or os.path.join(home, ".rustup")
    cargo = environ.get("CARGO_HOME") or os.path.join(home, ".cargo")
    found = [Home("RUSTUP_HOME", rustup, _idle(rustup, starts)), Home("CARGO_HOME", cargo)]
    return [each for each in found if os.path.isabs(each.folder) and os.path.isdir(each.folder)]


def _idle(rustup: str, starts: tuple[str, ...]) -> tuple[str, ...]:
    """Documentation, downloads, and compilers that nobody chose."""
    chosen = any(os.path.exists(os.path.join(start, name)) for start in starts for name in _FILES)
    default = "" if chosen else _default(rustup)
    there = os.path.join(rustup, "toolchains")
    names = sorted(os.listdir(there)) if os.path.isdir(there) else []
    idle = [name for name in names if default in names and name != default]
    return (
        *("downloads", "tmp"),
        *(f"toolchains/{name}" for name in idle),
        *(f"toolchains/{name}/share" for name in names),
    )


def _default(rustup: str) -> str:
    try:
        with open(os.path.join(rustup, "settings.toml"), encoding="utf-8") as file:
            text = file.read(_SETTINGS_BYTES)
    except (OSError, ValueError):
        return ""
    said = re.search(r'^default_toolchain *= *"([^"]+)"', text, re.MULTILINE)
    return said[1] if said else ""
