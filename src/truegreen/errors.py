"""Every error that truegreen raises on purpose, in three families by what the caller should do.

    TruegreenError
    ├── Refused                change the request
    │   ├── InvalidInput       a value, a key or a file is wrong
    │   ├── NotFound           no such task, run, agent, item or token
    │   ├── Ambiguous          an id prefix fits several
    │   ├── IllegalMove        the edge table has no such edge
    │   ├── NotRunning         stop and resume need a live run
    │   ├── Stale              status, fence, lease, attempt, digest or contract moved on
    │   ├── Terminated         sealed for ever
    │   ├── Frozen             the kill switch is on: nothing starts
    │   ├── Held               a breaker is open or a limit spent: it starts later by itself
    │   │   └── FolderInUse    another task works in the folder
    │   ├── CircularWait       two tasks would wait for each other for ever
    │   ├── AlreadyDeclared    the first declaration won
    │   ├── KeyReused          an idempotency key was used for another request
    │   ├── BudgetSpent        no attempt, round or deferral is left
    │   ├── Forbidden          this role or identity may not
    │   ├── Unauthenticated    no token, or a dead one
    │   └── IsolationUnavailable   this machine can't keep an agent in as was asked
    ├── Unavailable            wait, or mend the surroundings
    │   ├── StoreUnreachable   cannot be opened or connected to
    │   ├── StoreBusy          another writer holds it
    │   ├── StoreReadOnly      cannot be written
    │   ├── DiskFull           no room; nothing was written
    │   ├── RemoteAway         a git remote did not answer, or not with what it has
    │   ├── OutcomeUnknown     the connection was cut in the commit and can't be looked up yet
    │   ├── StoreUnsafe        a setting or version that can lose acknowledged work
    │   ├── SchemaMissing      the store has no schema yet
    │   ├── SchemaNewer        written by a newer truegreen
    │   └── SchemaWrecked      a trigger, index, table or migration is not what it was
    └── Broken                 report it
        └── StoreCorrupt       the database says that its file is damaged

A failed gate, an inconclusive judge and a lost race are values, not errors.
"""

from __future__ import annotations

import os
import sys
from typing import ClassVar


class TruegreenError(Exception):
    """An error with a stable code, an exit status, an HTTP status and the way on."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 70
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, allowed: tuple[str, ...] = (), **details: object) -> None:
        """`allowed` names what would be accepted instead; `details` are kept as evidence."""
        super().__init__(message)
        self.message = message
        self.allowed = allowed
        self.details = details

    def document(self) -> dict[str, object]:
        """The body that the CLI and HTTP give."""
        body: dict[str, object] = {
            "code": self.code,
            "message": self.message,
            "allowed": list(self.allowed),
        }
        if self.details:
            body["details"] = self.details
        return {"error": body}


class Refused(TruegreenError):
    """The request can't be done as asked; nothing was changed."""

    code = "refused"
    exit_status = 2
    http_status = 409


class InvalidInput(Refused):
    """A value, a key or a file is wrong."""

    code = "invalid_input"
    http_status = 422


class NotFound(Refused):
    """Nothing goes by that id."""

    code = "not_found"
    http_status = 404


class Ambiguous(Refused):
    """An id prefix fits several."""

    code = "ambiguous_id"


class IllegalMove(Refused):
    """The edge table has no such edge."""

    code = "illegal_move"


class NotRunning(Refused):
    """There is no live run to stop, pause or resume."""

    code = "not_running"


class Stale(Refused):
    """The write names a status, fence, lease, attempt or digest that is no longer true."""

    code = "stale"


class Terminated(Refused):
    """The task or agent is sealed for ever."""

    code = "terminated"
    http_status = 410


class Frozen(Refused):
    """Somebody has frozen the store: no run starts until it is thawed."""

    code = "frozen"
    http_status = 423


class Held(Refused):
    """A breaker is open, or what may be spent is spent; nothing was charged."""

    code = "held"
    http_status = 423


class FolderInUse(Held):
    """Another task works in the folder, or has since its files were looked at."""

    code = "folder_in_use"


class CircularWait(Refused):
    """What a task is to wait for waits, by however many others, for that task."""

    code = "circular_wait"


class AlreadyDeclared(Refused):
    """The run has declared already; the first declaration won."""

    code = "already_declared"


class KeyReused(Refused):
    """The idempotency key belongs to another request."""

    code = "key_reused"


class BudgetSpent(Refused):
    """The failure budget has nothing left for this."""

    code = "budget_spent"


class Forbidden(Refused):
    """This role or identity may not do it."""

    code = "forbidden"
    http_status = 403


class Unauthenticated(Refused):
    """There is no token, or it is unknown, revoked or expired."""

    code = "unauthenticated"
    http_status = 401


class IsolationUnavailable(Refused):
    """The isolation that was asked for can't be had here; a weaker one is not taken in silence."""

    code = "isolation_unavailable"


class Unavailable(TruegreenError):
    """The surroundings don't allow it now; the request itself may be right."""

    code = "unavailable"
    exit_status = 5
    http_status = 503
    retryable = True


class StoreUnreachable(Unavailable):
    """The store can't be opened or connected to."""

    code = "store_unreachable"


class RemoteAway(Unavailable):
    """A git remote could not be asked; it may be back in a while."""

    code = "remote_away"


class StoreBusy(Unavailable):
    """Another writer held the store for longer than we wait."""

    code = "store_busy"


class StoreReadOnly(Unavailable):
    """The store can be read but not written."""

    code = "store_read_only"
    retryable = False


class DiskFull(Unavailable):
    """There is no room left; nothing was written."""

    code = "disk_full"
    http_status = 507


def is_full(error: BaseException) -> bool:
    """Whether something failed because a disk or a quota is full."""
    import errno  # noqa: PLC0415 - needed by few; what a start loads is counted

    number = error.errno if isinstance(error, OSError) else None
    return isinstance(error, DiskFull) or number in (errno.ENOSPC, errno.EDQUOT)


def unwritable(message: str, error: OSError) -> Unavailable:
    """The error for a file that could not be written: `disk_full`, or unavailable."""
    return DiskFull(message) if is_full(error) else Unavailable(message)


class OutcomeUnknown(Unavailable):
    """The connection was cut while committing; whether the write landed must be looked up."""

    code = "outcome_unknown"


class StoreUnsafe(Unavailable):
    """A setting or version that can lose acknowledged work."""

    code = "store_unsafe"
    retryable = False


class SchemaMissing(Unavailable):
    """The store has no schema yet."""

    code = "schema_missing"
    retryable = False


class SchemaNewer(Unavailable):
    """The store was written by a newer truegreen."""

    code = "schema_newer"
    retryable = False


class SchemaWrecked(Unavailable):
    """A trigger, index, table or migration is not what it was."""

    code = "schema_wrecked"
    retryable = False


class Broken(TruegreenError):
    """A defect, here or in the store: please report it."""

    code = "broken"


class StoreCorrupt(Broken):
    """The database says that its file is damaged."""

    code = "store_corrupt"


def raised(body: dict[str, object]) -> TruegreenError:
    """The error that a document from another process speaks of."""
    known = _by_code(TruegreenError)
    kind = known.get(str(body.get("code")), TruegreenError)
    allowed = body.get("allowed")
    words = tuple(map(str, allowed)) if isinstance(allowed, list) else ()
    return kind(str(body.get("message", "")), allowed=words)


def _by_code(family: type[TruegreenError]) -> dict[str, type[TruegreenError]]:
    found = {family.code: family}
    for kind in family.__subclasses__():
        found |= _by_code(kind)
    return found


def install_command(extra: str) -> str:
    """The command that adds the libraries of an extra to this installation.

    pip puts nothing into an environment of pipx, which takes packages and no extras.
    """
    if not os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        return f"pip install 'truegreen[{extra}]'"
    from importlib.metadata import requires  # noqa: PLC0415 - slow to load, and hardly ever needed

    marked = (line.partition(";") for line in requires("truegreen") or ())
    wanted = [f"'{name.strip()}'" for name, _, marker in marked if extra in marker]
    return f"pipx inject truegreen {' '.join(wanted)}"
