"""Stores that earlier programs left, each written by the program of its day, rows and triggers.

`python -m tests.record.old_stores COMMIT …` adds those of a commit, on both databases, with a task
in every status; a release adds its own before its schema changes. `restored` lays one down again.
"""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

import psycopg

from tests.postgres_server import PostgresServer, find_installation

ROOT = Path(__file__).parents[2]
STORES = Path(__file__).with_name("stores")
DIALECTS = ("sqlite", "postgres")
SEED = """\
import sys
from tests.record.lives import TaskStatus, brought
from tests.record.raw_attacks import populated
from truegreen.record import migrate
from truegreen.record.ledger import open_ledger
ledger = open_ledger(sys.argv[1])
for status in TaskStatus:
    brought(ledger, status)
populated(ledger)
ledger.close()
print(migrate.migrations("sqlite")[-1].version)
"""


def kept(dialect: str) -> dict[int, Path]:
    """The stores that are kept, by the version of their schema."""
    return {int(path.name[:4]): path for path in sorted(STORES.glob(f"*.{dialect}.xz"))}


def restored(path: Path, url: str) -> None:
    """Lay a store down at an address where none is."""
    text = lzma.decompress(path.read_bytes())
    if url.startswith("sqlite://"):
        Path(url.removeprefix("sqlite://")).write_bytes(text)
        return
    # Lines with a backslash are for psql.
    lines = [line for line in text.decode().splitlines() if not line.startswith("\\")]
    with psycopg.connect(url, autocommit=True) as client:
        client.execute("\n".join(lines).encode())


def add(commit: str, server: PostgresServer) -> None:
    """Let the program of a commit write one store on each database, and keep them."""
    packed = subprocess.run(
        ["git", "archive", commit, "src", "tests"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        file = Path(folder, "seeded.db")
        version = _seeded(folder, f"sqlite://{file}")
        _keep(version, "sqlite", file.read_bytes())
        url = server.url(server.create_database())
        assert _seeded(folder, url) == version
        _keep(version, "postgres", _dumped(url))


def _seeded(folder: str, url: str) -> int:
    environ = {**os.environ, "PYTHONPATH": f"{folder}/src:{folder}"}
    words = [sys.executable, "-c", SEED, url]
    done = subprocess.run(words, cwd=folder, env=environ, check=True, stdout=subprocess.PIPE)
    return int(done.stdout)


def _dumped(url: str) -> bytes:
    place = find_installation()
    assert place is not None
    words = [str(place / "bin" / "pg_dump"), "--inserts", "--no-owner", "--no-privileges", url]
    return subprocess.run(words, check=True, capture_output=True).stdout


def _keep(version: int, dialect: str, content: bytes) -> None:
    STORES.mkdir(exist_ok=True)
    (STORES / f"{version:04d}.{dialect}.xz").write_bytes(lzma.compress(content, preset=9))


if __name__ == "__main__":
    _place = find_installation()
    assert _place is not None
    with PostgresServer.guarded(_place) as running:
        running.start()
        for each in sys.argv[1:]:
            add(each, running)
