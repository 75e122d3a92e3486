"""`outlets` and `junit` on the command line: what was sent, what was not, and how to go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faces.conftest import Furnished, Run
from tests.outlets.receiver import Receiver, Reply
from tests.record.lives import BASE, brought, opened
from truegreen.model import TaskStatus
from truegreen.record.ledger import Start, open_ledger
from truegreen.record.ledger.telling import Owed
from truegreen.work.gates.reports import read_junit


def config(tg: Run, tmp_path: Path, url: str) -> str:
    """A webhook into one's own network, trusted although something runs."""
    text = f'[[notify]]\nname = "ops"\nwebhook = "{url}/key"\nallow_private = true\n'
    file = tmp_path / "truegreen.toml"
    file.write_text(text)
    assert tg("outlets", "trust").status == 0
    return str(file)


def failing(furnished: Furnished) -> str:
    ledger = open_ledger(furnished.url)
    task, _ = brought(ledger, TaskStatus.FAILED, title="something new")
    ledger.close()
    return task.id


@pytest.mark.criterion("L12")
def test_news_is_sent_without_a_server_and_what_failed_is_seen(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    with Receiver() as receiver:
        config(tg, tmp_path, receiver.url)
        assert tg("outlets", "--once").out == "ops  0 sent\n"
        task = failing(furnished)
        receiver.behave = lambda _: Reply(410, b"no more")
        answer = tg("outlets", "--once")
        assert (answer.status, answer.out) == (5, "ops  0 sent, 1 did not get through\n")
        listed = tg("outlets", "--json").json()
        (outlet,), (post,) = listed["outlets"], listed["posts"]
        assert (outlet["name"], outlet["given_up"], outlet["failed_tries"]) == ("ops", 1, 1)
        assert (post["task"], post["state"]) == (task, "given_up")
        assert post["error"] == "it answered 410: no more"
        unsent = "1 message was given up by the outlet ops: truegreen outlets"
        assert tg("inbox").out.startswith(f"◆ {unsent}\n")
        assert tg("inbox", "--group").out.startswith(f"◆ {unsent}\n")
        assert unsent in tg("doctor", "--json").json()["warnings"]
        shown = tg("outlets").out
        assert f"truegreen outlets retry {post['id']}" in shown
        assert "key" not in shown + str(listed)
        assert f"gave up {post['id']}" in answer.err
        receiver.behave = lambda _: Reply(200)
        assert tg("outlets", "retry", post["id"], "--json").json()["state"] == "waiting"
        assert tg("outlets", "--once").out == "ops  1 sent\n"
        assert "given up" not in tg("inbox").out
        assert [asked.json["subject"] for asked in receiver.asked] == [task, task]


def test_an_outlet_is_tried_without_saying_anything(tg: Run, furnished: Furnished, tmp_path: Path):
    with Receiver() as receiver:
        config(tg, tmp_path, receiver.url)
        assert tg("outlets", "test", "ops").out == "ops  arrived\n"
        assert receiver.asked[0].json["type"] == "dev.truegreen.test"
        receiver.behave = lambda _: Reply(500)
        answer = tg("outlets", "test", "ops", "--json")
        assert answer.status == 5
        assert answer.json() == {
            "outlet": "ops",
            "where": f"{receiver.url}/…",
            "arrived": False,
            "trouble": "it answered 500",
        }
        assert "did you mean ops?" in tg("outlets", "test", "opps").err


def test_an_outlet_that_is_set_no_more_is_still_seen(tg: Run, furnished: Furnished, tmp_path: Path):
    with Receiver(lambda _: Reply(500)) as receiver:
        file = config(tg, tmp_path, receiver.url)
        tg("outlets", "--once")
        failing(furnished)
        tg("outlets", "--once")
    Path(file).unlink()
    (outlet,) = tg("outlets", "--json").json()["outlets"]
    assert (outlet["name"], outlet["is_set"], outlet["waiting"]) == ("ops", False, 1)
    left = "1 message is left of the outlet ops, which truegreen.toml has no more"
    shown = " ".join(tg("outlets").out.split())
    assert "not in truegreen.toml any more" in shown
    assert left in shown
    assert tg("inbox").out.startswith(f"◆ {left}")
    assert any(left in words for words in tg("doctor", "--json").json()["warnings"])
    config(tg, tmp_path, "http://127.0.0.1:9")
    assert "ops is in truegreen.toml" in tg("outlets", "drop", "ops").err
    Path(file).unlink()
    assert tg("outlets", "drop", "ops").out == "ops  1 dropped\n"
    assert left not in tg("inbox").out


@pytest.mark.criterion("L12")
def test_an_outlet_that_says_nothing_says_why(tg: Run, furnished: Furnished):
    task = furnished.tasks[TaskStatus.SUCCEEDED]
    ledger = open_ledger(furnished.url)
    ledger.owe("github", [Owed("evt_1", "", task, unsaid="no commit holds it")], (1, 1))
    ledger.close()
    (outlet,) = tg("outlets", "--json").json()["outlets"]
    assert (outlet["unsaid"], outlet["last_unsaid"]["error"]) == (1, "no commit holds it")
    assert f"last not said about {task}: no commit holds it" in " ".join(tg("outlets").out.split())
    (unsent,) = tg("show", task, "--json").json()["unsent"]
    assert (unsent["outlet"], unsent["state"], unsent["why"]) == (
        *("github", "unsaid", "no commit holds it"),
    )
    shown = tg("show", task).out
    assert "Not told outside" in shown
    assert "github  not said  no commit holds it" in shown
    assert tg("show", furnished.tasks[TaskStatus.FAILED], "--json").json()["unsent"] == []


def test_nobody_inside_a_run_sends_anything(tg: Run, furnished: Furnished, tmp_path: Path):
    with Receiver() as receiver:
        config(tg, tmp_path, receiver.url)
        for words in (["--once"], ["test", "ops"], ["retry", "pst_1"], ["drop", "x"]):
            assert tg("outlets", *words, TRUEGREEN_RUN="run_1").status == 2
        assert receiver.asked == []


def test_a_report_is_xml_for_other_tools(tg: Run, furnished: Furnished):
    tasks = [furnished.tasks[TaskStatus.FAILED], furnished.tasks[TaskStatus.SUCCEEDED]]
    answer = tg("junit", *tasks)
    assert answer.status == 0
    cases = read_junit(answer.out.encode())
    assert isinstance(cases, list)
    assert len(cases) == 4
    assert tg("junit", *tasks, "--json").json()["junit"] == answer.out


@pytest.mark.criterion("O03", "O04")
def test_settings_that_a_run_could_have_written_are_shown_until_somebody_trusts_them(
    tg: Run, tmp_path: Path, home_store: str
):
    file = tmp_path / "truegreen.toml"
    ledger = open_ledger(home_store)
    ground = {"ground": {"top": str(tmp_path)}}
    ledger.start(opened(ledger).id, Start("test", base_digest=BASE, facts=ground))
    ledger.close()
    file.write_text('[[notify]]\nname = "ops"\nwebhook = "https://x.example/SECRET"\n')
    told = tg("outlets", "--json").json()
    (ops,) = told["outlets"]
    assert (ops["name"], ops["is_set"], ops["is_used"]) == ("ops", True, False)
    first, second = told["warnings"]
    assert first.startswith(f"{file} was never trusted, and run_")
    assert first.endswith("; not used yet: ops: truegreen outlets trust")
    assert second == "notify.ops is new: webhook https://x.example/***"
    assert second in tg("doctor", "--json").json()["warnings"]
    listed = " ".join(tg("outlets").out.split())
    assert "ops not used yet: truegreen outlets trust" in listed
    assert "names no outlet" not in listed
    tried = tg("outlets", "test", "ops")
    assert "ops is in truegreen.toml, but not used yet: truegreen outlets trust" in tried.err
    assert "no outlet 'oops' in truegreen.toml; did you mean ops?" in (
        tg("outlets", "test", "oops").err
    )
    dry = tg("outlets", "trust", "--dry-run")
    assert dry.out.splitlines()[-1] == "to use it so: truegreen outlets trust"
    done = tg("outlets", "trust").out
    assert done.endswith(f"{file} is trusted as it is now\n")
    assert "SECRET" not in str(told) + dry.out + done
    shown = tg("outlets", "--json").json()
    assert (shown["warnings"], shown["outlets"][0]["name"]) == ([], "ops")
    assert shown["outlets"][0]["is_used"] is True
    tg("outlets", "--once")
    file.write_text('[[notify]]\nname = "ops"\nwebhook = "https://y.example/SECRET"\n')
    assert f"{file} changed since it was trusted" in tg("outlets", "--json").json()["warnings"][0]


def test_what_no_outlet_owes_is_said_with_the_way_to_what_they_do(tg: Run, furnished: Furnished):
    unknown = tg("outlets", "retry", "pst_nobody")
    assert unknown.status == 2
    assert unknown.err.endswith("next: truegreen outlets\n")
    assert tg("outlets", "drop", "opps").out == "opps  owes nothing: nothing was dropped\n"
