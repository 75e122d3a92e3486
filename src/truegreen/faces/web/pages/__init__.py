"""The dashboard: server-rendered pages, the same documents as everywhere, live fragments.

Importing the modules writes their routes down.
"""

from __future__ import annotations

from truegreen.faces.web.pages import (
    agent,
    agents,
    assets,
    audit,
    help,  # noqa: A004 - the page of that name
    inbox,
    login,
    overview,
    routines,
    settings,
    streams,
    task,
    tasks,
)
from truegreen.faces.web.pages.failing import error_page

__all__ = [
    "agent",
    "agents",
    "assets",
    "audit",
    "error_page",
    "help",
    "inbox",
    "login",
    "overview",
    "routines",
    "settings",
    "streams",
    "task",
    "tasks",
]
