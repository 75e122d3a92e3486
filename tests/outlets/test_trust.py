"""What an agent may have written into the settings is not used until a person says so."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.record.lives import BASE, OPERATOR, ended, opened
from truegreen.config import Config, load_config
from truegreen.contract import Notify
from truegreen.contract.web import Web
from truegreen.errors import Refused
from truegreen.facts import Ticket
from truegreen.model import ExitDetail
from truegreen.outlets.notify import Command
from truegreen.outlets.posting import outlets_of
from truegreen.outlets.trust import check, files_of, look, settle, trust
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.ledger.outbox import SETTINGS_CHANGED

DATABASES = ("sqlite",)

OPS = '[[notify]]\nname = "ops"\nwebhook = "https://ops.example/SECRET"\n'
EVIL = '[[notify]]\nname = "evil"\ncommand = ["sh", "-c", "id"]\n'
WEB = '[web]\nport = 9000\nurl = "https://evil.example"\n'


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    """A record."""
    made = open_ledger(sqlite_url)
    yield made
    made.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A work tree."""
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def settings(tree: Path, text: str) -> Config:
    """What the file in the tree says from now on."""
    (tree / "truegreen.toml").write_text(text)
    return loaded(tree)


def loaded(tree: Path, config: str | None = None) -> Config:
    """The settings in force in the tree."""
    environ = {"HOME": str(tree.parent), "TRUEGREEN_STORE": str(tree.parent / "s.db")}
    return load_config(environ, str(tree), config=config)


def later() -> None:
    """Files have coarse times."""
    time.sleep(0.05)


def under_way(ledger: Ledger, tree: Path) -> Ticket:
    """A run whose agent works in the tree."""
    facts: dict[str, Any] = {"ground": {"top": str(tree), "folder": "", "base": "x"}}
    later()
    return ledger.start(opened(ledger).id, Start("test", base_digest=BASE, facts=facts))


def worked(
    ledger: Ledger, tree: Path, *, same: bool | None, writes: str = "", into: Path | None = None
) -> Ticket:
    """A run that has ended, what it wrote, and whether the settings were the same afterwards."""
    ticket = under_way(ledger, tree)
    later()
    if writes:
        (into or tree / "truegreen.toml").write_text(writes)
    later()
    seen = {} if same is None else {"settings": {str(tree / "truegreen.toml"): same}}
    ledger.end_run(ticket, ended(ExitDetail.OOM, facts=seen))
    later()
    return ticket


def names(ledger: Ledger, config: Config) -> list[str]:
    return [outlet.name for outlet in outlets_of(ledger, config, {})]


def doubts(ledger: Ledger) -> list[str]:
    return [each.item.reason for each in ledger.inbox() if each.item.cell == SETTINGS_CHANGED]


def test_what_is_first_used_is_trusted_and_said_in_one_line(ledger: Ledger, tree: Path):
    config = settings(tree, OPS)
    said: list[str] = []
    assert settle(ledger, config, said.append) == config
    assert said == [f"{config.file} is trusted to reach out as it does now: notify.ops"]
    assert settle(ledger, config, said.append) == config
    assert len(said) == 1
    assert names(ledger, config) == ["ops"]


@pytest.mark.criterion("O04", "G20")
@pytest.mark.parametrize("same", [False, None], ids=["changed", "nobody looked"])
def test_what_a_run_could_have_added_is_not_used(ledger: Ledger, tree: Path, same: bool | None):
    settle(ledger, settings(tree, OPS))
    ticket = worked(ledger, tree, same=same, writes=OPS + EVIL + WEB)
    config = loaded(tree)
    assert names(ledger, config) == ["ops"]
    said: list[str] = []
    with pytest.raises(Refused) as refused:
        settle(ledger, config, said.append)
    assert refused.value.details == {"file": config.file, "run": ticket.run}
    assert refused.value.allowed == ("truegreen outlets trust",)
    usable = look(ledger, config).config
    assert usable.contents.web == Web(port=9000)
    assert [each.name for each in usable.contents.notify] == ["ops"]
    assert ticket.run in said[0]
    assert said[0].endswith("truegreen outlets trust")
    assert set(said[1:]) == {
        '! notify.evil is new: command ["sh","***"]',
        "! web is new: port 9000, url https://evil.example",
    }
    with pytest.raises(Refused):
        settle(ledger, config)
    (reason,) = doubts(ledger)
    assert "notify.evil is new" in reason


@pytest.mark.criterion("O04")
def test_an_edit_that_no_run_could_have_made_is_taken_over(ledger: Ledger, tree: Path):
    settle(ledger, settings(tree, OPS))
    worked(ledger, tree, same=True)
    worked(ledger, tree.parent / "elsewhere", same=None)
    said: list[str] = []
    config = settings(tree, EVIL)
    assert settle(ledger, config, said.append) == config
    assert len(said) == 1
    assert names(ledger, config) == ["evil"]
    assert doubts(ledger) == []


def test_a_run_before_the_pin_and_one_after_are_told_apart(ledger: Ledger, tree: Path):
    config = settings(tree, "")
    live = under_way(ledger, tree)
    later()
    settle(ledger, config)
    assert names(ledger, settings(tree, EVIL)) == []
    later()
    seen = {"settings": {str(tree / "truegreen.toml"): True}}
    ledger.end_run(live, ended(ExitDetail.OOM, facts=seen))
    assert names(ledger, settings(tree, EVIL)) == ["evil"]
    worked(ledger, tree, same=None)
    assert names(ledger, loaded(tree)) == ["evil"]
    worked(ledger, tree, same=None, writes=EVIL)
    assert names(ledger, loaded(tree)) == []


@pytest.mark.criterion("O04")
def test_a_file_that_a_run_made_is_not_trusted_on_first_use(ledger: Ledger, tree: Path):
    worked(ledger, tree, same=False, writes=EVIL)
    config = loaded(tree)
    with pytest.raises(Refused):
        settle(ledger, config)
    assert names(ledger, config) == []
    assert ledger.pin(str(config.file)) is None
    assert len(doubts(ledger)) == 1


@pytest.mark.criterion("O04")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OPS.replace("SECRET", "OTHER"), "(in what is not shown)"),
        (OPS.replace("ops.example", "evil.example"), "is webhook https://evil.example/***"),
        (OPS + 'on = ["succeeded"]\n', "(in what is not shown)"),
        ("", "notify.ops is gone: webhook https://ops.example/***"),
        (OPS + '[github]\ntoken_env = "AWS_KEY"\n', "github is new: "),
        (OPS + '[otel]\nendpoint = "https://u:SECRET@x/?SECRET"\n', "otel is new: "),
    ],
)
def test_every_change_is_named_without_its_secrets(
    ledger: Ledger, tree: Path, text: str, words: str
):
    settle(ledger, settings(tree, OPS))
    worked(ledger, tree, same=False)
    config = settings(tree, text)
    (change,) = look(ledger, config).changes
    assert words in change.words
    assert "SECRET" not in change.words
    assert change.name not in names(ledger, config)
    assert names(ledger, config) == ([] if "ops" in change.name else ["ops"])


@pytest.mark.criterion("O04", "G20")
def test_nothing_starts_from_a_file_that_a_live_run_may_have_written_whatever_it_says(
    ledger: Ledger, tree: Path
):
    settle(ledger, settings(tree, OPS))
    ticket = under_way(ledger, tree)
    later()
    config = settings(tree, f"{OPS}[defaults]\nmax_attempts = 1\n")
    assert names(ledger, config) == ["ops"]
    (warning,) = look(ledger, config).warnings
    assert ticket.run in warning
    assert doubts(ledger) == []
    for _ in range(2):
        with pytest.raises(Refused, match=ticket.run):
            check(ledger, config)
    with pytest.raises(Refused):
        settle(ledger, config)
    assert doubts(ledger) == [warning]
    other = tree.parent / "other.toml"
    other.write_text("")
    check(ledger, loaded(tree, str(other)))
    trust(ledger, config, actor=OPERATOR)
    check(ledger, config)
    assert settle(ledger, config) == config


@pytest.mark.criterion("O04")
def test_whoever_works_elsewhere_keeps_nobody_from_writing_settings(ledger: Ledger, tree: Path):
    settle(ledger, settings(tree, ""))
    under_way(ledger, tree.parent / "elsewhere")
    later()
    config = settings(tree, "[defaults]\nmax_attempts = 1\n")
    check(ledger, config)
    assert settle(ledger, config) == config


@pytest.mark.criterion("O04")
def test_settings_of_another_folder_are_doubted_if_they_were_written_in_a_runs_life(
    ledger: Ledger, tree: Path
):
    config = settings(tree, OPS)
    elsewhere = tree.parent / "elsewhere"
    worked(ledger, elsewhere, same=None)
    settle(ledger, config)
    live = under_way(ledger, elsewhere)
    later()
    check(ledger, config)
    (tree / "truegreen.toml").write_text(EVIL)
    for _ in range(2):
        with pytest.raises(Refused, match=live.run):
            settle(ledger, loaded(tree))
        later()
        ledger.terminate(live.task, actor=OPERATOR, reason="x")
    later()
    trust(ledger, loaded(tree), actor=OPERATOR)
    assert settle(ledger, settings(tree, OPS)).contents.notify


@pytest.mark.criterion("O04")
def test_what_a_run_kept_for_later_is_not_trusted_when_it_is_moved_in(ledger: Ledger, tree: Path):
    kept = tree.parent / "kept"
    kept.mkdir()
    ticket = worked(ledger, kept, same=None, writes=EVIL)
    settle(ledger, settings(tree, OPS))
    worked(ledger, tree.parent, same=None)
    tree.rename(tree.parent / "old")
    kept.rename(tree)
    assert names(ledger, loaded(tree)) == []
    with pytest.raises(Refused, match=ticket.run):
        settle(ledger, loaded(tree))


def test_a_file_that_was_taken_away_is_doubted_too(ledger: Ledger, tree: Path):
    config = settings(tree, OPS)
    file = str(config.file)
    ticket = worked(ledger, tree, same=False)
    ledger.doubt(ticket.run, file, "removed")
    (tree / "truegreen.toml").unlink()
    gone = loaded(tree)
    assert gone.file is None
    with pytest.raises(Refused, match=ticket.run):
        check(ledger, gone)
    trust(ledger, gone, actor=OPERATOR)
    check(ledger, gone)


# --- what a command runs


def script(tree: Path, text: str) -> str:
    """Settings whose outlet runs a script in the tree."""
    (tree / "notify.sh").write_text(text)
    return f'[[notify]]\nname = "ops"\ncommand = ["sh", "{tree / "notify.sh"}"]\n'


@pytest.mark.criterion("O04")
def test_a_script_that_a_run_wrote_is_not_run(ledger: Ledger, tree: Path):
    settle(ledger, settings(tree, script(tree, "honest")))
    worked(ledger, tree, same=True, writes="evil", into=tree / "notify.sh")
    config = loaded(tree)
    assert names(ledger, config) == []
    (change,) = look(ledger, config).changes
    assert str(tree / "notify.sh") in change.words
    with pytest.raises(Refused):
        settle(ledger, config)
    trust(ledger, config, actor=OPERATOR)
    assert names(ledger, config) == ["ops"]


@pytest.mark.parametrize("inside", [True, False], ids=["in its tree", "elsewhere"])
def test_a_script_that_changed_after_a_run_is_doubted_only_where_that_worked(
    ledger: Ledger, tree: Path, inside: bool
):
    config = settings(tree, script(tree, "honest"))
    worked(ledger, tree, same=True)
    settle(ledger, config)
    worked(ledger, tree if inside else tree.parent / "elsewhere", same=True)
    script(tree, "other")
    assert names(ledger, config) == ([] if inside else ["ops"])


def test_a_script_is_doubted_if_it_changed_in_the_life_of_a_run_elsewhere(
    ledger: Ledger, tree: Path
):
    config = settings(tree, script(tree, "honest"))
    settle(ledger, config)
    worked(ledger, tree.parent / "x", same=None, writes="evil", into=tree / "notify.sh")
    assert names(ledger, config) == []


def test_files_of_a_command_are_those_that_it_names(tmp_path: Path):
    (tmp_path / "sh").write_text("program")
    (tmp_path / "a").write_text("a")
    (tmp_path / "big").write_bytes(b"x" * ((1 << 20) + 1))
    home = {"HOME": str(tmp_path)}
    named = files_of(["sh", "a", "big", "none", "\0", str(tmp_path)], home)
    assert list(named) == [str(tmp_path / "a")]
    assert list(files_of(["./sh"], home)) == [f"{tmp_path}/./sh"]


@pytest.mark.criterion("O04")
def test_a_script_that_changes_while_outlets_are_at_work_is_not_run(tmp_path: Path):
    file, ran = tmp_path / "notify.sh", tmp_path / "ran"
    file.write_text("true")
    way = Command(Notify(name="x", command=("sh", str(file))), {"PATH": "/usr/bin:/bin"})
    assert not way.deliver("pst_1", "{}", {"type": "x"}).trouble
    file.write_text(f"touch {ran}")
    assert "outlets trust" in way.deliver("pst_1", "{}", {"type": "x"}).trouble
    assert not ran.exists()


@pytest.mark.criterion("O03", "O04")
def test_an_operator_trusts_it_and_it_is_used(ledger: Ledger, tree: Path):
    settle(ledger, settings(tree, OPS))
    worked(ledger, tree, same=False)
    config = settings(tree, OPS + EVIL)
    with pytest.raises(Refused):
        settle(ledger, config)
    assert [change.name for change in trust(ledger, config, actor=OPERATOR).changes] == [
        "notify.evil"
    ]
    assert names(ledger, config) == ["ops", "evil"]
    assert doubts(ledger) == []
    assert settle(ledger, config) == config
    pin = ledger.pin(str(config.file))
    assert pin
    assert pin.actor == "system:truegreen"


def test_settings_without_a_file_reach_nowhere_and_need_no_trust(ledger: Ledger, tmp_path: Path):
    environ = {"HOME": str(tmp_path), "TRUEGREEN_STORE": str(tmp_path / "s.db")}
    config = load_config(environ, str(tmp_path))
    assert config.file is None
    assert settle(ledger, config) == config
    assert trust(ledger, config, actor=OPERATOR).changes == ()
