"""Everything that can be wrong around a command ends in a sentence and an exit status."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faces.conftest import SCRIPT, Answer, Furnished, Run
from tests.table import each_row
from truegreen.faces.cli.faults import guarded
from truegreen.faces.cli.frame import Frame
from truegreen.model import TaskStatus

READERS = [["list"], ["show", "tsk_0"], ["events"], ["token", "list"]]


@pytest.mark.parametrize("words", READERS)
@pytest.mark.parametrize(
    ("store", "status", "code"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/x", 5, "store_unreachable"),
        ("postgresql://u:hunter2@/x?host=/nowhere", 5, "store_unreachable"),
        ("FOLDER", 2, "invalid_input"),
        ("mysql://x", 2, "invalid_input"),
        ("GARBAGE", 70, "store_corrupt"),
        ("x" * 5000, 2, "invalid_input"),
    ],
)
def test_a_bad_store_is_said(
    words: list[str], store: str, status: int, code: str, tg: Run, tmp_path: Path
):
    (tmp_path / "garbage.db").write_bytes(b"this is no database" * 1000)
    for name, place in {"FOLDER": tmp_path, "GARBAGE": tmp_path / "garbage.db"}.items():
        store = store.replace(name, str(place))
    answer = tg(*words, "--store", store)
    assert (answer.status, answer.out) == (status, "")
    assert answer.err.startswith("truegreen: ")
    assert "hunter2" not in answer.err
    assert len(answer.err) < 2000
    document = tg(*words, "--store", store, "--json")
    assert document.status == status
    document.error(code)
    assert "hunter2" not in document.out


@pytest.mark.parametrize("words", READERS)
@pytest.mark.parametrize("store", ["/proc/none/x.db", "FILE/x.db"])
def test_a_store_that_can_not_be_made_is_said(
    words: list[str], store: str, tg: Run, tmp_path: Path
):
    (tmp_path / "file").write_text("no folder")
    place = store.replace("FILE", str(tmp_path / "file"))
    answer = tg(*words, TRUEGREEN_STORE=place)
    assert (answer.status, answer.out) == (5, "")
    assert answer.err.startswith("truegreen: ")
    tg(*words, "--json", TRUEGREEN_STORE=place).error("store_unreachable")
    tg(*words, "--json", "--store", place).error("not_found")


def test_a_store_where_nobody_may_write_is_said(tg: Run):
    # Not even root creates files there.
    store = "/sys/truegreen.db"
    tg("token", "list", "--json", TRUEGREEN_STORE=store).error("store_read_only")


def test_a_read_only_database_is_said(tg: Run, postgres_url: str, tmp_path: Path):
    mark = "&" if "?" in postgres_url else "?"
    store = f"{postgres_url}{mark}options=-c%20default_transaction_read_only%3Don"
    assert tg("list", "--store", store, "--json").json()["total"] == 0
    words = ("token", "create", "--role", "viewer", "--name", "x", "--store", store)
    answer = tg(*words, "--out", "secret")
    assert (answer.status, answer.out) == (5, "")
    assert "can't be written" in answer.err
    assert "next: truegreen doctor" in answer.err
    assert not (tmp_path / "secret").exists()
    tg(*words, "--json").error("store_read_only")


@pytest.mark.parametrize(
    "cursor", ["zzz", "0.", "2.1", "0.-1", "0.٣", "0.1.1", "-1", " ", "0." + "9" * 400, ""]
)
def test_a_bad_cursor_is_refused(cursor: str, tg: Run, furnished: Furnished):
    tg("list", "--after", cursor, "--json").error("invalid_input")


@pytest.mark.parametrize(
    "name", ["", " ", "tsk_'; --", "../..", "tsk_%", "run_1", "ключ", "x" * 100_000, "--", "\u202e"]
)
def test_a_bad_id_is_refused_shortly(name: str, tg: Run, furnished: Furnished):
    answer = tg("show", name)
    assert (answer.status, answer.out) == (2, ""), answer
    assert answer.err.startswith("truegreen: ")
    assert len(answer.err) < 1200
    assert "\u202e" not in answer.err


@pytest.mark.parametrize("words", [["show", b"\xff"], ["list", "--search", b"a\xc3"], [b"\xff"]])
def test_bytes_that_are_no_text_are_refused(words: list[str | bytes], tg: Run):
    answer = tg(*words)
    assert (answer.status, answer.out) == (2, "")
    assert "is not valid UTF-8" in answer.err
    tg(*words, "--json").error("usage")


@pytest.mark.parametrize("option", ["--search", "--role", "--agent", "--after", "--status"])
def test_a_huge_argument_is_refused_in_a_short_sentence(option: str, tg: Run, furnished: Furnished):
    answer = tg("list", option, "x" * 100_000)
    assert (answer.status, answer.out) == (2, "")
    assert len(answer.err) < 1200


def test_values_that_look_like_options_stay_values(tg: Run, furnished: Furnished):
    assert tg("list", "--json", "--role=--json").json()["tasks"] == []


def test_a_working_directory_that_is_gone_is_said(
    environ: Callable[..., dict[str, str]], tmp_path: Path
):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", f"rmdir {gone}; exec {SCRIPT} list"],
        cwd=gone,
        capture_output=True,
        text=True,
        check=False,
        env=environ(),
    )
    assert done.returncode == 2
    assert done.stderr.startswith("truegreen: the working directory can't be read")


# --- where the output goes


def test_a_closed_pipe_is_no_error_worth_a_word(
    environ: Callable[..., dict[str, str]], furnished: Furnished
):
    for words in (["list"], ["list", "--json"], ["states"], ["--help"], ["--version"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [SCRIPT, *words], stdout=writing, stderr=subprocess.PIPE, check=False, env=environ()
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, b""), words


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--version"], ["states"]])
def test_a_full_disk_behind_the_output_is_said(
    words: list[str], environ: Callable[..., dict[str, str]], furnished: Furnished
):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [SCRIPT, *words], stdout=full, stderr=subprocess.PIPE, check=False, env=environ()
        )
    assert done.returncode == 5
    assert done.stderr.startswith(b"truegreen: the output can't be written: No space left")
    assert b"Traceback" not in done.stderr


def test_closed_descriptors_are_survived(
    environ: Callable[..., dict[str, str]], furnished: Furnished
):
    done = subprocess.run(
        ["sh", "-c", f"{SCRIPT} list >&- 2>&-"], capture_output=True, check=False, env=environ()
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_locale_without_our_glyphs_gets_words(tg: Run, furnished: Furnished):
    assert "? failed" in tg("list", PYTHONIOENCODING="ascii").out
    whole = tg("list", "--json", PYTHONIOENCODING="ascii")
    assert whole == tg("list", "--json"), "JSON is UTF-8 everywhere"


# --- our own defects


@pytest.fixture
def broken(tmp_path: Path) -> dict[str, str]:
    """A truegreen with a defect inside."""
    folder = tmp_path / "defect"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "from truegreen.record.ledger import Ledger\n"
        "def page(self, *a, **k):\n"
        "    raise RuntimeError('boom \\x1b[31m for ' + self.store.url)\n"
        "Ledger.page = page\n"
    )
    return {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}


def report_of(answer: Answer) -> Path:
    found = re.search("^report: (.*)$", answer.err, re.MULTILINE)
    assert found
    return Path(found[1])


def test_a_defect_is_reported_in_a_file_that_is_named(
    tg: Run, broken: dict[str, str], furnished: Furnished, tmp_path: Path
):
    answer = tg("list", **broken)
    assert (answer.status, answer.out) == (70, "")
    assert answer.err.startswith("truegreen: internal error: RuntimeError: boom ")
    report = report_of(answer)
    assert report.is_relative_to(tmp_path / "home" / "xdg_state_home" / "truegreen")
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    text = report.read_text()
    assert "Traceback" in text
    assert "RuntimeError: boom" in text
    assert "command: list" in text
    body = tg("list", "--json", **broken).error("internal")
    assert Path(body["details"]["report"]).exists()


def test_a_report_has_no_password(tg: Run, broken: dict[str, str], postgres_url: str):
    mark = "&" if "?" in postgres_url else "?"
    store = f"{postgres_url}{mark}password=hunter2"
    answer = tg("list", "--store", store, **broken)
    assert answer.status == 70
    assert "hunter2" not in report_of(answer).read_text()
    assert "hunter2" not in answer.err


def test_where_no_report_can_be_written_the_error_is_still_said(
    tg: Run, broken: dict[str, str], furnished: Furnished
):
    answer = tg("list", **broken, XDG_STATE_HOME="/proc/none")
    assert answer.status == 70
    assert answer.err.startswith("truegreen: internal error")
    report_of(answer).unlink()


def test_nothing_is_left_beside_the_store_by_readers(tg: Run, furnished: Furnished, tmp_path: Path):
    before = sorted(path.name for path in tmp_path.iterdir())
    for words in (["list"], ["show", furnished.tasks[TaskStatus.FAILED]], ["events"], ["doctor"]):
        assert tg(*words).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def broken_off(words: list[str], far: str, capsys: pytest.CaptureFixture[str]) -> Answer:
    def act() -> int:
        raise KeyboardInterrupt(*([far] if far else []))

    status = guarded(Frame(words), act)
    said = capsys.readouterr()
    return Answer(status, said.out, said.err)


def test_a_program_gets_a_document_also_when_it_is_interrupted(
    capsys: pytest.CaptureFixture[str],
):
    program = broken_off(["list", "--json"], "", capsys)
    assert (program.status, program.error("interrupted")["message"]) == (130, "interrupted")
    far = "broken off with 2 tasks ended; the same command goes on"
    assert broken_off(["terminate", "--json"], far, capsys).error("interrupted")["message"] == far
    assert broken_off(["terminate"], far, capsys) == (130, "", f"truegreen: {far}\n")
    assert broken_off(["list"], "", capsys) == (130, "", ""), "people know what they did"
    followed = broken_off(["events", "--follow", "--json"], "", capsys)
    assert followed == (130, "", ""), "that is how it ends"


@each_row(
    ("words", "step"),
    [
        (["send", "agt_zzz", "x"], "truegreen agents"),
        (["resolve", "inb_zzz", "--outcome", "x"], "truegreen inbox"),
        (["show", "tsk_zzz"], "truegreen list"),
        (["terminate", "tsk_zzz"], "truegreen list"),
        (["terminate", "agt_zzz"], "truegreen agents"),
        (["terminate", "run_zzz"], "truegreen log run_zzz"),
        (["terminate", "zzz"], "truegreen list"),
        (["routine", "show", "zzz"], "truegreen routine list"),
        (["breakers", "close", "brk_zzz", "--reason", "x"], "truegreen breakers"),
    ],
)
def test_what_is_not_found_leads_to_where_such_things_are_listed(
    words: list[str], step: str, tg: Run, furnished: Furnished
):
    assert tg(*words).err.endswith(f"next: {step}\n")


def test_who_gives_nothing_to_run_is_told_where_to_look(tg: Run):
    answer = tg("run", "--gate", "true")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.endswith("next: truegreen run --help\n")


@pytest.mark.parametrize("words", [["list"], ["inbox"], ["top", "--once"], ["show", "tsk_0"]])
def test_a_jailed_agent_is_told_what_it_can_say_and_not_to_mend_the_store(
    words: list[str], tg: Run
):
    inside = {"TRUEGREEN_RUN": "run_0c3kb"}
    answer = tg(*words, "--store", "/proc/none/x.db", **inside)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("truegreen: this is inside run_0c3kb: the record is hidden")
    assert "doctor" not in answer.err
    told = tg(*words, "--store", "/proc/none/x.db", "--json", **inside).error("forbidden")
    assert "done" in told["allowed"]


def test_an_agent_is_called_an_agent(tg: Run, furnished: Furnished):
    answer = tg("list", "--agent", "a/b")
    assert (answer.status, answer.err) == (
        2,
        "truegreen: no agent a/b\nnext: truegreen agents\n",
    )


def test_an_event_that_a_client_does_not_have_is_refused_by_hand(tg: Run):
    body = tg("hook", "PreTolUse", "--json").error("invalid_input")
    assert "PreToolUse" in body["allowed"]
    answer = tg("hook", "PreTolUse")
    assert (answer.status, "PreToolUse" in answer.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "leads_on"),
    [
        (["show", "agt_1m"], "agents show agt_1m"),
        (["show", "run_1m"], "log run_1m"),
        (["show", "inb_1m"], "inbox"),
        (["receipt", "tsk_1m"], "receipt show tsk_1m"),
        (["routine", "nightly"], "routine show nightly"),
        (["agents", "agt_1m"], "agents show agt_1m"),
    ],
)
def test_an_id_in_the_wrong_place_leads_to_where_it_belongs(
    words: list[str], leads_on: str, tg: Run, furnished: Furnished
):
    answer = tg(*words)
    assert (answer.status, answer.err.splitlines()[-1]) == (2, f"next: truegreen {leads_on}")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("ls", "list"), ("kill", "stop"), ("reopen", "retry"), ("serve", "up"), ("status", "list")],
)
def test_what_other_programs_call_the_same_is_understood(word: str, meant: str, tg: Run):
    assert f"Did you mean {meant}" in tg(word).err
    assert tg(word, "--json").error("usage")["allowed"][0] == meant


def test_a_task_that_waits_for_another_leads_to_why_it_can_not_be_attempted(
    tg: Run, furnished: Furnished
):
    queued = furnished.tasks[TaskStatus.QUEUED]
    words = ["add", "--depends-on", queued, "--json", "--", "true"]
    task = tg(*words).json()["id"]
    assert tg("attempt", task).err.endswith(f"next: truegreen why {task}\n")


def test_several_words_in_one_pair_of_quotes_are_no_program(tg: Run, tmp_path: Path):
    answer = tg("run", "echo hello")
    assert (answer.status, "sh -c 'echo hello'" in answer.err) == (2, True)
    assert tg("list", "--json").json()["tasks"] == [], "nothing was recorded"
    program = tmp_path / "two words"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert tg("run", "--", str(program)).status == 3, "a path with blanks is a program"


def test_an_agent_without_settings_is_said_as_a_task_is(tg: Run):
    for kind in ("agent", "task"):
        said = tg("run", f"--{kind}", "nope").err
        assert f"--{kind}: no {kind} 'nope': there is no truegreen.toml here or above" in said


def test_a_history_without_events_is_said_to_people_alone(tg: Run):
    answer = tg("events")
    assert (answer.out, "nothing has happened yet" in answer.err) == ("", True)
    assert tg("events", "--json") == (0, "", "")


def test_where_no_hooks_are_installed_whoever_asks_for_them_hears_so(tg: Run):
    assert "none are installed: truegreen install" in tg("doctor", "--hooks").out
    assert "none are installed" not in tg("doctor").out
