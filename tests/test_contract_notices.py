"""`[[notify]]`, `[github]`, `[otel]`: what they take, what they refuse, what they never show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table import each_row
from truegreen.config import load_config
from truegreen.contract import DEFAULT_NEWS, As, Tls, outlet_names, read_toml
from truegreen.errors import InvalidInput

MAIL = 'host = "m", from = "a@b", to = ["c@d"]'


@each_row(
    ("text", "words"),
    [
        ('[[notify]]\nurl = "a://b"\nwebhook = "https://x"', "notify[0].url: a notification has"),
        ('[[notify]]\ncommand = [" "]', "notify[0].command[0]: is empty"),
        ('[[notify]]\nwebhook = "https://x\\ny"', "notify[0].webhook: contains a blank"),
        ('[[notify]]\nmail = { host = "m", from = "a", to = ["c@d"] }', "notify[0].mail.from"),
        ('[[notify]]\nmail = { host = "m", from = "a@b", to = [] }', "mail.to: names nobody"),
        ('[[notify]]\nmail = { host = "m", from = "a@b", to = ["c@d\\nBcc: e@f"] }', "mail.to[0]"),
        (f'[[notify]]\nmail = {{ {MAIL}, user = "u" }}', "a user has a password"),
        (
            f'[[notify]]\nmail = {{ {MAIL}, user = "u", password_env = "P", tls = "none" }}',
            "a password is not sent in the clear",
        ),
        (f"[[notify]]\nmail = {{ {MAIL}, port = 0 }}", "notify[0].mail.port"),
        (
            '[[notify]]\nname = "x"\nurl = "a://b"\n' * 2,
            'notify[1].name: something else is called "x"',
        ),
        ('[[notify]]\nname = "github"\nurl = "a://b"', "notify[0].name"),
        ('[github]\nrepository = "nobody"', "github.repository: expected owner/name"),
        ('[github]\nrepository = "../../x/y"', "github.repository: expected owner/name"),
        ('[github]\ntoken_env = "a b"', "github.token_env"),
        ('[github]\napi = "ftp://x"', "github.api: expected an address"),
        ('[github]\nas = "both"', "github.as"),
        ('[otel]\nendpoint = "127.0.0.1"', "otel.endpoint: expected an address"),
        ('[otel]\nheaders = "x"', "otel.headers"),
    ],
)
def test_what_can_not_work_is_refused_with_its_place(text: str, words: str):
    with pytest.raises(InvalidInput) as caught:
        read_toml(text, "truegreen.toml")
    assert words in caught.value.message


def test_what_is_left_out_has_a_default():
    file = read_toml(f"[[notify]]\nmail = {{ {MAIL} }}\n[github]\n[otel]", "truegreen.toml")
    (notice,) = file.notify
    assert notice.mail
    assert (notice.mail.port, notice.mail.tls, notice.mail.sender) == (587, Tls.STARTTLS, "a@b")
    assert notice.on == DEFAULT_NEWS
    assert not notice.allow_private
    assert file.github
    assert (file.github.token_env, file.github.as_) == ("GITHUB_TOKEN", As.AUTO)
    assert file.otel
    assert file.otel.endpoint == "http://127.0.0.1:4318"


def test_without_a_section_there_is_no_outlet():
    file = read_toml("", "truegreen.toml")
    assert (file.notify, file.github, file.otel) == ((), None, None)


def test_an_entry_is_called_what_it_says_or_by_its_way_and_address():
    one, two = '[[notify]]\nwebhook = "https://x"\n', '[[notify]]\nwebhook = "https://y"\n'
    ops = '[[notify]]\nname = "ops"\ncommand = ["page"]\n'
    first, second, named = outlet_names(read_toml(one + two + ops, "x").notify)
    assert (first[:8], second[:8], named) == ("webhook-", "webhook-", "ops")
    assert first != second
    assert outlet_names(read_toml(ops + two + one, "x").notify) == ("ops", second, first)
    assert outlet_names(read_toml(two, "x").notify) == (second,)
    louder = one + 'on = ["succeeded"]\nsecret_env = "S"\n'
    assert outlet_names(read_toml(louder, "x").notify) == (first,)


@each_row(
    "entry",
    ['url = "a://b"', 'command = ["page"]', f"mail = {{ {MAIL} }}"],
    ids=["url", "cmd", "m"],
)
def test_two_nameless_entries_to_one_address_are_asked_for_a_name(entry: str):
    text = f"[[notify]]\n{entry}\n"
    with pytest.raises(InvalidInput, match=r"notify\[1\]\.name: .*the same address: give this one"):
        read_toml(text * 2, "x")
    assert len(outlet_names(read_toml(f'{text}{text}name = "second"\n', "x").notify)) == 2


@pytest.mark.criterion("P09")
def test_the_settings_in_force_show_everything_but_keys(tmp_path: Path):
    (tmp_path / "truegreen.toml").write_text(
        '[[notify]]\ncommand = ["page", "--key", "SECRET"]\n[github]\n[otel]\n'
    )
    environ = {"HOME": str(tmp_path), "TRUEGREEN_STORE": str(tmp_path / "s.db")}
    shown = load_config(environ, str(tmp_path)).describe()["settings"]
    assert shown["notify"]["value"][0]["command"] == ["page", "***"]
    assert shown["github.token_env"]["value"] == "GITHUB_TOKEN"
    assert shown["otel.service"]["value"] == "truegreen"
    assert "SECRET" not in str(shown)


@pytest.mark.criterion("P09")
def test_no_address_and_no_command_shows_its_secret(tmp_path: Path):
    (tmp_path / "truegreen.toml").write_text(
        """
        [agents.x]
        command = ["curl", "-H", "Authorization: Bearer ONE", "--token", "TWO", "{goal}"]
        [gates.g]
        command = ["env", "API_KEY=THREE", "curl", "https://me:FOUR@host/x?k=FIVE"]
        [gates.h]
        kind = "http"
        url = "https://me:SIX@host/health?token=SEVEN"
        [evaluators.e]
        model = "openai:m"
        base_url = "https://me:EIGHT@host/v1?x=NINE"
        [tasks.t]
        command = ["work", "--password=TEN"]
        [otel]
        endpoint = "https://me:ELEVEN@host/v1?key=TWELVE"
        [github]
        api = "https://me:THIRTEEN@host/api?q=FOURTEEN"
        """
    )
    environ = {"HOME": str(tmp_path), "TRUEGREEN_STORE": str(tmp_path / "s.db")}
    settings = load_config(environ, str(tmp_path)).describe()["settings"]
    shown = str(settings)
    numbers = "ONE TWO THREE FOUR FIVE SIX SEVEN EIGHT NINE TEN ELEVEN TWELVE THIRTEEN FOURTEEN"
    assert [word for word in numbers.split() if word in shown] == []
    agent = settings["agents.x.command"]["value"]
    assert agent == ["curl", "-H", "Authorization: ***", "--token", "***", "{goal}"]
    gate = settings["gates.g.command"]["value"]
    assert gate == ["env", "API_KEY=***", "curl", "https://me:***@host/x?***"]
    assert settings["otel.endpoint"]["value"] == "https://me:***@host/v1?***"
