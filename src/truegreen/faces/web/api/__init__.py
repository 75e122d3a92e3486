"""The HTTP API under `/api/v1`: the same documents as the command line, for programs.

Importing the modules writes their routes down.
"""

from truegreen.faces.web.api import (
    about,
    agents,
    budgets,
    desk,
    fleet,
    health,
    logs,
    metering,
    routines,
    runs,
    streams,
    tasks,
    tokens,
    whole,
)

__all__ = [
    "about",
    "agents",
    "budgets",
    "desk",
    "fleet",
    "health",
    "logs",
    "metering",
    "routines",
    "runs",
    "streams",
    "tasks",
    "tokens",
    "whole",
]
