"""One handler for all that goes wrong: a sentence, a next step, an exit status; no traceback.

Refused, unavailable and broken come typed from the house. Anything else is our own defect: a report
is written where the state lives, and its path is named.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import click

from truegreen.errors import DiskFull, TruegreenError, is_full
from truegreen.faces.clean import clean, shortened
from truegreen.faces.cli.frame import Frame
from truegreen.faces.cli.output import OutputLost, write_json

USAGE, INTERNAL, INTERRUPTED = 2, 70, 130
_LONGEST = 800
_OURS = "truegreen "
_LISTED = {
    "agent": "truegreen agents",
    "inbox": "truegreen inbox",
    "token": "truegreen token list",
    "routine": "truegreen routine list",
    "breaker": "truegreen breakers",
    "post": "truegreen outlets",
    "server": "truegreen up",
}
TASK_OR_AGENT = "any"
"""The kind of what may be a task or an agent, as `terminate` takes it."""
_AT_HOME = {
    "tsk_": ("task", "truegreen show {}"),
    "run_": ("run", "truegreen log {}"),
    "agt_": ("agent", "truegreen agents show {}"),
    "inb_": ("inbox", "truegreen inbox"),
}
"""What the beginning of an id says that it is of, and the command that shows such a one."""
ELSEWHERE = (
    "name a folder that you can write: export XDG_STATE_HOME=/PATH"
    " (for the store alone: --store sqlite:////PATH, or $TRUEGREEN_STORE)"
)
ROOM = "make room on that disk, or name a folder on another: export XDG_STATE_HOME=/PATH"
_HIDDEN = ("store_unreachable", "store_read_only", "schema_missing")
"""What the record looks like from within a jail."""
_NEXT = {
    "store_unreachable": "truegreen doctor",
    "store_read_only": "truegreen doctor",
    "disk_full": ROOM,
    "store_busy": "try again; truegreen doctor shows the store",
    "store_corrupt": "truegreen doctor; then restore a backup",
    "outcome_unknown": "truegreen events",
}


def guarded(frame: Frame, act: Callable[[], int | None]) -> int:  # noqa: PLR0911 - one per exit
    """Run a command to its exit status."""
    try:
        return act() or 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.UsageError as error:
        return _misused(frame, error)
    except click.ClickException as error:
        return _said(frame, "invalid_input", error.format_message(), (), USAGE)
    except TruegreenError as error:
        return _known(frame, error)
    except (KeyboardInterrupt, click.Abort) as error:
        return _interrupted(frame, str(error))
    except (BrokenPipeError, OutputLost):
        raise
    except Exception as error:  # noqa: BLE001 - the one place where nothing may fall through
        return _known(frame, _no_room(error)) if is_full(error) else _unknown(frame, error)


def _no_room(error: Exception) -> DiskFull:
    """Which file found no room, where the error names it."""
    file = getattr(error, "filename", None)
    where = f" for {os.fsdecode(file)}" if file else ""
    return DiskFull(f"no room is left on the disk{where}")


def _misused(frame: Frame, error: click.UsageError) -> int:
    allowed = tuple(getattr(error, "possibilities", None) or ())
    if error.ctx and isinstance(error.ctx.command, click.Group):
        allowed = allowed or tuple(error.ctx.command.list_commands(error.ctx))
    if isinstance(error, click.BadParameter) and error.param:
        allowed = tuple(str(choice) for choice in getattr(error.param.type, "choices", ()))
    path = error.ctx.command_path if error.ctx else "truegreen"
    step = getattr(error, "step", "") or f"{path} --help"
    return _said(frame, "usage", error.format_message(), allowed, USAGE, step)


def _interrupted(frame: Frame, far: str) -> int:
    """A program that waits for a document gets one; people know what they did."""
    if far or frame.owes:
        return _said(frame, "interrupted", far or "interrupted", (), INTERRUPTED)
    return INTERRUPTED


def _known(frame: Frame, error: TruegreenError) -> int:
    if os.environ.get("TRUEGREEN_RUN") and error.code in _HIDDEN:
        error = _inside()
    step = _elsewhere(frame, error) or _NEXT.get(error.code, "")
    step = step or _led(error) or _look(frame, error)
    report = _report(frame, error) if error.exit_status == INTERNAL else ""
    details = {**error.details, "report": report} if report else error.details
    status = error.exit_status
    return _said(frame, error.code, error.message, error.allowed, status, step, details)


def _inside() -> TruegreenError:
    """Nothing is wrong with the record: its agents are not shown it."""
    from truegreen.app import FOR_AGENTS, RUN_VARIABLE  # noqa: PLC0415 - only a refusal needs them
    from truegreen.errors import Forbidden  # noqa: PLC0415 - as above

    run = os.environ[RUN_VARIABLE]
    message = (
        f"this is inside {run}: the record is hidden from agents. Say what became of the work:"
        " truegreen done, fail, blocked or noop; ask before you act: truegreen checkpoint"
    )
    return Forbidden(message, allowed=FOR_AGENTS, run=run)


def _elsewhere(frame: Frame, error: TruegreenError) -> str:
    """No doctor mends the permissions of a file: whoever has no right to it takes another."""
    own = frame.settings and not frame.settings.store.startswith("postgres")
    return ELSEWHERE if own and error.code == "store_read_only" else ""


def _led(error: TruegreenError) -> str:
    """The command that the refusal itself names as the way on."""
    return next((word for word in error.allowed if word.startswith(_OURS)), "")


def _look(frame: Frame, error: TruegreenError) -> str:
    """Where a task stands that refused something: what leads on from there is said with it."""
    if error.code == "not_found":
        kind = str(error.details.get("kind"))
        return _meant(frame, kind) or _LISTED.get(kind, "truegreen list")
    named = [word for word in frame.words if word.startswith("tsk_")]
    if error.code == "illegal_move" and named:
        from truegreen.faces.documents import steps_from  # noqa: PLC0415 - only a refusal needs it

        steps = steps_from(str(error.details.get("status")), named[0])
        return " or ".join(steps[:2]) or f"truegreen show {named[0]}"
    held = error.details.get("status") == "queued" and "attempt" in frame.words
    look = "why" if held else "show"
    return f"truegreen {look} {named[0]}" if named and "status" in error.details else ""


def _meant(frame: Frame, kind: str) -> str:
    """Where an id belongs that was given as that of something else."""
    known = ("task", "agent") if kind == TASK_OR_AGENT else (kind,)
    for word in frame.words:
        for beginning, (home, command) in _AT_HOME.items():
            if not word.startswith(beginning):
                continue
            if home not in known:
                return command.format(word)
            if kind == TASK_OR_AGENT:
                return _LISTED.get(home, "")
    return ""


def _unknown(frame: Frame, error: Exception) -> int:
    message = f"internal error: {type(error).__name__}: {error}"
    report = _report(frame, error)
    step = "send the report to whoever keeps truegreen" if report else ""
    return _said(frame, "internal", message, (), INTERNAL, step, {"report": report})


def _said(
    frame: Frame,
    code: str,
    message: str,
    allowed: tuple[str, ...],
    status: int,
    step: str = "",
    details: Mapping[str, object] = MappingProxyType({}),
) -> int:
    """Say an error once, where it was asked for."""
    told = shortened(clean(_without_secrets(frame, message)), _LONGEST)
    if frame.json:
        body: dict[str, Any] = {"code": code, "message": told, "allowed": list(allowed)}
        if details:
            body["details"] = dict(details)
        write_json({"error": body})
        return status
    sys.stdout.flush()
    lines = [f"truegreen: {told}"]
    if step:
        lines.append(f"next: {clean(step)}")
    if details.get("report"):
        lines.append(f"report: {details['report']}")
    sys.stderr.write("\n".join(lines) + "\n")
    return status


# --- the report


def _report(frame: Frame, error: BaseException) -> str:
    """Write down what happened, for whoever mends it; says where, or nothing."""
    import tempfile  # noqa: PLC0415 - loaded only when something broke
    import time  # noqa: PLC0415 - the same
    import traceback  # noqa: PLC0415 - the same

    from truegreen import __version__  # noqa: PLC0415 - the same

    name = f"report-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
    lines = [
        f"truegreen {__version__}, Python {sys.version}, {sys.platform}",
        f"command: {' '.join(map(_redacted, frame.words))}",
        "",
        *traceback.format_exception(error),
    ]
    text = _without_secrets(frame, "\n".join(lines))
    state = _state_dir(frame)
    for folder in (state and os.path.join(state, "reports"), tempfile.gettempdir()):
        if folder and _write(folder, name, text):
            return os.path.join(folder, name)
    return ""


def _state_dir(frame: Frame) -> str:
    try:
        return (frame.settings or frame.load()).state_dir
    except Exception:  # noqa: BLE001 - whatever is broken may be broken here too
        return ""


def _write(folder: str, name: str, text: str) -> bool:
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return False
    return True


def _redacted(word: str) -> str:
    from truegreen.config import redacted_url  # noqa: PLC0415 - the same

    return redacted_url(word)


def _without_secrets(frame: Frame, text: str) -> str:
    stores = [frame.store, frame.settings.store if frame.settings else None]
    for url in filter(None, stores):
        text = text.replace(url, _redacted(url)) if url in text else text
    return text
