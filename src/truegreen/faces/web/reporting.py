"""A defect of ours, written down where the state lives: for who keeps truegreen, not for askers.

No header, no query and no body is in it: they may hold secrets.
"""

from __future__ import annotations

import os
import sys
import time
import traceback

from starlette.requests import Request

from truegreen import __version__
from truegreen.config import Config, redacted_url


def report(config: Config, request: Request, error: BaseException) -> str:
    """Write down what happened; says where, or nothing if there is no room for it."""
    name = f"report-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}-{os.urandom(3).hex()}.txt"
    lines = [
        f"truegreen {__version__}, Python {sys.version}, {sys.platform}",
        f"request: {request.method} {request.url.path!r}",
        "",
        *traceback.format_exception(error),
    ]
    text = "\n".join(lines).replace(config.store, redacted_url(config.store))
    folder = os.path.join(config.state_dir, "reports")
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return ""
    return path
