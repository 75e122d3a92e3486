"""All topics: which files each owns, and what produces them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tests.golden.of_commands import not_covered, of_commands
from tests.golden.of_help import of_help
from tests.golden.of_hooks import of_hooks
from tests.golden.of_outlets import of_outlets
from tests.golden.of_schemas import of_postgres, of_sqlite
from tests.golden.of_server import of_server
from tests.golden.of_words import of_words
from tests.golden.scratch import Scratch

__all__ = ["POSTGRES", "TOPICS", "Topic", "not_covered", "of_postgres"]


class Topic(NamedTuple):
    """Documents that are produced together, and the prefixes of their paths."""

    owned: tuple[str, ...]
    produce: Callable[[Scratch], dict[str, str]]


TOPICS: Mapping[str, Topic] = MappingProxyType(
    {
        "commands": Topic(("cli/",), of_commands),
        "help": Topic(("help/",), of_help),
        "hooks": Topic(("hooks/",), of_hooks),
        "outlets": Topic(("otlp/", "receipt/", "webhook/"), of_outlets),
        "server": Topic(("http/", "mcp/", "metrics.txt", "openapi.json"), of_server),
        "sqlite": Topic(("schema/sqlite.sql",), of_sqlite),
        "words": Topic(("errors.json", "metrics.json", "python.txt"), of_words),
    }
)
POSTGRES = ("schema/postgres.sql",)
"""What is produced from a server of PostgreSQL."""
