"""What the two databases call things, and the enums as SQL: the words that fill the braces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from truegreen import model
from truegreen.model import (
    ENDS,
    PARENT,
    RUNS,
    ExitDetail,
    ExitReason,
    Move,
    Note,
    TaskStatus,
)
from truegreen.record.ids import SILENT
from truegreen.record.lifecycle import AGENT_EDGES, EDGES, SETTLED, TARGETS

Among = Callable[[str, Iterable[str]], str]
"""Whether an expression is one of some words; NULL counts as one, as in a CHECK."""


def _case(expression: str, values: Iterable[str]) -> str:
    """SQLite builds a table for an IN list at every execution; a CASE costs a third."""
    whens = " ".join(f"WHEN '{value}' THEN 1 = 1" for value in values)
    return f"(CASE {expression} {whens} ELSE {expression} IS NULL END)"


def _any(expression: str, values: Iterable[str]) -> str:
    """PostgreSQL reads a CHECK anew at every execution; one array constant is the shortest."""
    return f"(({expression}) = ANY ('{{{','.join(values)}}}'::text[]))"


class _Columns(dict[str, str]):
    """`{among[status TaskStatus]}` in a migration: the column holds one of the enum's words."""

    def __init__(self, among: Among) -> None:
        super().__init__()
        self._among = among

    def __missing__(self, words: str) -> str:
        column, enum = words.split()
        return self._among(column, _VOCABULARY[enum])


_VOCABULARY: dict[str, tuple[str, ...]] = {
    name: tuple(enum)
    for name, enum in vars(model).items()
    if isinstance(enum, type) and issubclass(enum, StrEnum) and enum is not StrEnum
} | {
    "Event": (*Move, *Note),
    "settled": tuple(status for status in TaskStatus if status in SETTLED),
    "live_runs": tuple(status for status, look in RUNS.items() if not look.ended),
}
_STEPS = dict.fromkeys(f"{source}>{target}" for (source, _), target in TARGETS.items())
_EDGES = [f"{edge.move}:{source}>{edge.target}" for edge in EDGES for source in edge.sources]
_AGENT_STEPS = [f"{a}>{b}" for a, targets in AGENT_EDGES.items() for b in sorted(targets)]


_LATER_DETAILS = (ExitDetail.SUPERVISOR_RESTARTED,)
"""Exit details that the first migration does not know."""


def _exit_pair(among: Among, parents: dict[ExitDetail, ExitReason]) -> str:
    """A reason and a detail come together, and the detail belongs to the reason."""
    known = (f"{reason}/{detail}" for detail, reason in parents.items())
    pairs = among("exit_reason || '/' || exit_detail", known)
    return f"(exit_reason IS NULL) = (exit_detail IS NULL) AND {pairs}"


def _rules(among: Among) -> dict[str, object]:
    """What belongs together, and which way leads where, as SQL."""
    # The text of an applied migration stays the same: a later one brings the new word.
    first = {detail: reason for detail, reason in PARENT.items() if detail not in _LATER_DETAILS}
    return {
        "among": _Columns(among),
        "place": f"(silent * {SILENT} + key)",
        "place_of_two": f"(key + silent * {SILENT})",
        "is_move": among("NEW.event", Move),
        "legal_step": among("OLD.status || '>' || NEW.status", _STEPS),
        "legal_agent_step": among("OLD.status || '>' || NEW.status", _AGENT_STEPS),
        "legal_edge": among("NEW.event || ':' || NEW.from_status || '>' || NEW.to_status", _EDGES),
        "run_ends": among(
            "exit_reason || '/' || status",
            (f"{reason}/{status}" for reason, statuses in ENDS.items() for status in statuses),
        ),
        "exit_pair": _exit_pair(among, first),
        "exit_pair_restarted": _exit_pair(among, PARENT),
        "exit_fits_status": (
            "CASE status"
            " WHEN 'succeeded' THEN exit_reason IS NOT NULL"
            " AND (exit_reason = 'done' OR rescued = 1)"
            " WHEN 'blocked' THEN exit_reason IS NOT NULL AND exit_reason = 'blocked'"
            " WHEN 'canceled' THEN exit_reason IS NOT NULL AND exit_reason = 'user_cancelled'"
            " WHEN 'terminated' THEN exit_reason IS NOT NULL AND exit_reason = 'user_cancelled'"
            " WHEN 'failed' THEN exit_reason IS NOT NULL AND exit_reason <> 'user_cancelled'"
            " ELSE 1 = 1 END"
        ),
    }


_MARKS = "./:@_+=,;()[]<>#&*!?|~^$-"
_BLANKS = " " * len(_MARKS)

WORDS: dict[str, dict[str, object]] = {
    "sqlite": _rules(_case)
    | {
        "int": "INTEGER",
        "text": "TEXT",
        "real": "REAL",
        "blob": "BLOB",
        "key": "INTEGER PRIMARY KEY",
        "serial": "INTEGER PRIMARY KEY",
        "strict": "STRICT",
        "narrow": "STRICT, WITHOUT ROWID",
        "then_key": "",  # SQLite ends every index with the rowid
        "xact": "0",
        "shard": "0",
        "now": "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
        "random_id": "lower(hex(randomblob(9)))",
    },
    "postgres": _rules(_any)
    | {
        "int": "bigint",
        "text": 'text COLLATE "C"',
        "real": "double precision",
        "blob": "bytea",
        "key": "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
        "serial": "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
        "strict": "",
        "narrow": "",
        "then_key": ", key",
        "xact": "pg_current_xact_id()::text::bigint",
        # Hot counters are spread over shards, so that writers don't queue behind one row.
        "shard": "mod(pg_backend_pid(), 64)",
        "now": "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
        # Paths, hosts and addresses are several words, as in SQLite, not one.
        "words_of_task": f"translate(left(title || ' ' || goal, 100000), '{_MARKS}', '{_BLANKS}')",
        "random_id": "substr(md5(random()::text || clock_timestamp()::text), 1, 18)",
    },
}
