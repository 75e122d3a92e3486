"""The pages of docs/reference, each made from the code and from nothing else."""

from __future__ import annotations

from collections.abc import Callable

from tests.docs import drawing, of_faces, of_store, of_words
from tests.docs.markdown import DOCS

FOLDER = DOCS / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "cli.md": of_faces.cli,
    "config.md": of_faces.config,
    "http.md": of_faces.http,
    "mcp.md": of_faces.mcp,
    "events.md": of_words.events,
    "errors.md": of_words.error_codes,
    "metrics.md": of_words.metrics,
    "statuses.md": of_words.statuses,
    "schema.md": of_store.schema,
    "states.svg": drawing.picture,
}


def made() -> dict[str, str]:
    """Every page as it should be now."""
    return {name: make() for name, make in PAGES.items()}
