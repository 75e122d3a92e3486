"""`doctor`, `migrate` and `backup`."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import apsw
import pytest

from tests.faces.conftest import Furnished, Run
from tests.record.lives import opened
from tests.record.test_migrate import unprivileged
from truegreen.errors import Unavailable
from truegreen.faces.cli.faults import ELSEWHERE
from truegreen.faces.cli.house import _can_be_made, _new_files
from truegreen.record.ledger import open_ledger

REPAIR = "truegreen migrate --repair"


def raw(furnished: Furnished, *statements: str) -> None:
    """Go behind everybody's back."""
    connection = apsw.Connection(str(furnished.path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def a_trigger(furnished: Furnished) -> str:
    connection = apsw.Connection(str(furnished.path))
    row = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'events'"
    ).fetchone()
    connection.close()
    assert row
    return str(row[0])


# --- doctor


def test_a_sound_store_is_healthy(tg: Run, furnished_anywhere: Furnished):
    document = tg("doctor", "--json").json()
    assert document["healthy"] is True, document
    assert document["ailments"] == []
    assert document["schema"]["version"] == document["schema"]["newest"]
    assert tg("doctor").out.startswith("● healthy")


@pytest.mark.criterion("M10")
@pytest.mark.parametrize(
    ("wreck", "name"),
    [
        ("UPDATE counters SET tasks = tasks + 1", "counters"),
        ("UPDATE events SET reason = 'another' WHERE event = 'fail'", "history"),
        ("DELETE FROM leases", "ghost"),
    ],
)
def test_doctor_lists_what_is_violated_with_a_next_step(
    wreck: str, name: str, tg: Run, furnished: Furnished
):
    raw(furnished, "PRAGMA writable_schema = ON", "PRAGMA recursive_triggers = OFF")
    connection = apsw.Connection(str(furnished.path))
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    for trigger, _ in triggers:
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(wreck)
    for _, text in triggers:
        connection.execute(str(text))
    connection.close()
    answer = tg("doctor", "--json")
    assert answer.status == 5
    document = answer.json()
    assert document["healthy"] is False
    assert name in {ailment["name"] for ailment in document["ailments"]}
    assert all(ailment["message"] and ailment["next"] for ailment in document["ailments"])
    text = tg("doctor")
    assert text.status == 5
    assert document["ailments"][0]["message"] in text.out
    assert document["ailments"][0]["next"] in text.out


def test_a_cut_tail_is_found_by_the_anchor(tg: Run, furnished: Furnished):
    before = Path(f"{furnished.path}.before")
    shutil.copy(furnished.path, before)
    ledger = open_ledger(furnished.url, anchor=f"{furnished.path}.anchor")
    opened(ledger)
    ledger.mark()
    ledger.close()
    shutil.copy(before, furnished.path)
    answer = tg("doctor", "--json")
    assert answer.status == 5
    assert {ailment["name"] for ailment in answer.json()["ailments"]} == {"anchor"}


def test_doctor_on_a_missing_store_says_so_and_creates_nothing(tg: Run, tmp_path: Path):
    answer = tg("doctor", "--store", tmp_path / "none.db", "--json")
    assert answer.status == 5
    assert answer.json()["ailments"][0]["name"] == "missing"
    assert answer.json()["ailments"][0]["next"] == "truegreen migrate"
    assert not (tmp_path / "none.db").exists()


def test_doctor_changes_nothing(tg: Run, furnished: Furnished):
    before = furnished.path.read_bytes()
    assert tg("doctor").status == 0
    assert furnished.path.read_bytes() == before


@pytest.mark.parametrize(
    ("store", "code"),
    [
        ("postgresql://nobody:hunter2@127.0.0.1:1/none", "store_unreachable"),
        ("FOLDER", "invalid_input"),
        ("GARBAGE", "store_corrupt"),
        ("foo://bar", "invalid_input"),
    ],
)
def test_a_store_that_cannot_be_opened_is_diagnosed(store: str, code: str, tg: Run, tmp_path: Path):
    (tmp_path / "garbage.db").write_bytes(os.urandom(8192))
    place = {"FOLDER": str(tmp_path), "GARBAGE": str(tmp_path / "garbage.db")}.get(store, store)
    answer = tg("doctor", "--store", place, "--json")
    assert answer.status == 5
    assert [ailment["name"] for ailment in answer.json()["ailments"]] == [code]
    text = tg("doctor", "--store", place)
    assert text.status == 5
    assert code in text.out
    assert "hunter2" not in text.out + text.err + answer.out


def test_doctor_diagnoses_a_broken_settings_file(tg: Run, tmp_path: Path):
    (tmp_path / "truegreen.toml").write_text("[defaults]\nmod = 1\n")
    answer = tg("doctor", "--json")
    assert answer.status == 5
    assert "did you mean" in answer.json()["ailments"][0]["message"]


def test_doctor_warns_of_a_store_inside_a_workspace(tg: Run, tmp_path: Path):
    (tmp_path / ".git").mkdir()
    assert tg("migrate", "--store", "inside.db").status == 0
    assert "inside the workspace" in tg("doctor", "--store", "inside.db").out


# --- the check at every start


@pytest.mark.criterion("B09")
@pytest.mark.parametrize("words", [["list"], ["events"], ["token", "list"], ["show", "tsk_0"]])
def test_a_store_without_one_of_its_triggers_is_refused_with_the_repair_command(
    words: list[str], tg: Run, furnished: Furnished
):
    trigger = a_trigger(furnished)
    raw(furnished, f"DROP TRIGGER {trigger}")
    answer = tg(*words)
    assert (answer.status, answer.out) == (5, "")
    assert f"trigger {trigger} is missing" in answer.err
    assert REPAIR in answer.err
    assert REPAIR in tg(*words, "--json").error("schema_wrecked")["allowed"]
    assert tg("migrate").status == 5, "only --repair mends"
    assert trigger in tg("doctor").out
    assert tg("migrate", "--repair", "--json").json()["done"] == [
        f"mended: trigger {trigger} is missing"
    ]
    assert tg("doctor").status == 0
    assert tg("list").status == 0


@pytest.mark.criterion("B09")
def test_a_rebuilt_table_is_refused_and_no_command_vouches_for_it(tg: Run, furnished: Furnished):
    raw(
        furnished,
        "PRAGMA foreign_keys = OFF",
        "CREATE TABLE rebuilt AS SELECT * FROM refusals",
        "DROP TABLE refusals",
        "ALTER TABLE rebuilt RENAME TO refusals",
    )
    answer = tg("list")
    assert answer.status == 5
    assert "table refusals was changed" in answer.err
    assert "Restore a backup" in tg("migrate", "--repair").err
    assert tg("doctor").status == 5
    assert tg("list").status == 5


def test_a_newer_store_is_refused_with_the_upgrade(tg: Run, furnished: Furnished):
    raw(furnished, "INSERT INTO schema_migrations VALUES (999, 'future', 'x', 1)")
    for words in (["list"], ["migrate"], ["migrate", "--repair"], ["migrate", "--dry-run"]):
        answer = tg(*words)
        assert (answer.status, answer.out) == (5, "")
        assert "pip install -U truegreen" in answer.err
    assert "pip install -U truegreen" in tg("doctor").out


# --- migrate


def test_migrate_creates_a_store_and_then_has_nothing_to_do(tg: Run, tmp_path: Path):
    store = tmp_path / "deep" / "down" / "new.db"
    planned = tg("migrate", "--dry-run", "--store", store, "--json").json()
    assert planned["dry_run"] is True
    assert planned["done"][0].startswith("apply 0001 ")
    assert not store.exists()
    assert not store.parent.exists()
    done = tg("migrate", "--store", store, "--json").json()
    assert done["done"] == [line.replace("apply", "applied") for line in planned["done"]]
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert tg("migrate", "--store", store).out.startswith("nothing to do")
    assert tg("migrate", "--dry-run", "--store", store, "--json").json()["done"] == []


def test_a_dry_repair_only_talks(tg: Run, furnished: Furnished):
    trigger = a_trigger(furnished)
    raw(furnished, f"DROP TRIGGER {trigger}")
    assert f"would mend: trigger {trigger} is missing" in tg("migrate", "--repair", "--dry-run").out
    assert tg("list").status == 5


def test_migrate_works_on_postgres(tg: Run, postgres_url: str):
    assert tg("migrate", "--store", postgres_url, "--json").json()["done"] == []


# --- where nothing can be written


@pytest.mark.parametrize("words", [["list"], ["migrate"], ["inbox"]])
def test_where_no_store_can_be_made_the_way_leads_elsewhere_and_not_in_a_circle(
    words: list[str], tg: Run
):
    # Not even root creates files there.
    answer = tg(*words, TRUEGREEN_STORE="/sys/truegreen.db")
    assert answer.status == 5
    assert answer.err.endswith(f"next: {ELSEWHERE}\n")
    assert "$TRUEGREEN_STORE" in answer.err


def test_the_doctor_sends_nobody_to_migrate_where_no_store_can_be_made():
    for mode, able in ((0o777, True), (0o555, False)):
        folder = Path(tempfile.mkdtemp(prefix="tg-", dir="/tmp"))
        folder.chmod(mode)
        with unprivileged():
            assert _can_be_made(f"{folder}/deep") is able
        folder.rmdir()


# --- backup


@pytest.mark.criterion("M08")
def test_a_backup_is_restored_as_it_says_and_found_sound(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    copy = tmp_path / "safe" / "copy of it.db"
    copy.parent.mkdir()
    before = tg("list", "--json").json()
    document = tg("backup", copy, "--json").json()
    assert document["bytes"] == copy.stat().st_size > 0
    assert {path.name for path in copy.parent.iterdir()} == {copy.name, f"{copy.name}.anchor"}
    marks = Path(f"{furnished.path}.anchor").read_text()
    assert Path(document["anchor"]).read_text() == marks != ""
    assert {stat.S_IMODE(path.stat().st_mode) for path in copy.parent.iterdir()} == {0o600}
    ledger = open_ledger(furnished.url, anchor=f"{furnished.path}.anchor")
    opened(ledger, title="after the backup")
    ledger.mark()
    ledger.close()
    furnished.path.write_bytes(b"damaged" * 1000)
    assert tg("doctor").status == 5
    for line in document["restore"][:-1]:
        subprocess.run(line, shell=True, check=True)  # noqa: S602 - the line is what is tested
    assert document["restore"][-1] == "truegreen doctor"
    assert tg("doctor").status == 0
    assert tg("list", "--json").json() == before


def test_a_copy_can_be_examined_where_it_lies(tg: Run, furnished: Furnished, tmp_path: Path):
    assert tg("backup", "copy.db").status == 0
    assert tg("doctor", "--store", tmp_path / "copy.db").status == 0


@pytest.mark.criterion("M08")
def test_an_older_store_is_copied_as_it_is_before_it_is_migrated(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    """The way that the refusal itself names."""
    newest = "SELECT MAX(version) FROM schema_migrations"
    raw(furnished, f"DELETE FROM schema_migrations WHERE version = ({newest})")
    refused = tg("list")
    assert refused.status == 5
    assert "back it up (truegreen backup FILE), then: truegreen migrate" in refused.err
    assert refused.err.endswith("next: truegreen backup FILE\n")
    assert tg("doctor", "--json").json()["ailments"][0]["next"].startswith("truegreen backup FILE")
    document = tg("backup", "copy.db", "--json").json()
    assert document["bytes"] == (tmp_path / "copy.db").stat().st_size
    copied, ours = (
        apsw.Connection(str(path)).execute("SELECT COUNT(*) FROM tasks").fetchall()
        for path in (tmp_path / "copy.db", furnished.path)
    )
    assert copied == ours != [(0,)]


def test_a_wrecked_store_and_none_at_all_are_not_copied(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    tg("backup", "copy.db", "--json", "--store", tmp_path / "none.db").error("schema_missing")
    raw(furnished, f"DROP TRIGGER {a_trigger(furnished)}")
    tg("backup", "copy.db", "--json").error("schema_wrecked")
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["store.db"]


@pytest.mark.parametrize("taken", ["copy.db", "copy.db.anchor"])
def test_a_backup_overwrites_nothing(taken: str, tg: Run, furnished: Furnished, tmp_path: Path):
    (tmp_path / taken).write_text("precious")
    answer = tg("backup", "copy.db")
    assert (answer.status, answer.out) == (2, "")
    assert "exists already" in answer.err
    assert (tmp_path / taken).read_text() == "precious"
    tg("backup", "copy.db", "--json").error("invalid_input")
    assert [path.name for path in tmp_path.glob("copy*")] == [taken]


def test_what_appears_while_a_backup_is_made_is_not_overwritten(tmp_path: Path):
    first, second = tmp_path / "copy.db", tmp_path / "copy.db.anchor"

    def interfered() -> None:
        with _new_files(str(first), str(second)) as drafts:
            Path(drafts[0]).write_text("ours")
            second.write_text("precious")

    with pytest.raises(Unavailable, match="File exists"):
        interfered()
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy.db.anchor"]
    assert second.read_text() == "precious"


@pytest.mark.parametrize("place", ["missing/copy.db", "/proc/copy.db", "store.db/copy.db"])
def test_a_backup_that_cannot_be_written_leaves_nothing(
    place: str, tg: Run, furnished: Furnished, tmp_path: Path
):
    before = sorted(path.name for path in tmp_path.iterdir())
    answer = tg("backup", place)
    assert (answer.status, answer.out) == (5, "")
    assert answer.err.startswith("truegreen: the backup can't be written in ")
    ours = {name for name in before if not name.startswith("store.db")}
    assert {p.name for p in tmp_path.iterdir() if not p.name.startswith("store.db")} == ours


def test_a_backup_of_a_damaged_store_leaves_nothing(tg: Run, furnished: Furnished, tmp_path: Path):
    whole = bytearray(furnished.path.read_bytes())
    whole[40960:81920] = bytes(40960)
    furnished.path.write_bytes(whole)
    answer = tg("backup", "copy.db")
    assert answer.status in {0, 5, 70}
    assert bool(answer.status) != (tmp_path / "copy.db").exists()
    assert not list(tmp_path.glob("*.part-*"))


def test_postgres_is_backed_up_with_its_own_tools(tg: Run, postgres_url: str, tmp_path: Path):
    answer = tg("backup", "copy.dump", "--store", postgres_url)
    assert (answer.status, answer.out) == (2, "")
    assert f"pg_dump --format=custom --file={tmp_path}/copy.dump …" in answer.err
    assert not list(tmp_path.glob("copy*"))
