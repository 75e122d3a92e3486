"""Settings of tools in the folders above a place, and whether they are what they were.

Tools look upwards for their settings. What lies above the copies that gates run in is recorded
before the agent starts; afterwards only what is new or different counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import blake2b

from truegreen.work.toolchain.scanning import hash_of

_SETTINGS = re.compile(
    r"\.?pytest\.(?:ini|toml)|tox\.ini|setup\.cfg|pyproject\.toml|conftest\.py|\.?ruff\.toml"
    r"|\.?mypy\.ini|\.flake8|\.?pylintrc|\.coveragerc|\.eslintrc.*|eslint\.config\..*|\.mocharc.*"
    r"|\.prettierrc.*|\.babelrc.*|babel\.config\..*|(?:jest|vitest|vite)\.config\..*|package\.json"
    r"|node_modules|tsconfig\.json|deno\.jsonc?|biome\.jsonc?|\.npmrc|\.yarnrc.*|go\.(?:mod|work)"
    r"|Cargo\.toml|\.golangci\..*|\.rubocop\.yml|Gemfile|Rakefile|\.?[Jj]ustfile|settings\.gradle.*"
    r"|\.shellcheckrc|\.yamllint.*|\.ignore"
)
_CARGO = (".cargo/config", ".cargo/config.toml")
_MOST_FILES = 100_000


def found_above(folder: str) -> Iterator[str]:
    """Paths of settings that tools would find on their way up from a folder."""
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (
            os.path.join(folder, name) for name in sorted(names) if _SETTINGS.fullmatch(name)
        )
        cargo = (os.path.join(folder, name) for name in _CARGO)
        yield from (path for path in cargo if os.path.lexists(path))


def signature_of(path: str) -> str:
    """What a file or folder of settings is known by; empty if it can't be told."""
    try:
        link = os.readlink(path) if os.path.islink(path) else ""
        if os.path.isdir(path):
            return f"{link}|{_folder(path)}"
        return f"{link}|{hash_of(os.path.realpath(path)).hex()}"
    except OSError:
        return ""


def _folder(path: str) -> str:
    """By names, sizes and the kernel's times of change: packages are not read."""
    whole = blake2b(digest_size=32)
    count = 0
    for top, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            count += 1
            if count > _MOST_FILES:
                raise OSError("too many files to compare")
            file = os.path.join(top, name)
            link = os.readlink(file) if os.path.islink(file) else ""
            status = os.stat(file) if os.path.exists(file) else os.lstat(file)
            seen = (file, link, status.st_size, status.st_ctime_ns, status.st_ino)
            whole.update(repr(seen).encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
