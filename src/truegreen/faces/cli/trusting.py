"""`outlets trust`: a person has looked at settings that an agent could have written."""

from __future__ import annotations

import os

import click

from truegreen.app import RUN_VARIABLE, is_missing
from truegreen.config import Config
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.paper import Paper
from truegreen.faces.documents import Document
from truegreen.outlets.trust import NEXT, Standing, check, look, trust


@command(
    "trust",
    "truegreen outlets trust --dry-run    what changed in the settings since they were trusted",
    "truegreen outlets trust              use them as they are now",
)
@click.option("--dry-run", is_flag=True, help="Only show what changed.")
def trust_settings(frame: Frame, *, dry_run: bool) -> None:
    """Use truegreen.toml as it is now; look at the file first.

    For one that became another while a run could write it, and for a script that an outlet runs.
    """
    with frame.acting(makes=True) as (ledger, me):
        config = frame.settings or frame.load()
        found = look(ledger, config) if dry_run else trust(ledger, config, actor=me)
    document: Document = {
        "file": config.file,
        "trusted": not dry_run and config.file is not None,
        "run": _run(found),
        "changes": [change._asdict() for change in found.changes],
        "reach": {name: each.shown for name, each in found.reach.items()},
    }
    frame.give(document, lambda paper: _draw(paper, document, found))


def trusted_settings(frame: Frame) -> Config:
    """The settings in force; refused where an agent may have written them. No store, no agent."""
    config = frame.load()
    if not is_missing(config) and RUN_VARIABLE not in os.environ:
        with frame.ledger() as ledger:
            check(ledger, config)
    return config


def _run(found: Standing) -> str | None:
    """The run that could have changed something."""
    if found.suspect:
        return found.suspect.id
    return found.doubt.run if found.doubt else None


def _draw(paper: Paper, document: Document, found: Standing) -> None:
    for change in found.changes:
        paper.hanging(["  "], change.words)
    if not document["file"]:
        paper.say("there is no truegreen.toml here")
    elif not found.changes and not found.doubt:
        paper.say(f"{document['file']} reaches out as it was trusted to")
    elif document["trusted"]:
        paper.say(f"{document['file']} is trusted as it is now")
    else:
        paper.say(f"to use it so: {NEXT}")
