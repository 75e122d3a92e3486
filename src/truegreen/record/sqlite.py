"""The SQLite driver: apsw with its own fixed SQLite, WAL, synchronous FULL, one writer at a time.

The only module that imports apsw. It knows statements by name and nothing of what they mean.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import apsw

from truegreen import errors
from truegreen.errors import (
    Stale,
    StoreBusy,
    StoreUnreachable,
    StoreUnsafe,
    TruegreenError,
    Unavailable,
)
from truegreen.record import hints
from truegreen.record.store import Hit, Pool, Row, load_queries, refusal, refused_by
from truegreen.record.together import Together

OLDEST_SAFE = (3, 51, 3)
"""Below it, two writing processes can corrupt the file (the WAL-reset race)."""

BUSY_SECONDS = 20.0
OLD_SECONDS = 0.01
"""Who has waited so long for the file looks ten times as often."""
_SPARE_BYTES = 1 << 20
_CREATING = threading.Lock()
_EFFECTIVE = os.access in os.supports_effective_ids
NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "fuse.sshfs",
        "lustre",
    }
)
_MATCHES = (
    "tasks.key IN (SELECT rowid FROM task_words WHERE task_words MATCH :search"
    " AND rowid > :edge AND rowid < :top)"
)
_FRAGMENTS = {
    "given": "json_each(:rows) AS given",
    "given_hash": "unhex(given.value ->> 'hash')",
    "given_head": "unhex(given.value ->> 'to_head')",
    "shard": "0",
    "lock": "",
    "lock_tasks": "",
    "skip_locked": "",
    "starts_held": "SELECT 1",
    "keys": "SELECT value FROM json_each(:keys)",
    "needed": "json_each(tasks.contract, '$.depends_on') AS needed",
    "wanted": "json_each(demands.labels) AS wanted",
    "offered": "SELECT value FROM json_each(:labels)",
    "carried": "SELECT value FROM json_each(workers.labels)",
    "next_task_key": "SELECT COALESCE(MAX(key), 0) + 1 FROM tasks",
    "matches": _MATCHES,
    "found_first": "tasks.key DESC",
    "each_matches": f"+{_MATCHES}",  # not the way to the tasks
    "edge_of_words": (
        "SELECT rowid FROM task_words WHERE task_words MATCH :search AND rowid < :top"
        " ORDER BY rowid DESC LIMIT 1 OFFSET :newest"
    ),
    "feed_after": "events.key > :after_key AND :after_xact >= 0",
    "feed_order": "events.key",
    "feed_in_doubt": "SELECT 1 WHERE 0",
}
_NO_ROOM = "no room is left for the store; nothing was written"
_TRANSLATED: tuple[tuple[type[apsw.Error], type[TruegreenError], str], ...] = (
    (apsw.BusyError, StoreBusy, "another writer holds the store; try again"),
    (apsw.LockedError, StoreBusy, "another writer holds the store; try again"),
    (apsw.ReadOnlyError, errors.StoreReadOnly, "the store can't be written; check its permissions"),
    (apsw.FullError, errors.DiskFull, _NO_ROOM),
    (apsw.CantOpenError, StoreUnreachable, "the store can't be opened; check path and permissions"),
    (apsw.PermissionsError, StoreUnreachable, "the store can't be opened; check its permissions"),
    (apsw.CorruptError, errors.StoreCorrupt, "the store is damaged; restore a backup"),
    (apsw.NotADBError, errors.StoreCorrupt, "the file is not a truegreen store"),
    (apsw.IOError, errors.Unavailable, "reading or writing the store failed; nothing was written"),
)


def _no_room_for_locks(error: apsw.Error) -> bool:
    """Whether the file for the locks of readers and writers could not be made as long as needed."""
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE


def translated(error: apsw.Error) -> TruegreenError:
    """Our error for SQLite's."""
    text = str(error)
    if _no_room_for_locks(error):
        return errors.DiskFull(f"{_NO_ROOM} ({text})")
    ours = refusal(text)
    if ours:
        return ours
    if isinstance(error, apsw.ConstraintError):
        kind, message = refused_by(text)
        return kind(f"{message} ({text})")
    for theirs, kind, message in _TRANSLATED:
        if isinstance(error, theirs):
            return kind(f"{message} ({text})")
    return errors.Broken(f"SQLite: {text}")


def _breaks(error: BaseException) -> bool:
    """A refused statement leaves the transaction as it was; after anything else nobody knows."""
    return isinstance(error, apsw.Error) and not isinstance(error, apsw.ConstraintError)


def _no_text(error: UnicodeEncodeError) -> errors.InvalidInput:
    return errors.InvalidInput(f"a text is not valid UTF-8 ({error.reason})")


def boot_id() -> str:
    """Which boot of this machine a monotonic time belongs to."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def wall_clock() -> int:
    """Microseconds UTC, by this machine."""
    return time.time_ns() // 1000


def file_system(path: str) -> str:
    """The type of the file system that holds a path, where the machine tells."""
    best, kind = "", ""
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            mounts = [line.split(" ")[1:3] for line in file]
    except OSError:
        return ""
    real = os.path.realpath(path)
    for point, name in mounts:
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, name
    return kind


def _fill(handle: int, size: int) -> None:
    """Write so many bytes, or fail: of the last bytes of a disk only a part may be taken."""
    if os.write(handle, bytes(size)) < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class SqliteTx:
    """A transaction on one connection."""

    def __init__(self, connection: apsw.Connection, store: SqliteStore) -> None:
        self._execute = connection.execute
        self._queries = store.queries
        self.events: list[str] = []
        self.hints = False
        self.now = store.clock()
        self.lease_now = store.lease_clock()
        self.boot = store.boot

    def one(self, query: str, /, **values: object) -> Row | None:
        """The first row of a named query."""
        # To the end, not fetchone(): a statement dropped half-way is prepared anew next time.
        rows = self._execute(self._queries[query], values).fetchall()
        return rows[0] if rows else None

    def all(self, query: str, /, **values: object) -> list[Row]:
        """Every row of a named query."""
        return self._execute(self._queries[query], values).fetchall()

    def run(self, query: str, /, **values: object) -> None:
        """A named write."""
        self._execute(self._queries[query], values).fetchall()

    def hit(self, query: str, /, **values: object) -> Hit:
        """A guarded write that must meet exactly one row."""
        rows = self._execute(self._queries[query], values).fetchall()
        if len(rows) != 1:
            message = f"{query} met {len(rows)} rows: what it names is no longer true"
            raise Stale(message, query=query)
        return Hit(rows[0])


class SqliteStore:
    """One SQLite file."""

    dialect = "sqlite"
    # Without the tables that the search index keeps for itself.
    catalog = (
        "SELECT type || ' ' || name, sql FROM sqlite_master"
        " WHERE sql IS NOT NULL AND name NOT LIKE 'task\\_words\\_%' ESCAPE '\\'"
    )

    def __init__(
        self, url: str, vfs: str | None = None, clock: Callable[[], int] | None = None
    ) -> None:
        """`vfs` names another registered file layer; tests use it to lose power.

        `clock` tells another time than the machine's, in microseconds UTC.
        """
        self.url = url
        self.path = url.removeprefix("sqlite://")
        self.vfs = vfs
        self.busy_seconds = BUSY_SECONDS
        self.queries = load_queries(_FRAGMENTS, r":\1")
        self.boot = boot_id()
        self.clock = clock or wall_clock
        self._pool = Pool(self._connect, lambda connection: connection.close())
        self._together: Together[apsw.Connection] = Together(
            self._pool.take, self._take_back, _breaks
        )

    @staticmethod
    def lease_clock() -> int:
        """Microseconds that neither a wall clock nor a sleeping machine moves."""
        return time.monotonic_ns() // 1000

    @contextmanager
    def transaction(self) -> Iterator[SqliteTx]:
        """Everything or nothing, on the disk when it returns."""
        events: list[str] | None = None
        try:
            with self._all_or_nothing() as connection:
                tx = SqliteTx(connection, self)
                yield tx
                events = tx.events
        except Unavailable as failed:
            if not (events and self._came_through(events[-1], failed)):
                raise

    def _came_through(self, event: str, failed: Unavailable) -> bool:
        """Whether a commit that failed is there all the same, and then also on the disk.

        When only the flush fails, the log holds the whole transaction, and whoever opens the file
        next finds it. Folding it into the file writes and flushes it anew; a second flush of the
        log would prove nothing, because the kernel forgets what it could not write.
        """
        try:
            with self._lent() as connection:
                landed = connection.execute(self.queries["event_landed"], {"id": event}).fetchall()
                if not landed:
                    return False
                ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except Unavailable:
            busy = 1
        if busy:
            message = f"the disk failed in the commit ({failed}); look it up: event {event}"
            raise Unavailable(message, event=event) from failed
        return True

    @contextmanager
    def snapshot(self) -> Iterator[SqliteTx]:
        """A read transaction: every query in it sees the same moment."""
        with self._lent() as connection:
            connection.execute("BEGIN")
            try:
                yield SqliteTx(connection, self)
            finally:
                connection.execute("ROLLBACK")

    def script(self, statements: list[str]) -> None:
        """Run statements in one transaction."""
        with self._all_or_nothing() as connection:
            for statement in statements:
                connection.execute(statement)

    def patient(self, may_wait: Callable[[], bool]) -> AbstractContextManager[None]:
        """A file is there or is not: nothing is waited for."""
        del may_wait
        return nullcontext()

    @contextmanager
    def spare_room(self) -> Iterator[None]:
        """Set room aside in a file without a name: it is gone with this process in any case."""
        handle = -1
        try:
            name = f"{self.path}.spare-{os.urandom(8).hex()}"
            handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            os.unlink(name)
            _fill(handle, _SPARE_BYTES)
        except OSError as error:
            if handle >= 0:
                os.close(handle)
            message = f"the disk of the store has no room for a run: {error.strerror}"
            raise errors.unwritable(message, error) from error
        try:
            yield
        finally:
            os.close(handle)

    def hint(self) -> None:
        """A datagram to every process that listens beside the file."""
        hints.send(hints.folder_of(self.path))

    def listen(self, heard: Callable[[], None], over: threading.Event) -> None:
        """Hear these datagrams."""
        try:
            hints.listen(hints.folder_of(self.path), heard, over)
        except OSError as error:
            raise Unavailable(f"no hints can be heard: {error.strerror}") from error

    @staticmethod
    def end_stuck(_seconds: float) -> int:
        """A file has no sessions: whoever is frozen while writing keeps all others waiting."""
        return 0

    def objects(self) -> dict[str, str]:
        """What the catalog finds now."""
        with self._lent() as connection:
            rows = connection.execute(self.catalog).fetchall()
        return {str(name): str(text) for name, text in rows}

    def settings(self) -> dict[str, str]:
        """Version, journal and synchronous mode as the connection really has them."""
        with self._lent() as connection:
            names = ("journal_mode", "synchronous", "foreign_keys")
            found = {name: str(connection.pragma(name)) for name in names}
        return {
            "sqlite": apsw.sqlite_lib_version(),
            **found,
            "file_system": file_system(self.path),
            "path": self.path,
        }

    def integrity(self) -> list[str]:
        """PRAGMA integrity_check and foreign_key_check, without the word ok."""
        # On a connection of its own: a used one checks the search index against what it remembers
        # of it, and takes other processes' writes for corruption.
        try:
            connection = self._connect()
            try:
                rows = connection.execute("PRAGMA integrity_check").fetchall()
                orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
            finally:
                connection.close()
        except apsw.Error as error:
            raise translated(error) from error
        return [str(row[0]) for row in rows if row[0] != "ok"] + [
            f"{table} row {key} points to a missing {parent}" for table, key, parent, _ in orphans
        ]

    def backup(self, path: str) -> None:
        """An online copy, then flushed to the disk."""
        with self._lent() as connection:
            target = apsw.Connection(path)
            with target, target.backup("main", connection, "main") as copy:
                while not copy.done:
                    copy.step(2000)
            target.pragma("journal_mode", "delete")
            target.close()
        with open(path, "rb") as file:
            os.fsync(file.fileno())

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[apsw.Connection]:
        """BEGIN IMMEDIATE … COMMIT, or ROLLBACK; one at a time in this process."""
        try:
            with self._together.write() as connection:
                yield connection
        except apsw.Error as error:
            raise translated(error) from error
        except UnicodeEncodeError as error:
            raise _no_text(error) from error

    def _take_back(self, connection: apsw.Connection, sound: bool) -> None:  # noqa: FBT001 - a fact
        if sound:
            self._pool.give(connection)
        else:
            with suppress(apsw.Error):  # what broke the connection may break its closing
                self._pool.drop(connection)

    @contextmanager
    def _lent(self) -> Iterator[apsw.Connection]:
        try:
            connection, sound = self._taken()
        except apsw.Error as error:
            raise translated(error) from error
        try:
            yield connection
        except apsw.Error as error:
            sound = False
            raise translated(error) from error
        except UnicodeEncodeError as error:
            raise _no_text(error) from error
        finally:
            self._take_back(connection, sound)

    def _taken(self) -> tuple[apsw.Connection, bool]:
        """A connection, and whether others may use it later; on a full disk it can only read."""
        try:
            return self._pool.take(), True
        except apsw.IOError as error:
            if not _no_room_for_locks(error):
                raise
        return self._connect_alone(), False

    def _patience(self) -> Callable[[int], bool]:
        """Wait for another process in short random steps, for every lock that SQLite asks for.

        With its own growing waits one of eight writers starved for seconds; who has waited for
        long looks more often, and so comes before the others. Reads need it as well: whoever
        closes the file last holds it alone for a moment.
        """
        deadline = 0.0

        def wait(tries: int) -> bool:
            nonlocal deadline
            if tries == 0:
                deadline = time.monotonic() + self.busy_seconds
            left = deadline - time.monotonic()
            if left < 0:
                return False
            import random  # noqa: PLC0415 - only who has to wait needs it

            step = 1.0 if left > self.busy_seconds - OLD_SECONDS else 0.1
            time.sleep(step * random.uniform(0.0002, 0.0008))  # noqa: S311 - jitter, not a secret
            return True

        return wait

    def _connect(self) -> apsw.Connection:
        with _CREATING:
            self._check_surroundings()
            connection = apsw.Connection(self.path, statementcachesize=200, vfs=self.vfs)
        try:
            connection.set_busy_handler(self._patience())
            # Otherwise SQLite plans a statement anew for every value that is bound to it.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            self._configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_alone(self) -> apsw.Connection:
        """A connection for reading that keeps its locks in memory: no file has to grow for it.

        It locks the file against all others as long as it is open, so it is used once and closed.
        """
        connection = apsw.Connection(self.path, vfs=self.vfs)
        try:
            connection.set_busy_handler(self._patience())
            connection.pragma("locking_mode", "exclusive")
            connection.pragma("query_only", 1)
        except BaseException:
            connection.close()
            raise
        return connection

    def _configure(self, connection: apsw.Connection) -> None:
        deadline = time.monotonic() + self.busy_seconds
        while connection.pragma("journal_mode") != "wal":
            try:
                connection.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
        for name, value in (("synchronous", 2), ("foreign_keys", 1), ("wal_autocheckpoint", 8000)):
            connection.pragma(name, value)
        if int(connection.pragma("synchronous")) < 2:  # noqa: PLR2004 - 2 is FULL
            raise StoreUnsafe("SQLite refuses synchronous=FULL: acknowledged work could be lost")

    def _why_unread(self) -> str:
        """A store that can't be written can't be looked at either, and this is why."""
        if not os.access(self.path, os.R_OK, effective_ids=_EFFECTIVE):
            return f"the store {self.path} can't be read by this user"
        return (
            f"the store {self.path} can't be written by this user, and whoever looks at it has to"
            " write its locks: look at a copy of it"
        )

    def _check_surroundings(self) -> None:
        version = apsw.sqlite_lib_version()
        if tuple(int(part) for part in version.split(".")) < OLDEST_SAFE:
            message = f"SQLite {version} can corrupt a shared store: pip install -U 'apsw>=3.51.3'"
            raise StoreUnsafe(message, version=version)
        folder = os.path.dirname(self.path)
        kind = file_system(folder)
        if kind in NETWORK_FILE_SYSTEMS:
            message = (
                f"{self.path} is on {kind}: SQLite is unsafe there; use a local disk or PostgreSQL"
            )
            raise StoreUnsafe(message, file_system=kind)
        if os.path.isdir(self.path):
            raise StoreUnreachable(f"{self.path} is a directory; name a file for the store")
        if os.path.exists(self.path):
            # Never opened here: closing any handle of a file drops the locks that SQLite holds on
            # it for the whole process, and the next process takes the log for an orphan.
            if not os.access(self.path, os.R_OK | os.W_OK, effective_ids=_EFFECTIVE):
                raise errors.StoreReadOnly(self._why_unread())
            return
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            # Born private: an agent under another user must not read or write the record.
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            return  # made by another program in this moment
        except OSError as error:
            read_only = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
            kind_of = errors.StoreReadOnly if read_only else StoreUnreachable
            raise kind_of(f"the store {self.path} can't be opened: {error.strerror}") from error
