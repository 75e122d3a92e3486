"""Forward-only, checksummed migrations, and the look at every start that nothing has been wrecked.

All missing steps are one transaction: tables, triggers, their rows in `schema_migrations`, and the
text of every object as the database knows it. A start compares them and refuses what has changed;
which triggers there must be is kept in `sql/guards.json`, so that no start makes them anew.
"""

from __future__ import annotations

import hashlib
import os

import msgspec

from truegreen.errors import (
    SchemaMissing,
    SchemaNewer,
    SchemaWrecked,
    StoreCorrupt,
    TruegreenError,
)
from truegreen.patterns import late
from truegreen.record.store import SQL_DIR, Row, Store
from truegreen.tuples import NamedTuple

REPAIR = "truegreen migrate --repair"
BACKUP = "truegreen backup FILE"
_FILE = late(r"^(\d{4})_(\w+)\.sql$")
_STATEMENT_END = late(r";[ \t]*\n")
_INDEX = late(r"CREATE (?:UNIQUE )?INDEX (\w+)")
_INDEX_GONE = late(r"DROP INDEX (?:IF EXISTS )?(\w+)")
_TRIGGER = late(r"CREATE TRIGGER (\w+)")
GUARDS_FILE = os.path.join(SQL_DIR, "guards.json")


CHECKSUMS_FILE = os.path.join(SQL_DIR, "checksums.json")


class Migration(NamedTuple):
    """One numbered step."""

    version: int
    name: str
    text: str
    """As it stands in its files, with placeholders."""
    dialect: str

    @property
    def rendered(self) -> str:
        """The SQL that is executed: the placeholders are replaced by types and enums."""
        from truegreen.record.dialects import WORDS  # noqa: PLC0415 - a start only looks

        return self.text.format_map(WORDS[self.dialect])

    @property
    def checksum(self) -> str:
        """The digest of the SQL that is executed."""
        return hashlib.sha256(self.rendered.encode()).hexdigest()

    @property
    def statements(self) -> list[str]:
        """Its statements, as they are executed."""
        return [s.strip() for s in _STATEMENT_END.split(self.rendered + "\n") if _is_code(s)]


class Guards(msgspec.Struct, frozen=True):
    """The triggers of one dialect: their names, and the digest of all their text."""

    names: tuple[str, ...]
    digest: str


def migrations(dialect: str) -> list[Migration]:
    """The steps for a dialect, in order. A step may have a second file for one dialect only."""
    folder = os.path.join(SQL_DIR, "migrations")
    found = []
    for file in sorted(os.listdir(folder)):
        match = _FILE.match(file)
        if not match:
            continue
        stem = file.removesuffix(".sql")
        texts = [_read(folder, name) for name in (file, f"{stem}.{dialect}.sql")]
        found.append(Migration(int(match[1]), match[2], "\n".join(texts), dialect))
    return found


def _read(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def _is_code(statement: str) -> bool:
    lines = (line.strip() for line in statement.splitlines())
    return any(line and not line.startswith("--") for line in lines)


def _guards(dialect: str) -> list[str]:
    from truegreen.record import triggers  # noqa: PLC0415 - a start only looks

    return triggers.render_sqlite() if dialect == "sqlite" else triggers.render_postgres()


def made_guards(dialect: str) -> Guards:
    """What the rules of this program add up to; `guards.json` says the same."""
    texts = _guards(dialect)
    names = tuple(name for text in texts for name in _TRIGGER.findall(text))
    return Guards(names, hashlib.sha256("\n".join(texts).encode()).hexdigest())


def kept_guards(dialect: str) -> Guards:
    """Which triggers there must be, without making them."""
    with open(GUARDS_FILE, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Guards])[dialect]


def keep_guards() -> None:
    """Write `guards.json` anew, after a change of the rules."""
    made = {dialect: made_guards(dialect) for dialect in ("postgres", "sqlite")}
    with open(GUARDS_FILE, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


class Checksums(msgspec.Struct, frozen=True, omit_defaults=True):
    """The checksums under which a store may have one migration."""

    rendered: str
    template: str = ""
    """The one that earlier versions wrote: it covers the text before it was rendered."""

    def __contains__(self, checksum: str) -> bool:
        """Whether a store that has it was made by this text."""
        return checksum in {self.rendered, self.template or self.rendered}


def made_checksums(dialect: str) -> dict[int, str]:
    """The digest of the SQL that each migration executes today; `checksums.json` has the same."""
    return {step.version: step.checksum for step in migrations(dialect)}


def kept_checksums(dialect: str) -> dict[int, Checksums]:
    """The checksums of the migrations as they were shipped, without rendering anything."""
    with open(CHECKSUMS_FILE, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, dict[int, Checksums]])[dialect]


def keep_checksums() -> None:
    """Write `checksums.json` anew; the checksums of templates are history and stay."""
    made = {}
    for dialect in ("postgres", "sqlite"):
        kept = kept_checksums(dialect)
        made[dialect] = {
            version: Checksums(digest, kept[version].template if version in kept else "")
            for version, digest in made_checksums(dialect).items()
        }
    with open(CHECKSUMS_FILE, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n")


class State(NamedTuple):
    """What a store holds against what this program knows."""

    version: int
    newest: int
    problems: tuple[str, ...]

    @property
    def older(self) -> bool:
        """Nothing is wrong, but it is what an earlier program left."""
        return 0 < self.version < self.newest and not self.problems

    @property
    def current(self) -> bool:
        """Nothing is missing and nothing is wrong."""
        return self.version == self.newest and not self.problems


def inspect(store: Store) -> State:
    """Compare the store with the program, without changing anything."""
    steps = migrations(store.dialect)
    objects = store.objects()
    if "table schema_migrations" not in objects and objects and store.dialect == "sqlite":
        message = (
            f"{store.url} holds another program's tables; name a file of its own for the store"
        )
        raise SchemaWrecked(message)
    if "table schema_migrations" not in objects:
        return State(0, steps[-1].version, ())
    with store.snapshot() as tx:
        applied = tx.all("schema_migrations")
        recorded: dict[str, str] = dict(tx.all("schema_objects"))
    if None in recorded:
        raise StoreCorrupt("the store is damaged: its own list of objects has holes")
    newest = steps[-1].version
    if not applied:
        return State(newest, newest, ("table schema_migrations was emptied",))
    version = max(row[0] for row in applied)
    if version > newest:
        return State(version, newest, ())
    digest = recorded.pop("guards", "")
    problems = _changed_steps(applied, kept_checksums(store.dialect))
    problems += _changed_objects(objects, recorded, _indexes(steps, version))
    if version == newest:
        # An older store has older triggers, and the next migration brings the new ones.
        problems += _changed_guards(objects, digest, store.dialect)
    return State(version, newest, tuple(dict.fromkeys(problems)))


def _changed_steps(applied: list[Row], known: dict[int, Checksums]) -> list[str]:
    return [
        f"migration {version} {name} was applied with another text"
        for version, name, checksum in applied
        if version in known and checksum not in known[version]
    ]


def _indexes(steps: list[Migration], version: int) -> set[str]:
    """The indexes that must stand, whatever the store has written down about itself."""
    standing: set[str] = set()
    texts = (step.text for step in steps if step.version <= version)
    for statement in (each for text in texts for each in _STATEMENT_END.split(text)):
        standing -= set(_INDEX_GONE.findall(statement))
        standing |= set(_INDEX.findall(statement))
    return {f"index {name}" for name in standing}


def _changed_objects(
    objects: dict[str, str], recorded: dict[str, str], needed: set[str]
) -> list[str]:
    missing = (recorded.keys() | needed) - objects.keys()
    return [f"{name} is missing" for name in sorted(missing)] + [
        f"{name} was changed"
        for name, text in sorted(recorded.items())
        if objects.get(name, text) != text
    ]


def _changed_guards(objects: dict[str, str], digest: str, dialect: str) -> list[str]:
    needed = kept_guards(dialect)
    names = [f"trigger {name}" for name in needed.names]
    problems = [f"{name} is missing" for name in names if name not in objects]
    if digest != needed.digest:
        problems.append("the triggers are those of another version of truegreen")
    return problems


def verify(store: Store) -> None:
    """Refuse a store that is missing, newer, older or wrecked, with the command that leads on."""
    _refuse(inspect(store))


def _refuse(state: State) -> None:
    if state.version == 0:
        raise SchemaMissing("the store is empty; create it: truegreen migrate")
    if state.version > state.newest:
        message = (
            f"the store has schema {state.version}, this truegreen knows {state.newest};"
            " upgrade it: pip install -U truegreen"
        )
        raise SchemaNewer(message)
    if state.problems:
        # What no command can mend is named first.
        worst = sorted(state.problems, key=lambda problem: problem not in _beyond(state.problems))
        listed = "; ".join(worst[:5])
        message = f"the store is not what it was: {listed}. Look: truegreen doctor. Mend: {REPAIR}"
        if _beyond(state.problems):
            message += " (triggers and indexes only: a changed table needs a backup)"
        raise SchemaWrecked(message, allowed=(REPAIR,), problems=list(state.problems))
    if state.version < state.newest:
        message = (
            f"the store has schema {state.version}, this truegreen needs {state.newest};"
            f" back it up ({BACKUP}), then: truegreen migrate"
        )
        raise SchemaWrecked(message, allowed=(BACKUP, "truegreen migrate"))


def migrate(store: Store, *, repair: bool = False) -> list[str]:
    """Apply what is missing; with `repair`, put triggers and indexes back. Says what it did.

    It ends with the look of every start: a migration that left something out is found at once.
    """
    state = inspect(store)
    if state.version > state.newest or (state.problems and not repair):
        _refuse(state)
    _check_mendable(state.problems)
    steps = [step for step in migrations(store.dialect) if step.version > state.version]
    done = [f"applied {step.version:04d} {step.name}" for step in steps]
    try:
        if steps:
            # All in one transaction: nobody ever meets a store that is half made.
            texts = [text for step in steps for text in (*step.statements, _row(store, step))]
            old = _no_guards(store) if state.version else []
            store.script([*old, *texts, *_sealed(store)])
    except TruegreenError:
        # Two programs may create one store at once: the second finds it made.
        if not inspect(store).current:
            raise
        done = []
    if state.problems:
        done += _mend(store, state.problems)
    if repair:
        done += _recount(store)
    verify(store)
    return done


def miscounted(store: Store) -> bool:
    """Whether the matrix's counters differ from the tasks that they count."""
    with store.snapshot() as tx:
        kept, counted = tx.all("counters"), tx.all("counters_by_hand")
    return sorted(kept) != sorted(counted)


def _recount(store: Store) -> list[str]:
    if not miscounted(store):
        return []
    store.script(
        [
            "DELETE FROM counters",
            "INSERT INTO counters (shard, run_status, status, cell, checked, tasks)"  # noqa: ISC004
            " SELECT 0, COALESCE(run_status, ''), status, COALESCE(cell, ''), checked, COUNT(*)"
            " FROM tasks GROUP BY COALESCE(run_status, ''), status, COALESCE(cell, ''), checked",
        ]
    )
    return ["mended: the matrix's counters were wrong"]


def ensure(store: Store) -> None:
    """Create an empty store; refuse any other that is not in order."""
    state = inspect(store)
    if state.version == 0:
        migrate(store)
    else:
        _refuse(state)


def _row(store: Store, step: Migration) -> str:
    """What is written down about a step."""
    from truegreen.record.dialects import WORDS  # noqa: PLC0415 - a start only looks

    now = WORDS[store.dialect]["now"]
    row = f"{step.version}, '{step.name}', '{step.checksum}', {now}"
    return f"INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES ({row})"


_DROP_TRIGGERS = """\
DO $$ DECLARE t record; BEGIN
  FOR t IN SELECT tgname, tgrelid::regclass AS tbl FROM pg_trigger
      JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid
      WHERE relnamespace = current_schema()::regnamespace AND starts_with(proname, 'truegreen_')
      LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.tbl);
  END LOOP;
END $$"""


def _no_guards(store: Store) -> list[str]:
    """Drop the triggers of an older program: they do not fit the tables that migrations change."""
    if store.dialect == "postgres":
        return [_DROP_TRIGGERS]
    with store.snapshot() as tx:
        triggers = [str(name).partition(" ") for name, _ in tx.all("schema_objects")]
    return [f"DROP TRIGGER IF EXISTS {name}" for kind, _, name in triggers if kind == "trigger"]


def _sealed(store: Store) -> list[str]:
    """Set the triggers, then write down what now stands in the database."""
    digest = made_guards(store.dialect).digest
    return [
        *_guards(store.dialect),
        "DELETE FROM schema_objects",
        f"INSERT INTO schema_objects (name, definition) {store.catalog}",
        f"INSERT INTO schema_objects (name, definition) VALUES ('guards', '{digest}')",
    ]


def _beyond(problems: tuple[str, ...]) -> list[str]:
    """What no command can mend."""
    return [p for p in problems if p.startswith(("table", "constraint", "migration"))]


def _check_mendable(problems: tuple[str, ...]) -> None:
    beyond = _beyond(problems)
    if beyond:
        message = (
            f"{'; '.join(beyond)}: rows may have been written past the rules, and no command can"
            " vouch for them. Restore a backup, or move the rows into a new store"
        )
        raise SchemaWrecked(message, problems=beyond)


def _mend(store: Store, problems: tuple[str, ...]) -> list[str]:
    wrecked = {p.split()[1] for p in problems if p.startswith("index")}
    indexes = []
    for step in migrations(store.dialect):
        for statement in step.statements:
            found = _INDEX.search(statement)
            if found and found[1] in wrecked:
                indexes += [f"DROP INDEX IF EXISTS {found[1]}", statement]
    store.script([*indexes, *_sealed(store)])
    return [f"mended: {problem}" for problem in problems]
