"""`receipt` through the installed command: shown, given out, checked offline, played again."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from base64 import b64decode, b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.faces.conftest import SCRIPT, Answer, Furnished, Run
from tests.table import each_row
from tests.walk.conftest import Outcome, Walk, git_walk, shell, walk
from tests.work.running import need_jail
from truegreen.contract import digest_of
from truegreen.model import TaskStatus
from truegreen.outlets.envelope import canonical, sealed
from truegreen.outlets.keys import Keyring
from truegreen.outlets.statement import PAYLOAD_TYPE
from truegreen.record.chain import GENESIS, SEALED, seal
from truegreen.record.lifecycle import SETTLED
from truegreen.work.workspace import Workspace

__all__ = ["git_walk", "walk"]

S = TaskStatus


def state(home: Path) -> Path:
    return home / "home" / "xdg_state_home" / "truegreen"


def exported(tg: Run, task: str, file: Path) -> Path:
    answer = tg("receipt", "export", task, "--output", file)
    assert answer.status == 0, answer
    return file


def public_key(tg: Run, file: Path) -> Path:
    file.write_text(tg("receipt", "key", "--pem").out)
    return file


# --- show


@pytest.mark.criterion("M13")
@pytest.mark.parametrize("status", sorted(SETTLED))
def test_a_receipt_says_first_how_the_task_ended_and_how_far_that_reaches(
    status: TaskStatus, tg: Run, furnished: Furnished
):
    answer = tg("receipt", "show", furnished.tasks[status])
    assert answer.status == 0, answer
    first, second, *rest = answer.out.splitlines()
    assert first.startswith("task ")
    assert status in first
    assert second.startswith("level ")
    if status in {S.SUCCEEDED, S.FAILED}:
        assert "Level A2: the code could still cheat its own tests." in rest[0]
        answers = [line.split()[0] for line in rest[1:4]]
        assert answers == ["checks", "level", "proof"]
    else:
        assert "nothing is proven" in second
    assert furnished.tasks[status] in answer.out


@each_row("status", sorted(set(TaskStatus) - SETTLED))
@each_row("verb", ["show", "export"])
def test_what_is_not_over_has_no_receipt(
    status: TaskStatus, verb: str, tg: Run, furnished: Furnished
):
    answer = tg("receipt", verb, furnished.tasks[status])
    assert (answer.status, answer.out) == (2, "")
    assert f"is not settled yet ({status})" in answer.err


def test_json_is_the_envelope_and_the_statement_in_it(tg: Run, furnished: Furnished):
    document = tg("receipt", "show", furnished.tasks[S.FAILED], "--json").json()
    payload = json.loads(b64decode(document["envelope"]["payload"]))
    assert payload == document["statement"]
    assert payload["predicateType"] == "https://truegreen.dev/verdict/v1"
    assert payload["predicate"]["task"]["status"] == "failed"
    assert document["keyid"] == document["envelope"]["signatures"][0]["keyid"]


def test_a_receipt_is_made_on_each_database(tg: Run, furnished_anywhere: Furnished, tmp_path: Path):
    file = exported(tg, furnished_anywhere.tasks[S.SUCCEEDED], tmp_path / "r.json")
    assert tg("receipt", "verify", file).status == 0


# --- export


def test_export_gives_the_envelope_to_stdout_or_into_a_new_file(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    task = furnished.tasks[S.SUCCEEDED]
    out = tg("receipt", "export", task)
    assert (out.status, out.err) == (0, "")
    assert tg("receipt", "export", task, "--json").out == out.out
    document = tg("receipt", "export", task, "--output", "r.json", "--json").json()
    file = tmp_path / "r.json"
    assert file.read_text() == out.out
    assert document["file"] == str(file)
    assert document["bytes"] == file.stat().st_size
    assert {path.name for path in tmp_path.iterdir() if "r.json" in path.name} == {"r.json"}


def test_export_overwrites_nothing_unless_it_is_told_to(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    file = tmp_path / "r.json"
    file.write_text("precious")
    answer = tg("receipt", "export", furnished.tasks[S.FAILED], "--output", file)
    assert (answer.status, answer.out) == (2, "")
    assert "--force overwrites it" in answer.err
    assert file.read_text() == "precious"
    forced = tg("receipt", "export", furnished.tasks[S.FAILED], "--output", file, "--force")
    assert forced.status == 0
    assert tg("receipt", "verify", file).status == 0
    assert [path.name for path in tmp_path.glob("*r.json*")] == ["r.json"]


@pytest.mark.parametrize("place", ["nowhere/r.json", "/proc/r.json"])
def test_a_receipt_that_cannot_be_written_leaves_nothing(
    place: str, tg: Run, furnished: Furnished, tmp_path: Path
):
    answer = tg("receipt", "export", furnished.tasks[S.FAILED], "--output", place)
    assert (answer.status, answer.out) == (5, "")
    assert "can't be written" in answer.err
    assert not list(tmp_path.rglob("*r.json*"))


# --- verify


@pytest.fixture
def receipt(tg: Run, furnished: Furnished, tmp_path: Path) -> Path:
    """The receipt of a succeeded task."""
    return exported(tg, furnished.tasks[S.SUCCEEDED], tmp_path / "receipt.json")


def test_a_receipt_is_checked_with_nothing_but_a_public_key(tg: Run, receipt: Path, tmp_path: Path):
    pem = public_key(tg, tmp_path / "theirs.pem")
    away = tmp_path / "away"
    away.mkdir()
    (tmp_path / "truegreen.toml").write_text("broken [")
    nowhere = {"HOME": str(away), "XDG_STATE_HOME": str(away / "state"),
               "TRUEGREEN_STORE": "postgresql://nobody@127.0.0.1:1/none"}  # fmt: skip
    answer = tg("receipt", "verify", receipt, "--key", pem, **nowhere)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith("task   ● succeeded")
    assert "trusting the keys that were given" in answer.out
    document = tg("receipt", "verify", receipt, "--key", pem, "--json", **nowhere).json()
    assert (document["genuine"], document["trusted"], document["faults"]) == (True, "given", [])
    assert document["statement"]["predicate"]["task"]["status"] == "succeeded"
    assert list(away.iterdir()) == [], "nothing is made by looking"


def test_without_a_key_it_says_that_it_trusts_this_machine(tg: Run, receipt: Path):
    answer = tg("receipt", "verify", receipt)
    assert answer.status == 0
    assert "this machine's own keys" in answer.out
    assert tg("receipt", "verify", receipt, "--json").json()["trusted"] == "own"


def test_without_any_key_there_is_nothing_to_trust_and_none_is_made(
    tg: Run, receipt: Path, tmp_path: Path
):
    away = tmp_path / "away"
    answer = tg("receipt", "verify", receipt, XDG_STATE_HOME=str(away))
    assert (answer.status, answer.out) == (2, "")
    assert "give --key" in answer.err
    assert not away.exists()


def test_a_receipt_comes_through_a_pipe(tg: Run, receipt: Path, tmp_path: Path, environ: Any):
    piped = subprocess.run(
        ["sh", "-c", f"cat {receipt} | truegreen receipt verify - --json"],
        capture_output=True,
        check=True,
        text=True,
        env=environ(PATH=f"{SCRIPT.parent}:{os.environ['PATH']}"),
        cwd=tmp_path,
    )
    assert json.loads(piped.stdout)["genuine"] is True


def forged(receipt: Path) -> bytes:
    """The same receipt about another title, under the old signature."""
    envelope = json.loads(receipt.read_text())
    statement = b64decode(envelope["payload"]).replace(b"fix the parser", b"rob the grocer")
    envelope["payload"] = b64encode(statement).decode()
    return json.dumps(envelope, separators=(",", ":"), sort_keys=True).encode() + b"\n"


@pytest.mark.parametrize("wrong", ["forged", "cut", "twice", "empty", "text"])
def test_what_is_not_genuine_is_named_and_nothing_of_it_is_told(wrong: str, tg: Run, receipt: Path):
    whole = receipt.read_bytes()
    twice = whole.replace(b"{", b'{"payload":"",', 1)
    texts = {"forged": forged(receipt), "cut": whole[:-2], "twice": twice,
             "empty": b"", "text": b"succeeded\n"}  # fmt: skip
    receipt.write_bytes(texts[wrong])
    answer = tg("receipt", "verify", receipt)
    assert (answer.status, answer.err) == (1, "")
    assert answer.out.startswith("✗ not genuine")
    assert "grocer" not in answer.out
    assert "succeeded" not in answer.out
    document = tg("receipt", "verify", receipt, "--json")
    assert document.status == 1
    assert document.json()["genuine"] is False
    assert document.json()["faults"]
    assert document.json()["statement"] is None


def test_a_receipt_that_another_tool_wrote_again_is_genuine(tg: Run, receipt: Path):
    whole = receipt.read_bytes()
    for data in (whole.rstrip(b"\n"), json.dumps(json.loads(whole), indent=1).encode()):
        receipt.write_bytes(data)
        assert tg("receipt", "verify", receipt, "--json").json()["genuine"] is True


def test_another_key_does_not_fit(tg: Run, receipt: Path, tmp_path: Path):
    other = tg("receipt", "key", "--pem", XDG_STATE_HOME=str(tmp_path / "other")).out
    (tmp_path / "other.pem").write_text(other)
    answer = tg("receipt", "verify", receipt, "--key", tmp_path / "other.pem")
    assert answer.status == 1
    assert "not trusted here" in answer.out
    assert "give it as --key" in answer.out
    pem = public_key(tg, tmp_path / "right.pem")
    assert tg("receipt", "verify", receipt, "--key", tmp_path / "other.pem",
              "--key", pem).status == 0  # fmt: skip


def test_a_receipt_of_red_work_is_genuine_and_not_green(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    red = exported(tg, furnished.tasks[S.FAILED], tmp_path / "red.json")
    answer = tg("receipt", "verify", red)
    assert answer.status == 0
    assert answer.out.startswith("task   ✗ failed")
    assert "not succeeded" not in answer.out
    asked = tg("receipt", "verify", red, "--succeeded")
    assert (asked.status, "✗ not succeeded  its task is failed" in asked.out) == (1, True)
    green = exported(tg, furnished.tasks[S.SUCCEEDED], tmp_path / "green.json")
    assert tg("receipt", "verify", green, "--succeeded").status == 0


def test_a_receipt_of_another_task_is_not_the_one_that_was_asked_for(
    tg: Run, furnished: Furnished, receipt: Path
):
    assert tg("receipt", "verify", receipt, "--task", furnished.tasks[S.SUCCEEDED]).status == 0
    answer = tg("receipt", "verify", receipt, "--task", furnished.tasks[S.FAILED])
    assert answer.status == 1
    assert "not about" in answer.out


def test_what_cannot_be_read_is_a_usage_error(tg: Run, receipt: Path, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "no.pem").write_text("hello")
    for words in (
        ["verify", "none.json"],
        ["verify", str(tmp_path)],
        ["verify", "pipe"],
        ["verify", str(receipt), "--key", "none.pem"],
        ["verify", str(receipt), "--key", "no.pem"],
        ["verify", str(receipt), "--key", str(receipt)],
    ):
        answer = tg("receipt", *words)
        assert (answer.status, answer.out) == (2, ""), words
        tg("receipt", *words, "--json").error("invalid_input")


def test_the_lines_for_somebody_else_s_tool_work_as_they_are_printed(
    tg: Run, receipt: Path, tmp_path: Path
):
    page = (Path(__file__).parents[3] / "docs" / "manual" / "receipts.md").read_text()
    (lines,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "theirs.py"
    script.write_text(lines)
    pem = public_key(tg, tmp_path / "key.pem")

    def judged(file: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, script, file, pem], capture_output=True, text=True, check=False
        )

    assert judged(receipt).stdout == "succeeded\n"
    receipt.write_bytes(forged(receipt))
    assert judged(receipt).returncode != 0
    assert judged(receipt).stdout == ""


# --- the key


def test_the_key_is_shown_by_its_public_half_alone(tg: Run, tmp_path: Path):
    document = tg("receipt", "key", "--json").json()
    assert tg("receipt", "key", "--pem").out == document["public_key"]
    assert Path(document["file"]).read_text() == document["public_key"]
    assert (document["replaced"], document["kept"]) == (None, [])
    assert document["keyid"] in tg("receipt", "key").out
    keys = state(tmp_path) / "keys"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    private = keys / "receipts.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    secret = private.read_text().splitlines()[1]
    for words in ([], ["--pem"], ["--json"], ["--rotate"]):
        answer = tg("receipt", "key", *words)
        assert secret not in answer.out + answer.err


def test_old_receipts_stay_genuine_after_a_rotation(
    tg: Run, furnished: Furnished, receipt: Path, tmp_path: Path
):
    pem = public_key(tg, tmp_path / "old.pem")
    before = tg("receipt", "key", "--json").json()["keyid"]
    rotated = tg("receipt", "key", "--rotate", "--json").json()
    assert (rotated["replaced"], rotated["kept"]) == (before, [before])
    assert tg("receipt", "verify", receipt).status == 0
    assert tg("receipt", "verify", receipt, "--key", pem).status == 0
    new = exported(tg, furnished.tasks[S.SUCCEEDED], tmp_path / "new.json")
    document = tg("receipt", "verify", new, "--json").json()
    assert document["signers"] == [rotated["keyid"]]
    assert tg("receipt", "verify", new, "--key", pem).status == 1
    Path(state(tmp_path), "keys", "public", f"{before}.pem").unlink()
    assert tg("receipt", "verify", receipt).status == 1, "a key that is not kept is not trusted"


def test_doctor_says_when_others_can_get_at_the_key(tg: Run, furnished: Furnished, tmp_path: Path):
    assert tg("doctor").status == 0
    assert not (state(tmp_path) / "keys").exists(), "a doctor makes no key"
    tg("receipt", "key")
    assert tg("doctor").status == 0
    private = state(tmp_path) / "keys" / "receipts.pem"
    private.chmod(0o644)
    answer = tg("doctor", "--json")
    assert answer.status == 5
    (ailment,) = answer.json()["ailments"]
    assert ailment["name"] == "key"
    assert "has mode 0644" in ailment["message"]
    assert f"chmod 600 {private}" in ailment["next"]
    refused = tg("receipt", "show", furnished.tasks[S.FAILED])
    assert (refused.status, refused.out) == (5, "")
    assert "has mode 0644" in refused.err
    private.chmod(0o600)
    assert tg("doctor").status == 0
    none = tg("doctor", "--store", tmp_path / "none.db", "--json")
    assert [a["name"] for a in none.json()["ailments"]] == ["missing"]


# --- a real run: what it is about, and once more


def shown(walk: Walk, got: Outcome) -> dict[str, Any]:
    document = walk.tg("receipt", "show", got.task["id"], "--json").json()
    statement: dict[str, Any] = document["statement"]
    return statement


def git(walk: Walk, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=walk.folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


COMMIT = "git add -A && git -c user.name=t -c user.email=t@example.org commit -qm done"


def test_a_receipt_is_about_the_commit_and_its_tree(git_walk: Walk):
    got = git_walk.run("--gate", "test -f made", *shell(f"touch made && {COMMIT}"))
    said = shown(git_walk, got)
    assert [subject["digest"] for subject in said["subject"]] == [
        {"gitCommit": git(git_walk, "rev-parse", "HEAD")},
        {"gitTree": git(git_walk, "rev-parse", "HEAD^{tree}")},
    ]


def test_a_commit_that_does_not_hold_all_of_the_work_is_not_named(git_walk: Walk):
    got = git_walk.run("--gate", "test -f made", *shell(f"{COMMIT} --allow-empty; touch made"))
    said = shown(git_walk, got)
    assert [subject["name"] for subject in said["subject"]] == ["tree"]
    git(git_walk, "add", "-A")
    assert said["subject"][0]["digest"] == {"gitTree": git(git_walk, "write-tree")}


def given_out(walk: Walk, got: Outcome) -> Path:
    file = walk.folder.parent / "receipt.json"
    answer = walk.tg("receipt", "export", got.task["id"], "--output", file)
    assert answer.status == 0, answer
    return file


def again(walk: Walk, file: Path, store: str = "") -> tuple[int, dict[str, Any]]:
    answer = walk.tg(
        "receipt", "verify", file, "--replay", "--json", TRUEGREEN_STORE=store or walk.store
    )
    replay: dict[str, Any] = answer.json()["replay"]
    return answer.status, replay


def compared(replay: dict[str, Any]) -> dict[str, str]:
    return {gate["check"]: gate["word"] for gate in replay["gates"]}


def test_the_same_gates_on_the_same_tree_say_the_same(git_walk: Walk):
    got = git_walk.run(
        *("--gate", "test -f made", "--gate", "test ! -f other"), *shell("touch made")
    )
    file = given_out(git_walk, got)
    git(git_walk, "rm", "-qf", "--cached", "README")
    (git_walk.folder / "other").touch()
    events = git_walk.tg("events", got.task["id"], "--json").out
    status, replay = again(git_walk, file)
    assert (status, replay["word"], replay["history"]) == (0, "same", "same")
    assert compared(replay) == {"test": "same", "test-2": "same"}
    assert git_walk.tg("events", got.task["id"], "--json").out == events, "nothing is written"
    text = git_walk.tg("receipt", "verify", file, "--replay")
    assert text.status == 0
    assert "Again  same" in text.out


def test_red_work_is_red_once_more(git_walk: Walk):
    got = git_walk.run("--gate", "test -f made", "--max-attempts", "1", *shell("true"))
    assert got.task["task_status"] == "failed"
    status, replay = again(git_walk, given_out(git_walk, got))
    assert (status, compared(replay)) == (0, {"test": "same"})
    assert replay["gates"][0]["now"] == "failed"


def test_an_answer_that_differs_now_is_said(git_walk: Walk):
    flag = git_walk.folder.parent / "flag"
    flag.touch()
    got = git_walk.run(
        *("--gate", f"test -f {flag}", "--gate", "test -f made"), *shell("touch made")
    )
    assert got.status == 0
    file = given_out(git_walk, got)
    flag.unlink()
    status, replay = again(git_walk, file)
    assert (status, replay["word"]) == (1, "other")
    assert compared(replay) == {"test": "other", "test-2": "same"}


def test_a_gate_that_cannot_be_run_now_is_no_answer(git_walk: Walk):
    tool = git_walk.folder.parent / "tool"
    tool.write_text("#!/bin/sh\ntest -e made\n")
    tool.chmod(0o755)
    got = git_walk.run("--gate", str(tool), *shell("touch made"))
    assert got.status == 0, got.task["verdict"]
    file = given_out(git_walk, got)
    mirrors = state(git_walk.folder.parent) / "mirrors"
    shutil.rmtree(mirrors)
    status, replay = again(git_walk, file)
    assert (status, replay["word"]) == (5, "could not be run")
    assert compared(replay) == {"tool": "could not be run"}
    assert "is not kept" in replay["hindered"]


def test_another_tree_under_the_same_name_is_not_what_was_signed(git_walk: Walk):
    got = git_walk.run("--gate", "test -f made", *shell("touch made"))
    file = given_out(git_walk, got)
    (git_walk.folder / "more").touch()
    mirrors = state(git_walk.folder.parent) / "mirrors"
    other = Workspace(str(git_walk.folder), str(mirrors)).left(got.latest["id"])
    status, replay = again(git_walk, file)
    assert (status, compared(replay)) == (5, {"test": "could not be run"})
    assert f"is {other.digest}, not " in replay["hindered"]


def test_without_the_store_nothing_can_be_replayed_and_none_is_made(git_walk: Walk):
    got = git_walk.run("--gate", "test -f made", *shell("touch made"))
    file = given_out(git_walk, got)
    other = git_walk.folder.parent / "other.db"
    status, replay = again(git_walk, file, str(other))
    assert (status, replay["word"]) == (5, "could not be run")
    assert not other.exists()
    assert git_walk.tg("migrate", "--store", other).status == 0
    status, replay = again(git_walk, file, str(other))
    assert (status, replay["hindered"]) == (
        5,
        f"the store does not know it: no task {got.task['id']}",
    )


def test_a_receipt_that_is_not_genuine_is_not_replayed(git_walk: Walk):
    got = git_walk.run("--gate", "test -f made", *shell("touch made"))
    file = given_out(git_walk, got)
    file.write_bytes(file.read_bytes().replace(b'"keyid":"', b'"keyid":"0', 1))
    answer = git_walk.tg("receipt", "verify", file, "--replay", "--json")
    assert answer.status == 1
    assert answer.json()["replay"] is None


def test_the_commands_of_a_receipt_are_never_run_whoever_signed_it(git_walk: Walk):
    got = git_walk.run("--gate", "test -f made", *shell("touch made"))
    file = given_out(git_walk, got)
    payload = b64decode(json.loads(file.read_text())["payload"])
    text = json.loads(payload)["predicate"]["contract"]["text"]
    evil = text.replace('["test","-f","made"]', '["test","-f","README"]')
    assert evil != text
    other = json.loads(payload.replace(digest_of(text).encode(), digest_of(evil).encode()))
    other["predicate"]["contract"]["text"] = evil
    theirs = Keyring(str(git_walk.folder.parent / "theirs"))
    file.write_bytes(sealed(canonical(other), PAYLOAD_TYPE, [theirs.signing()]))
    pem = git_walk.folder.parent / "theirs.pem"
    pem.write_bytes(theirs.signing().public.pem())
    answer = git_walk.tg("receipt", "verify", file, "--key", pem, "--replay", "--json")
    document = answer.json()
    assert document["genuine"] is True, document["faults"]
    assert answer.status == 5
    assert "has another contract in this store" in document["replay"]["hindered"]


def test_replaying_an_old_receipt_decides_nothing_about_the_task_as_it_is_now(git_walk: Walk):
    gate = ("--gate", "grep -q done README", "--max-attempts", "1")
    got = git_walk.run(*gate, *shell("true"))
    file = given_out(git_walk, got)
    task = got.task["id"]
    assert git_walk.tg("retry", task, "--reason", "once more").status == 0
    (git_walk.folder / "README").write_text("done\n")
    assert git_walk.tg("attempt", task).status == 0
    events = git_walk.tg("events", task, "--json").out
    status, replay = again(git_walk, file)
    assert (status, compared(replay)) == (0, {"grep": "same"})
    assert replay["gates"][0]["now"] == "failed", "on the tree that the receipt names"
    assert git_walk.tg("events", task, "--json").out == events


def compute_anew(path: str, task: str) -> None:
    """What an attacker does who owns the file: change an event and let every hash fit again."""
    with closing(apsw.Connection(path)) as raw:
        triggers = raw.execute(
            "SELECT name, sql FROM sqlite_master WHERE type='trigger'"
        ).fetchall()
        for name, _ in triggers:
            raw.execute(f"DROP TRIGGER {name}")
        key = raw.execute("SELECT key FROM tasks WHERE id = ?", [task]).fetchall()[0][0]
        raw.execute("UPDATE events SET reason = 'x' WHERE task_key = ? AND revision = 2", [key])
        head = GENESIS
        rows = raw.execute(
            f"SELECT {', '.join(SEALED)} FROM events WHERE task_key = ? ORDER BY revision", [key]
        ).fetchall()
        for row in rows:
            values = dict(zip(SEALED, row, strict=True))
            head = seal(head, task, values)
            raw.execute(
                "UPDATE events SET hash = ? WHERE task_key = ? AND revision = ?",
                [head, key, values["revision"]],
            )
        raw.execute("UPDATE tasks SET head = ? WHERE key = ?", [head, key])
        for _, text in triggers:
            raw.execute(str(text))


@pytest.mark.criterion("M01")
def test_a_history_computed_anew_is_found_by_a_receipt_even_without_its_anchor(git_walk: Walk):
    got = git_walk.run("--gate", "test -f made", *shell("touch made"))
    file = given_out(git_walk, got)
    store = git_walk.store.removeprefix("sqlite://")
    compute_anew(store, got.task["id"])
    assert git_walk.tg("doctor").status == 5
    Path(f"{store}.anchor").unlink()
    assert git_walk.tg("doctor").status == 0, "neither the chain nor a lost anchor can tell"
    status, replay = again(git_walk, file)
    assert (status, replay["history"]) == (1, "other")
    assert compared(replay) == {"test": "same"}


def test_no_agent_in_a_jail_can_read_the_key(git_walk: Walk):
    need_jail()
    git_walk.tg("receipt", "key")
    private = state(git_walk.folder.parent) / "keys" / "receipts.pem"
    assert private.exists()
    got = git_walk.run(
        *("--gate", "test -f tried", "--isolation", "jail"),
        *shell(f"touch tried; cat {private} > stolen; ls {private.parent} >> stolen; true"),
    )
    assert got.status == 0, got.task["verdict"]
    assert (git_walk.folder / "stolen").read_text() == ""


def test_values_in_the_contract_are_named_before_they_leave(git_walk: Walk):
    (git_walk.folder / "truegreen.toml").write_text(
        '[gates.tests]\ncommand = ["test", "-f", "made"]\nenv = { TOKEN = "hunter2" }\n'
    )
    got = git_walk.run("--gate", "tests", *shell("touch made"))
    answer: Answer = git_walk.tg("receipt", "export", got.task["id"])
    assert "gates.tests.env.TOKEN" in answer.err
    file = git_walk.folder.parent / "r.json"
    told = git_walk.tg("receipt", "export", got.task["id"], "--output", file, "--json").json()
    assert told["exposes"] == ["gates.tests.env.TOKEN"]


def test_a_file_that_is_not_there_is_said_before_any_key_is_asked_for(tg: Run):
    answer = tg("receipt", "verify", "nowhere.json")
    assert (answer.status, answer.out) == (2, "")
    assert "nowhere.json can't be read" in answer.err
