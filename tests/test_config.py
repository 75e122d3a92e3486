"""The effective settings: where the store and the file are, and where each value came from."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from tests.test_contract_file import EXAMPLE
from truegreen.config import STORE_FORMS, Config, load_config, masked_words, redacted_url, store_url
from truegreen.contract import Budget, Caps, ConfigFile, Contract, plain
from truegreen.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

FILE = "[defaults]\nmax_attempts = 2\ncaps = { turns = 5 }\n[tasks.a]\nmode = 'assisted'\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A working directory below a home directory."""
    folder = tmp_path / "home" / "work" / "deep"
    folder.mkdir(parents=True)
    return folder


def load(place: Path, **options: Any) -> Config:
    environ = {"HOME": str(place.parents[1]), **options.pop("environ", {})}
    return load_config(environ, str(place), **options)


# --- the store


def test_the_default_store_is_under_the_state_directory(place: Path):
    home = place.parents[1]
    config = load(place)
    assert config.store == f"sqlite://{home}/.local/state/truegreen/truegreen.db"
    assert config.state_dir == f"{home}/.local/state/truegreen"
    assert config.sources["store"] == "built in, under $HOME"
    assert not (home / ".local").exists()


def test_xdg_state_home_comes_before_home_unless_it_is_relative(place: Path):
    config = load(place, environ={"XDG_STATE_HOME": "/xdg"})
    assert config.store == "sqlite:///xdg/truegreen/truegreen.db"
    assert config.sources["store"] == "built in, under $XDG_STATE_HOME"
    assert "/.local/state/" in load(place, environ={"XDG_STATE_HOME": "xdg"}).store


def test_the_option_comes_before_the_environment_before_the_default(place: Path):
    environ = {"TRUEGREEN_STORE": "/env.db"}
    assert load(place, environ=environ).store == "sqlite:///env.db"
    assert load(place, environ=environ).sources["store"] == "$TRUEGREEN_STORE"
    both = load(place, environ=environ, store="/option.db")
    assert (both.store, both.sources["store"]) == ("sqlite:///option.db", "--store")
    assert load(place, environ={"TRUEGREEN_STORE": ""}).sources["store"].startswith("built in")


@each_row(
    ("text", "url"),
    [
        ("sqlite:///a/b.db", "sqlite:///a/b.db"),
        ("sqlite:////a/../b.db", "sqlite:///b.db"),
        ("/a/b.db", "sqlite:///a/b.db"),
        ("b.db", "sqlite:///cwd/b.db"),
        ("../b.db", "sqlite:///b.db"),
        ("./a:b.db", "sqlite:///cwd/a:b.db"),
        ("~/b.db", "sqlite:///home/b.db"),
        ("a b%20é.db", "sqlite:///cwd/a b%20é.db"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
        ("postgres://u:p@h:5/d?x=y", "postgresql://u:p@h:5/d?x=y"),
        ("postgresql:///d?host=/run", "postgresql:///d?host=/run"),
    ],
)
def test_a_store_has_one_form(text, url):
    assert store_url(text, "/cwd", "/home") == url
    assert store_url(url, "/elsewhere") == url


@pytest.mark.parametrize(
    "text",
    [
        "mysql://u:secret@h/d",
        "sqlite://relative.db",
        "sqlite:x.db",
        ":memory:",
        "sqlite:///x.db?mode=ro",
        "x.db?mode=ro",
        "/",
        "folder/",
        ".",
        "http://u:secret@h",
        "a\0b",
        "\ud800",
        "x" * 5000,
    ],
)
def test_what_is_no_store_is_refused_without_its_password(place: Path, text):
    with pytest.raises(InvalidInput) as caught:
        load(place, store=text)
    assert caught.value.message.startswith("--store: ")
    assert "secret" not in caught.value.message
    if caught.value.allowed:
        assert caught.value.allowed == STORE_FORMS
        assert STORE_FORMS[0] in caught.value.message


def test_without_a_home_the_refusal_says_what_to_set(place: Path):
    for environ in ({}, {"HOME": ""}, {"HOME": "relative"}):
        with pytest.raises(InvalidInput, match=r"set TRUEGREEN_STORE .*XDG_STATE_HOME or HOME"):
            load_config(environ, str(place))
    config = load_config({}, str(place), store="/data/x.db")
    assert (config.state_dir, config.sources["state_dir"]) == ("/data", "beside the store")
    with pytest.raises(InvalidInput, match="logs and reports: set XDG_STATE_HOME or HOME"):
        load_config({}, str(place), store="postgresql://h/d")


def test_a_store_inside_the_workspace_is_warned_of(place: Path):
    (place.parent / ".git").mkdir()
    assert load(place).warnings == ()
    inside = load(place, store="x.db").warnings
    assert len(inside) == 1
    assert "is inside the workspace" in inside[0]
    assert load(place, store=f"{place.parents[1]}/x.db").warnings == ()
    assert load(place, store=f"{place.parent}-other/x.db").warnings == ()
    assert load(place, store="postgresql://h/d").warnings == ()
    (place.parents[1] / "link").symlink_to(place)
    assert load(place, store=f"{place.parents[1]}/link/x.db").warnings != ()


PASSWORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=6).map(
    lambda text: f"<{text}>"
)


@given(PASSWORDS)
def test_no_password_is_ever_shown(password):
    assert password not in redacted_url(f"postgresql://user:{password}@host/db")
    assert password not in redacted_url(f"postgresql://user:{password}@host:5432/db?a=b")
    quoted = password.replace("&", "")
    assert quoted not in redacted_url(f"postgresql://host/db?user=u&password={quoted}&a=b")
    assert quoted not in redacted_url(f"postgresql:///db?sslpassword={quoted}")


@each_row(
    ("url", "shown"),
    [
        ("postgresql://u:p@h:5/d", "postgresql://u:***@h:5/d"),
        ("postgresql://u@h:5/d", "postgresql://u@h:5/d"),
        ("postgresql://h:5/d?password=p&a=b", "postgresql://h:5/d?password=***&a=b"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_the_rest_of_an_address_is_shown(url, shown):
    assert redacted_url(url) == shown


# --- the file


def test_the_file_is_found_upward(place: Path):
    assert load(place).file is None
    (place.parent / "truegreen.toml").write_text(FILE)
    config = load(place)
    assert config.file == f"{place.parent}/truegreen.toml"
    assert config.sources["file"] == f"found upward from {place}"
    assert config.contents.contract("a").budget.attempts == 2
    (place / "truegreen.toml").write_text("")
    assert load(place).file == f"{place}/truegreen.toml"


def test_a_named_file_comes_before_the_found_one(place: Path):
    (place / "truegreen.toml").write_text("nonsense")
    (place / "other.toml").write_text(FILE)
    by_option = load(place, config="other.toml", environ={"TRUEGREEN_CONFIG": "missing"})
    assert (by_option.file, by_option.sources["file"]) == (f"{place}/other.toml", "--config")
    by_environment = load(place, environ={"TRUEGREEN_CONFIG": f"{place}/other.toml"})
    assert by_environment.sources["file"] == "$TRUEGREEN_CONFIG"


def test_a_named_file_that_is_missing_is_refused(place: Path):
    (place / "truegreen.toml").write_text(FILE)
    with pytest.raises(InvalidInput, match=r"missing\.toml: can't be read: No such file"):
        load(place, config="missing.toml")
    with pytest.raises(InvalidInput, match=r"missing\.toml: can't be read: No such file"):
        load(place, environ={"TRUEGREEN_CONFIG": "missing.toml"})


def test_a_folder_a_pipe_and_a_dangling_link_are_refused(place: Path):
    file = place / "truegreen.toml"
    file.mkdir()
    with pytest.raises(InvalidInput, match=r"truegreen\.toml: is not a regular file"):
        load(place)
    file.rmdir()
    os.mkfifo(file)
    with pytest.raises(InvalidInput, match=r"truegreen\.toml: is not a regular file"):
        load(place)
    file.unlink()
    file.symlink_to("nowhere")
    with pytest.raises(InvalidInput, match=r"truegreen\.toml: can't be read: No such file"):
        load(place)


def test_an_unreadable_file_is_refused(place: Path):
    (place / "truegreen.toml").symlink_to("truegreen.toml")
    with pytest.raises(InvalidInput, match="can't be read: Too many levels of symbolic links"):
        load(place)


def test_a_file_without_end_is_refused(place: Path):
    (place / "truegreen.toml").write_text("#" * (4 * 1024 * 1024 + 1))
    with pytest.raises(InvalidInput, match="has more than 4194304 bytes"):
        load(place)


def test_a_mistake_in_the_file_names_the_file(place: Path):
    (place / "truegreen.toml").write_text("[tasks.a]\ngatez = []")
    with pytest.raises(InvalidInput) as caught:
        load(place)
    start = f"{place}/truegreen.toml: tasks.a.gatez: unknown key; did you mean"
    assert caught.value.message.startswith(start)
    (place / "truegreen.toml").write_bytes(b"\xff")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        load(place)


def test_a_file_of_another_user_is_warned_of(place: Path, monkeypatch: pytest.MonkeyPatch):
    (place / "truegreen.toml").write_text("")
    assert load(place).warnings == ()
    theirs = SimpleNamespace(getuid=lambda: 4242, stat=lambda _: SimpleNamespace(st_uid=4243))
    monkeypatch.setattr("truegreen.config.os", theirs)
    assert "belongs to another user" in " ".join(load(place).warnings)


# --- what is in force


@pytest.mark.criterion("P09")
def test_the_effective_settings_are_printable_with_every_default_and_its_source(place: Path):
    (place / "truegreen.toml").write_text(FILE)
    config = load(place)
    shown = config.describe()["settings"]
    file = f"{place}/truegreen.toml"
    assert json.loads(json.dumps(shown)) == shown
    assert shown["defaults.caps.turns"] == {"value": 5, "source": file}
    assert shown["defaults.caps.time"] == {"value": "2h", "source": "built in"}
    assert shown["defaults.budget.attempts"] == {"value": 2, "source": file}
    assert shown["defaults.mode"] == {"value": "autonomous", "source": "built in"}
    assert shown["tasks.a.mode"] == {"value": "assisted", "source": file}
    assert shown["tasks.a.caps.turns"] == {"value": 5, "source": file}
    assert shown["tasks.a.caps.idle"] == {"value": "15m", "source": "built in"}
    assert shown["qa.roles"] == {"value": ["coder", "product"], "source": "built in"}


@pytest.mark.criterion("P09")
def test_without_a_file_the_built_in_contract_is_what_is_shown(place: Path):
    shown = load(place).describe()["settings"]
    built_in = plain(Contract(title="any"))
    for part, kind in (("caps", Caps), ("budget", Budget)):
        for name in kind.__struct_fields__:
            entry = {"value": built_in[part][name], "source": "built in"}
            assert shown[f"defaults.{part}.{name}"] == entry
    for name in ("mode", "isolation", "rescue", "retry", "priority", "labels", "approvals"):
        assert shown[f"defaults.{name}"] == {"value": built_in[name], "source": "built in"}


def test_everything_in_the_file_is_shown(place: Path):
    (place / "truegreen.toml").write_text(EXAMPLE)
    config = load(place)
    shown = config.describe()["settings"]
    said = {key for key in config.sources if key not in shown}
    tables = {key for key in said if any(other.startswith(f"{key}.") for other in shown)}
    assert said - tables == {"defaults.max_attempts"} | {
        key for key in said if key.startswith("routines.cycle.repeat.")
    }
    assert shown["defaults.budget.attempts"]["source"] == config.file


def test_nothing_secret_is_shown(place: Path):
    text = """
    [gates.a]
    command = ["x"]
    env = { TOKEN = "hush" }
    [gates.b]
    kind = "http"
    url = "http://u:hush@localhost:80/health"
    [[notify]]
    url = "slack://hush/hush"
    [[notify]]
    webhook = "https://hooks.example/hush"
    [[notify]]
    webhook = "https://user:hush@hooks.example"
    """
    (place / "truegreen.toml").write_text(text)
    shown = load(place, store="postgresql://u:hush@h/d").describe()
    assert "hush" not in json.dumps(shown)
    notify = shown["settings"]["notify"]["value"]
    assert notify[0]["url"] == "slack://***"
    assert notify[1]["webhook"] == "https://hooks.example/***"
    assert shown["settings"]["gates.b.url"]["value"] == "http://u:***@localhost:80/health"


@pytest.mark.criterion("O05", "P09")
@each_row(
    ("words", "shown"),
    [
        (["-H", "Authorization: Basic aHVzaDpIVVNI=="], ["-H", "Authorization: ***"]),
        (["-HAuthorization: Bearer HUSH HUSH"], ["-HAuthorization: ***"]),
        (["X-Api-Key: HUSH"], ["X-Api-Key: ***"]),
        (["Cookie: a=b; session=HUSH"], ["Cookie: ***"]),
        (["Private-Token:HUSH"], ["Private-Token:***"]),
        (
            ["sh", "-c", "curl -H 'Authorization: Bearer HUSH' https://ci.example/x"],
            ["sh", "-c", "curl -H 'Authorization: ***' https://ci.example/x"],
        ),
        (
            ["""curl -H "Authorization: Bearer \\"HUSH HUSH\\""'HUSH' http://u:HUSH@a/b"""],
            ["""curl -H "Authorization: ***" http://u:***@a/b"""],
        ),
        (["curl -H Authorization:HUSH HUSH"], ["curl -H Authorization:***"]),
        (["-d", """{"password": "HUSH", "a": 1}"""], ["-d", """{"password": ***"""]),
        (["curl", "-u", "bob:HUSH:HUSH", "a"], ["curl", "-u", "bob:***", "a"]),
        (["curl", "-ubob:HUSH"], ["curl", "-ubob:***"]),
        (["curl", "--user", "bob:HUSH HUSH"], ["curl", "--user", "bob:***"]),
        (["curl", "--user=bob:HUSH"], ["curl", "--user=bob:***"]),
        (["curl -u bob:HUSH a"], ["curl -u bob:*** a"]),
        (["curl --user 'bob:HUSH HUSH' a"], ["curl --user 'bob:***' a"]),
        (["psql", "--password", "HUSH", "a"], ["psql", "--password", "***", "a"]),
        (["x", "--api-key=HUSH HUSH"], ["x", "--api-key=***"]),
        (["x --token HUSH --a b"], ["x --token *** --a b"]),
        (["x --api-key 'HUSH HUSH' b"], ["x --api-key *** b"]),
        (["cd a && PGPASSWORD='HUSH HUSH' psql b"], ["cd a && PGPASSWORD=*** psql b"]),
        (["sshpass", "-p", "HUSH", "ssh"], ["sshpass", "-p", "***", "ssh"]),
        (["/usr/bin/mysql", "-pHUSH", "db"], ["/usr/bin/mysql", "-p***", "db"]),
        (["a; sshpass -p HUSH ssh"], ["a; sshpass -p *** ssh"]),
        (["openssl", "-passin", "pass:HUSH"], ["openssl", "-passin", "***"]),
        (["bash -c \"curl -u 'bob:HUSH' a\" b"], ["bash -c \"curl -u 'bob:***' a\" b"]),
        (["docker", "login", "-p", "HUSH"], ["docker", "login", "-p", "***"]),
        (["git clone https://HUSHHUSHHUSHHUSH@host/a"], ["git clone https://***@host/a"]),
        (["curl https://a/?sig=HUSH&b=HUSH -s"], ["curl https://a/?*** -s"]),
    ],
)
def test_a_command_is_shown_without_what_it_opens_doors_with(words, shown):
    assert masked_words(words) == shown


@each_row(
    "words",
    [
        ["python", "-u", "-m", "pytest", "-p", "no:cacheprovider", "tests/a.py::TestToken::test"],
        ["docker", "run", "-p", "80:80", "--user-agent", "a", "busybox:1.2"],
        ["sh", "-c", "cd a && make -j2 'a b' | tee log; id -u bob"],
        ["curl", "http://localhost:80/health", "git@host:a/b.git", "ssh://git@host/a"],
    ],
)
def test_a_command_without_secrets_is_shown_as_it_is(words):
    assert masked_words(words) == words


def test_a_name_with_dots_has_its_own_source(place: Path):
    (place / "truegreen.toml").write_text(
        '[defaults]\nmode = "assisted"\n[tasks."a.b"]\nrole = "x"'
    )
    shown = load(place).describe()["settings"]
    assert shown["tasks.a.b.mode"] == {"value": "assisted", "source": f"{place}/truegreen.toml"}
    assert shown["tasks.a.b.role"]["source"] == f"{place}/truegreen.toml"
    assert shown["tasks.a.b.isolation"]["source"] == "built in"


def test_no_table_of_the_settings_is_left_out_of_what_is_shown(place: Path):
    (place / "truegreen.toml").write_text(
        '[queue]\nserial_roles = ["deploy"]\n[[limits]]\nper = "day"\nruns = 3\n'
        "[breakers]\nagent = { after = 3 }\n[gateway]\nenabled = false\n"
        '[heartbeat]\ncommand = ["alive"]\n[github]\nrepository = "a/b"\ntoken_env = "T"\n'
        '[otel]\nendpoint = "https://o.example.org"\n'
    )
    shown = load(place).describe()["settings"]
    tables = {key.partition(".")[0] for key in shown}
    named = {"tasks", "agents", "gates", "evaluators", "routines"}
    assert set(ConfigFile.__struct_fields__) - named - tables == set()
    assert shown["breakers.agent"]["value"]["after"] == 3
    assert shown["limits"]["value"][0]["runs"] == 3
