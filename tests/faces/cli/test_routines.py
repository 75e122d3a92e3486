"""`routine` on the command line, and settings that an agent could have written."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.faces.conftest import Run
from tests.record.lives import OPERATOR, contract
from tests.stage import Heard
from truegreen.config import load_config
from truegreen.faces.ordering import ordered
from truegreen.faces.recurring import Followed, take
from truegreen.record.holds import Hold
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.supervisor.holder import node

TOML = """
[tasks.t]
command = ["true"]
cwd = "sub"
[routines.nightly]
task = "t"
schedule = "0 2 * * *"
timezone = "Europe/Berlin"
[routines.rounds]
task = "t"
repeat = { max_iterations = 3 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    path = tmp_path / "truegreen.toml"
    path.write_text(TOML)
    return path


@pytest.mark.criterion("K04")
def test_routines_are_listed_run_paused_and_resumed(tg: Run, file: Path):
    before = tg("routine", "list", "--json").json()["routines"]
    assert [(each["id"], each["state"]) for each in before] == [
        ("nightly", "not taken over yet"),
        ("rounds", "not taken over yet"),
    ]
    made = tg("routine", "run", "nightly", "--reason", "a test", "--json").json()
    now = made["routine"]
    assert (now["last_run_status"], now["last_task_status"]) == (None, "queued")
    assert now["last_task"] == made["queued"]
    assert now["occurrences"][0]["cause"].endswith(": a test")
    assert now["next_at"] is not None
    task = tg("show", made["queued"], "--json").json()
    assert task["task_status"] == "queued"
    paused = tg("routine", "pause", "nightly", "--json").json()["routine"]
    assert (paused["paused"], paused["next_at"]) == (True, None)
    assert paused["paused_by"].startswith("operator:")
    assert "paused by operator:" in tg("routine", "list").out
    assert tg("routine", "resume", "nightly", "--json").json()["routine"]["paused"] is False
    shown = tg("routine", "show", "nightly").out
    assert "fired" in shown
    assert "○ queued" in shown
    tg("routine", "show", "weekly", "--json").error("not_found")


def test_a_routine_works_where_its_settings_lie_wherever_somebody_stands(
    tg: Run, file: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(file.parent / "sub")
    queued = tg("routine", "run", "nightly", "--json").json()["queued"]
    with open_ledger_of(tg) as ledger:
        assert f'"cwd":"{file.parent / "sub"}"' in ledger.dossier(queued).contract


def open_ledger_of(_tg: Run):
    from contextlib import closing  # noqa: PLC0415 - one use

    return closing(open_ledger(load_config(os.environ, os.getcwd()).store))


def test_times_are_those_of_whoever_looks(file: Path, tg: Run):
    tg("routine", "run", "nightly")
    for zone, offset in (("UTC", "+0000"), ("UTC-2", "+0200")):
        (due,) = [
            line
            for line in tg("routine", "show", "nightly", TZ=zone).out.splitlines()
            if line.startswith("next ")
        ]
        assert due.endswith(offset), due


def test_a_mistyped_routine_is_answered_with_the_nearest(file: Path, tg: Run):
    assert "did you mean nightly?" in tg("routine", "show", "nigtly").err


def test_names_are_completed(file: Path, tg: Run):
    tg("routine", "run", "nightly")
    typed = {"COMP_WORDS": "truegreen routine show n", "COMP_CWORD": "3"}
    assert tg(_TRUEGREEN_COMPLETE="bash_complete", **typed).out == "plain,nightly\n"


# -- settings that change ------------------------------------------------------------------------


def followed(ledger: Ledger, folder: Path, heard: Heard) -> Followed:
    def load():
        return load_config(os.environ, str(folder))

    return Followed(ledger, load(), load, heard.said)


def names(ledger: Ledger) -> dict[str, bool]:
    return {each.row.name: each.row.gone_at is None for each in ledger.routines()}


def test_a_file_that_changes_is_taken_over_without_a_restart(sqlite_url: str, file: Path):
    ledger, heard = open_ledger(sqlite_url), Heard()
    follow = followed(ledger, file.parent, heard)
    follow()
    follow()
    assert heard.words == ["routine nightly  is taken over", "routine rounds  is taken over"]
    file.write_text(TOML.replace("0 2", "0 3").replace("routines.rounds", "routines.more"))
    follow()
    assert names(ledger) == {"nightly": True, "rounds": False, "more": True}
    assert ledger.routine("nightly").terms.schedule == "0 3 * * *"
    file.write_text("what is this")
    follow()
    follow()
    assert len([words for words in heard.words if "routines stay as they are" in words]) == 1
    assert names(ledger)["nightly"]
    ledger.close()


def test_what_an_agent_could_have_written_starts_nothing(sqlite_url: str, file: Path):
    from tests.record.lives import started  # noqa: PLC0415 - one use

    ledger, heard = open_ledger(sqlite_url), Heard()
    follow = followed(ledger, file.parent, heard)
    follow()
    ticket = started(ledger)
    ledger.doubt(ticket.run, str(file), "it could have written it")
    file.write_text(TOML + '[routines.evil]\ntask = "t"\nschedule = "* * * * *"\n')
    follow()
    assert "evil" not in names(ledger)
    assert any("routines stay as they are" in words for words in heard.words)
    ledger.keep_pin(str(file), {})
    follow()
    assert names(ledger)["evil"]
    ledger.close()


def test_a_routine_that_can_not_be_a_contract_stays_as_it_was(sqlite_url: str, file: Path):
    ledger, heard = open_ledger(sqlite_url), Heard()
    config = load_config(os.environ, str(file.parent))
    take(ledger, config)
    (file.parent / "sub").rmdir()
    assert take(ledger, config, heard.said) == []
    assert heard.words[0].startswith("! routine nightly stays as it was:")
    assert names(ledger) == {"nightly": True, "rounds": True}
    ledger.close()


def test_on_a_shared_store_a_routine_starts_where_its_folder_is(postgres_url: str, file: Path):
    with closing(open_ledger(postgres_url)) as ledger:
        take(ledger, load_config(os.environ, str(file.parent)))
        task = ledger.run_routine("nightly", actor=OPERATOR)
        assert ledger.why(task.id).host == node()
        assert ledger.why(task.id, ["host:another"]).hold is Hold.HOST


def test_on_a_shared_store_what_was_run_or_asked_for_by_http_starts_where_its_folder_is(
    postgres_url: str, sqlite_url: str, file: Path
):
    config = load_config(os.environ, str(file.parent))
    for url, host in ((postgres_url, node()), (sqlite_url, "")):
        with closing(open_ledger(url)) as ledger:
            task = ordered(ledger, config, contract(), actor=OPERATOR)
            assert ledger.why(task.id).host == host
