"""The PostgreSQL driver: psycopg 3, row locks, pipelined statements, no guess about a cut commit.

The only module that imports psycopg. It knows statements by name and nothing of what they mean.
"""

from __future__ import annotations

import itertools
import select
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any
from weakref import WeakKeyDictionary

try:
    import psycopg
    from psycopg import conninfo
    from psycopg.pq import TransactionStatus
except ImportError as error:  # pragma: no cover - exercised by an installation without the extra
    from truegreen.errors import StoreUnreachable as Missing
    from truegreen.errors import install_command

    way = install_command("postgres")
    raise Missing(f"PostgreSQL needs the extra postgres: {way}", allowed=(way,)) from error

from truegreen import errors
from truegreen.errors import (
    OutcomeUnknown,
    Stale,
    StoreUnreachable,
    StoreUnsafe,
    TruegreenError,
    Unavailable,
)
from truegreen.record.dialects import WORDS
from truegreen.record.store import Again, Hit, Pool, Row, load_queries, refusal, refused_by

OLDEST_SERVER = 140000
_MIGRATING = 0x7467726E  # the advisory lock that one migration at a time holds
_CHANNEL = "truegreen_queue"
_LISTEN_SECONDS = 5.0
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_WORDS = f"to_tsvector('simple', {WORDS['postgres']['words_of_task']})"
_SOUGHT = "plainto_tsquery('simple', :search)"
_SAMPLE, _COMMON = 400, 8
# Letters alone are looked for first: to take a text apart into words costs fifty times as much.
_SPELT = (
    "lower((title || ' ' || goal) COLLATE \"default\") LIKE ALL (ARRAY(SELECT '%%' || word || '%%'"
    " FROM regexp_split_to_table(lower(:search), '[\" ]+') AS word))"
)
_FRAGMENTS = {
    "given": "jsonb_array_elements(:rows::jsonb) AS given (value)",
    "given_hash": "decode(given.value ->> 'hash', 'hex')",
    "given_head": "decode(given.value ->> 'to_head', 'hex')",
    "shard": "mod(pg_backend_pid(), 64)",
    "lock": "FOR UPDATE",
    "lock_tasks": "FOR UPDATE OF tasks",
    "skip_locked": "FOR UPDATE SKIP LOCKED",
    "starts_held": "LOCK TABLE runs IN SHARE MODE",
    # As an array, which the planner takes for short.
    "keys": (
        "SELECT unnest(ARRAY(SELECT value::bigint"
        " FROM jsonb_array_elements_text(:keys::jsonb) AS k (value)))"
    ),
    "needed": (
        "jsonb_array_elements_text(tasks.contract::jsonb -> 'depends_on') AS needed (value)"
    ),
    "wanted": "jsonb_array_elements_text(demands.labels::jsonb) AS wanted (value)",
    "offered": "SELECT value FROM jsonb_array_elements_text(:labels::jsonb) AS o (value)",
    "carried": "SELECT value FROM jsonb_array_elements_text(workers.labels::jsonb) AS c (value)",
    "next_task_key": "SELECT nextval(pg_get_serial_sequence('tasks', 'key'))",
    # How common a word is only a sample tells. The planner would walk through a million tasks in
    # the hope to meet a rare one, or fetch a million that have a common one: it has no choice. Who
    # has a rare word is found by the index and sorted; whether one has a common word is looked at.
    "matches": f"{_WORDS} @@ {_SOUGHT}",
    "each_matches": f"({_WORDS} || ''::tsvector) @@ {_SOUGHT}",
    "found_first": "tasks.key + 0 DESC",
    "edge_of_words": (
        f"SELECT CASE WHEN COUNT(*) >= {_COMMON} THEN :top - 1 ELSE 0 END FROM (SELECT 1 FROM"
        " (SELECT title, goal FROM tasks WHERE key < :top ORDER BY key DESC"
        f" LIMIT {_SAMPLE}) AS newest WHERE :newest > 0 AND {_SPELT} AND {_WORDS} @@ {_SOUGHT}"
        f" LIMIT {_COMMON}) AS having_it"
    ),
    # A row is in the feed once no older transaction can still add one before it. Writers in other
    # databases of the same server are left out, as far as the lock table proves that they are.
    "feed_after": (
        "(events.xact, events.key) > (:after_xact::bigint, :after_key::bigint)"
        " AND events.xact < (SELECT COALESCE(MIN(writing::text::bigint),"
        " pg_snapshot_xmax(pg_current_snapshot())::text::bigint)"
        " FROM pg_snapshot_xip(pg_current_snapshot()) AS writing WHERE NOT EXISTS"
        " (SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE transactionid = writing::xid AND granted AND datname <> current_database()))"
    ),
    "feed_order": "events.xact, events.key",
    "feed_in_doubt": (
        "SELECT 1 FROM pg_snapshot_xip(pg_current_snapshot()) AS writing WHERE NOT EXISTS"
        " (SELECT 1 FROM pg_locks WHERE transactionid = writing::xid AND granted) LIMIT 1"
    ),
}
# A dead peer must be noticed in seconds, not in the kernel's two hours.
_DEFAULTS = {
    "connect_timeout": "5",
    "tcp_user_timeout": "5000",
    "keepalives_idle": "2",
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "application_name": "truegreen",
}
_CATALOG = """
WITH ours AS (SELECT oid, relname, relkind FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace)
SELECT 'table ' || relname, string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod),
    attcollation, attnotnull, pg_get_expr(adbin, adrelid)), ', ' ORDER BY attnum)
  FROM ours JOIN pg_attribute a ON attrelid = ours.oid AND attnum > 0 AND NOT attisdropped
  LEFT JOIN pg_attrdef d ON adrelid = ours.oid AND adnum = attnum
  WHERE relkind = 'r' GROUP BY relname
UNION ALL SELECT 'index ' || relname, pg_get_indexdef(oid) FROM ours WHERE relkind = 'i'
UNION ALL SELECT 'constraint ' || relname || '.' || conname,
    concat(pg_get_constraintdef(c.oid), convalidated)
  FROM pg_constraint c JOIN ours ON conrelid = ours.oid WHERE contype IN ('c', 'f', 'p', 'u')
UNION ALL SELECT 'trigger ' || tgname, concat(pg_get_triggerdef(t.oid), tgenabled::text, prosrc)
  FROM pg_trigger t JOIN ours ON tgrelid = ours.oid JOIN pg_proc p ON p.oid = tgfoid
  WHERE NOT tgisinternal
"""
_Session = tuple[int, str]
_SESSIONS: WeakKeyDictionary[psycopg.Connection, _Session] = WeakKeyDictionary()
"""Process and start of each connection's session; a process number alone is used again."""
_SESSION_ENDS_IN = 5.0
_CONNECT_AGAIN_SECONDS = 0.1
_END_SESSION = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid = %s AND backend_start = %s::timestamptz"
)
# Only writers of our own: a frozen one keeps its locks, and the kernel keeps its connection.
_END_STUCK = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = current_user AND application_name = 'truegreen' AND pid <> pg_backend_pid()"
    " AND backend_xid IS NOT NULL AND xact_start < now() - make_interval(secs => %s)"
)
_UNREACHABLE = (psycopg.OperationalError, psycopg.InterfaceError)
_FAILURES = itertools.count()
_AGAIN = "another writer was in the way; try again"
_BY_STATE: dict[str, tuple[type[TruegreenError], str]] = {
    "40001": (Again, _AGAIN),
    "40P01": (Again, _AGAIN),
    "55P03": (Again, _AGAIN),
    "25006": (errors.StoreReadOnly, "the database can't be written now"),
    "53100": (errors.DiskFull, "the database has no room left; nothing was written"),
    "28P01": (StoreUnreachable, "PostgreSQL refuses the password"),
    "3D000": (StoreUnreachable, "there is no such database; create it: createdb"),
}


def translated(error: psycopg.Error) -> TruegreenError:
    """Our error for PostgreSQL's."""
    text = (error.diag.message_primary or str(error)).strip()
    state = error.sqlstate or ""
    constraint = error.diag.constraint_name or ""
    kind, message = _BY_STATE.get(state, (errors.Broken, "PostgreSQL"))
    if state == "TG001":
        return refusal(text) or errors.Refused(text)
    if isinstance(error, psycopg.DataError):
        kind, message = errors.InvalidInput, "PostgreSQL can't take this value"
    if state.startswith("23"):
        kind, message = refused_by(constraint)
    elif kind is errors.Broken and isinstance(error, _UNREACHABLE):
        kind, message = StoreUnreachable, "PostgreSQL can't be reached"
    return kind(f"{message} ({text})")


class PostgresTx:
    """A transaction on one connection; writes travel together and are checked before the commit."""

    boot = ""

    def __init__(
        self,
        connection: psycopg.Connection,
        queries: dict[str, str],
        clock: psycopg.Cursor[Row] | None = None,
    ) -> None:
        """`clock` is the answer to the time of day, if it was asked along with the first read."""
        self._connection = connection
        self._queries = queries
        self._clock = clock
        self._unchecked: list[tuple[str, psycopg.Cursor[Row], Hit]] = []
        self.events: list[str] = []
        self.hints = False
        self._now: int | None = None

    @property
    def now(self) -> int:
        """The database's clock: one for all machines."""
        if self._now is None:
            row = (self._clock or self._connection.execute(_NOW)).fetchone()
            self._now = int(row[0]) if row else 0
        return self._now

    @property
    def lease_now(self) -> int:
        """The same clock: leases are compared on the server's time alone."""
        return self.now

    def one(self, query: str, /, **values: object) -> Row | None:
        """The first row of a named query."""
        return self._execute(query, values).fetchone()

    def all(self, query: str, /, **values: object) -> list[Row]:
        """Every row of a named query."""
        return self._execute(query, values).fetchall()

    def run(self, query: str, /, **values: object) -> None:
        """A named write; sent with the next answer that somebody waits for."""
        self._execute(query, values)

    def hit(self, query: str, /, **values: object) -> Hit:
        """A guarded write that must meet exactly one row: looked at before the commit."""
        hit = Hit()
        self._unchecked.append((query, self._execute(query, values), hit))
        return hit

    def check(self) -> None:
        """Every guarded write met its row."""
        for query, cursor, hit in self._unchecked:
            rows = cursor.fetchall()
            if len(rows) != 1:
                message = f"{query} met {len(rows)} rows: what it names is no longer true"
                raise Stale(message, query=query)
            hit.row = rows[0]
        self._unchecked.clear()

    def _execute(self, query: str, values: dict[str, Any]) -> psycopg.Cursor[Row]:
        return self._connection.execute(self._queries[query], values)


def _silent(connection: psycopg.Connection) -> bool:
    """Whether an idle connection is as it was left: one that was closed says so at once."""
    waiting = select.poll()
    waiting.register(connection.pgconn.socket, select.POLLIN)
    return not connection.closed and not waiting.poll(0)


class PostgresStore:
    """One PostgreSQL database."""

    dialect = "postgres"
    catalog = _CATALOG

    def __init__(self, url: str) -> None:
        self.url = url
        self.queries = load_queries(_FRAGMENTS, r"%(\1)s")
        self._pool = Pool(self._connect, lambda connection: connection.close(), _silent)
        self._doubtful: set[_Session] = set()
        self._patience = threading.local()

    @staticmethod
    def spare_room() -> AbstractContextManager[None]:
        """The disk of a server is not ours to keep room on."""
        return nullcontext()

    @contextmanager
    def patient(self, may_wait: Callable[[], bool]) -> Iterator[None]:
        """A server that restarts is waited for; a thread's own, for others have no time."""
        self._patience.may_wait = may_wait
        try:
            yield
        finally:
            del self._patience.may_wait

    @contextmanager
    def transaction(self) -> Iterator[PostgresTx]:
        """BEGIN … COMMIT in as few round trips as the reads allow."""
        with self._lent(cut=Again) as connection:
            committing = False
            try:
                with connection.pipeline():
                    connection.execute("BEGIN")
                    tx = PostgresTx(connection, self.queries, connection.execute(_NOW))
                    yield tx
                    tx.check()
                    committing = True
                    # In the pipeline: the server passes it over if anything before it failed.
                    connection.execute("COMMIT")
            except BaseException as error:
                self._abandoned(connection, error, committing=committing)
                raise

    @contextmanager
    def snapshot(self) -> Iterator[PostgresTx]:
        """A read transaction: every query in it sees the same moment."""
        with self._lent() as connection:
            self._end_doubtful(connection)
            try:
                with connection.pipeline():
                    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    yield PostgresTx(connection, self.queries)
                    # Not ROLLBACK: psycopg forgets every prepared statement at one.
                    connection.execute("COMMIT")
            except BaseException as error:
                self._abandoned(connection, error, committing=False)
                raise

    def script(self, statements: list[str]) -> None:
        """Run statements in one transaction, under the migration lock."""
        with self._lent() as connection:
            connection.execute("BEGIN")
            committing = False
            try:
                connection.execute("SET LOCAL application_name = 'truegreen migrate'")
                connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATING})")
                for statement in statements:
                    connection.execute(statement.encode())
                committing = True
                connection.execute("COMMIT")
            except BaseException as error:
                self._abandoned(connection, error, committing=committing)
                raise

    def hint(self) -> None:
        """NOTIFY, in a transaction of its own: inside of another it would queue up writers."""
        with suppress(Unavailable), self._lent() as connection:
            connection.execute(f"NOTIFY {_CHANNEL}")

    def listen(self, heard: Callable[[], None], over: threading.Event) -> None:
        """LISTEN on a connection of its own."""
        connection = self._connect()
        try:
            connection.execute(f"LISTEN {_CHANNEL}")
            heard()  # what came while nobody listened
            while not over.is_set():
                for _ in connection.notifies(timeout=_LISTEN_SECONDS, stop_after=1):
                    heard()
        except psycopg.Error as error:
            raise translated(error) from error
        finally:
            connection.close()

    def end_stuck(self, seconds: float) -> int:
        """End sessions whose writing takes longer than any of ours should; says how many."""
        with self._lent() as connection:
            return len(connection.execute(_END_STUCK, [seconds]).fetchall())

    def objects(self) -> dict[str, str]:
        """What the catalog finds now."""
        with self._lent() as connection:
            return dict(connection.execute(self.catalog.encode()).fetchall())

    def settings(self) -> dict[str, str]:
        """Version and the settings that durability hangs on."""
        with self._lent() as connection:
            names = ("server_version", "fsync", "synchronous_commit", "full_page_writes")
            rows = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in names]
        return {name: str(row[0]) for name, row in zip(names, rows, strict=True) if row}

    def integrity(self) -> list[str]:
        """PostgreSQL keeps its own files; here only that every index is valid."""
        with self._lent() as connection:
            rows = connection.execute(
                "SELECT indexrelid::regclass::text FROM pg_index WHERE NOT indisvalid"
            ).fetchall()
        return [f"index {name} is not valid: REINDEX it" for (name,) in rows]

    def backup(self, path: str) -> None:
        """PostgreSQL has its own tools for this."""
        message = (
            "a PostgreSQL store is backed up with PostgreSQL's own tools:"
            f" pg_dump --format=custom --file={shlex.quote(path)} …"
        )
        raise errors.InvalidInput(message, allowed=("pg_dump", "pg_basebackup"))

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    @contextmanager
    def _lent(self, cut: type[Unavailable] = StoreUnreachable) -> Iterator[psycopg.Connection]:
        """A connection; `cut` says what it means when it is lost: only a write is done again."""
        connection = self._taken()
        try:
            yield connection
        except UnicodeEncodeError as error:
            raise errors.InvalidInput(f"a text is not valid UTF-8 ({error.reason})") from error
        except psycopg.Error as error:
            if connection.closed or connection.broken:
                message = f"the connection was cut; nothing was written ({error})"
                raise cut(message) from error
            raise translated(error) from error
        finally:
            if connection.closed or connection.broken:
                self._pool.drop(connection)
            else:
                self._pool.give(connection)

    def _taken(self) -> psycopg.Connection:
        while True:
            try:
                return self._pool.take()
            except StoreUnreachable:
                may_wait = getattr(self._patience, "may_wait", None)
                if not (may_wait and may_wait()):
                    raise
            time.sleep(_CONNECT_AGAIN_SECONDS)

    def _abandoned(
        self, connection: psycopg.Connection, error: BaseException, *, committing: bool
    ) -> None:
        """End what failed; a commit that was cut is neither done nor undone until looked up."""
        if not (connection.closed or connection.broken):
            self._roll_back(connection)
        elif committing:
            self._doubtful.add(_SESSIONS[connection])
            message = "the connection was cut in the commit; the write must be looked up"
            raise OutcomeUnknown(message) from error

    def _end_doubtful(self, connection: psycopg.Connection) -> None:
        """End the sessions whose commit was cut: until then a missing event may still come."""
        for session in list(self._doubtful):
            deadline = time.monotonic() + _SESSION_ENDS_IN
            while connection.execute(_END_SESSION, session).fetchone():
                if time.monotonic() > deadline:
                    raise StoreUnreachable("a session whose commit was cut does not end")
                time.sleep(0.01)
            self._doubtful.discard(session)

    @staticmethod
    def _roll_back(connection: psycopg.Connection) -> None:
        # psycopg takes statements for prepared whose turn never came in a pipeline that failed. It
        # forgets them all at a rollback, but only at one whose text it has not met before.
        failed = connection.info.transaction_status is TransactionStatus.INERROR
        text = f"ROLLBACK -- {next(_FAILURES)}" if failed else "ROLLBACK"
        try:
            connection.execute(text.encode())
        except psycopg.OperationalError:
            connection.close()  # the server is gone, and the transaction with it

    def _connect(self) -> psycopg.Connection:
        try:
            given = conninfo.conninfo_to_dict(self.url)
            arguments = {k: str(v) for k, v in (_DEFAULTS | given).items() if v is not None}
            connection = psycopg.connect(
                conninfo.make_conninfo(**arguments), autocommit=True, prepare_threshold=1
            )
        except psycopg.ProgrammingError as error:
            raise errors.InvalidInput(f"not a PostgreSQL URL: {error}") from error
        except psycopg.Error as error:
            raise translated(error) from error
        try:
            self._check_surroundings(connection)
        except psycopg.Error as error:
            connection.close()
            raise translated(error) from error
        return connection

    @staticmethod
    def _check_surroundings(connection: psycopg.Connection) -> None:
        # Every statement has one right plan, whatever it is given, and some take long to plan.
        row = connection.execute(
            "SELECT current_setting('fsync'), current_setting('synchronous_commit'),"
            " current_setting('server_version_num')::int, current_setting('server_version'),"
            " pid, backend_start::text, set_config('plan_cache_mode', 'force_generic_plan', false)"
            " FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        ).fetchone()
        fsync, synchronous, number, version, *session = row or ("", "", 0, "", 0, "")
        _SESSIONS[connection] = (session[0], session[1])
        problem = ""
        if number < OLDEST_SERVER:
            problem = f"PostgreSQL {version} is too old: 14 or newer is needed"
        if "off" in (fsync, synchronous):
            problem = (
                f"fsync={fsync}, synchronous_commit={synchronous}: acknowledged work could be lost;"
                " set both to on"
            )
        if problem:
            connection.close()
            raise StoreUnsafe(problem)
