"""`[web]`, who finds a server that runs, and how a server ends: the parts, without a command."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.faces.conftest import Furnished, Run
from tests.table import each_row
from truegreen.config import Config, load_config
from truegreen.contract.web import Web
from truegreen.errors import InvalidInput, Unavailable
from truegreen.faces.cli.signals import Ending
from truegreen.faces.web import serving
from truegreen.faces.web.doorplate import Plate, hung_out, plates
from truegreen.faces.web.house import Address
from truegreen.faces.web.serving import Serving, addressed, is_loopback, listening
from truegreen.model import Role
from truegreen.record.ledger import open_ledger
from truegreen.supervisor.holder import holder_name

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens there

# --- the settings


def configured(tmp_path: Path, text: str) -> Config:
    (tmp_path / "truegreen.toml").write_text(text)
    return load_config(os.environ, str(tmp_path))


def test_what_web_says_is_shown_with_its_source(tmp_path: Path):
    config = configured(tmp_path, '[web]\nport = 9000\nhosts = ["Green.example.org"]\n')
    settings = config.describe()["settings"]
    assert settings["web.port"] == {"value": 9000, "source": str(tmp_path / "truegreen.toml")}
    assert settings["web.hosts"]["value"] == ["green.example.org"]
    assert settings["web.url"] == {"value": "", "source": "built in"}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("port = 65536", "web.port"),
        ("port = -1", "web.port"),
        ("port = true", "web.port"),
        ('hosts = ["https://green.example.org"]', "web.hosts[0]"),
        ('hosts = ["fine", ""]', "web.hosts[1]"),
        ('hosts = ["a b"]', "web.hosts[0]"),
        ('url = "green.example.org"', "web.url"),
        ('url = "https://green.example.org/sub"', "web.url"),
        ('url = "https://user:pass@green.example.org"', "web.url"),
        ('host = "0.0.0.0"', "web.host"),
    ],
)
def test_a_wrong_word_in_web_is_refused_with_its_path(text: str, path: str, tmp_path: Path):
    with pytest.raises(InvalidInput) as refused:
        configured(tmp_path, f"[web]\n{text}\n")
    assert refused.value.details["path"] == path


def test_requests_may_name_the_interface_and_what_was_set_and_nothing_else():
    web = Web(hosts=("proxy.example.org", "other:444"), url="https://green.example.org/")
    assert addressed(Address("127.0.0.1", 81), Web()).hosts == {
        "127.0.0.1:81",
        "localhost:81",
        "[::1]:81",
    }
    assert addressed(Address("192.0.2.7", 81), web).hosts == {
        "192.0.2.7:81",
        "proxy.example.org",
        "proxy.example.org:81",
        "other:444",
        "green.example.org",
        "green.example.org:81",
    }


@each_row("everywhere", [EVERYWHERE, "::"])
def test_whoever_listens_everywhere_is_called_by_names_that_were_set_or_from_here(everywhere: str):
    address = addressed(Address(everywhere, 81), Web(hosts=("green.example.org",)))
    assert address.url == "http://127.0.0.1:81"
    assert {"127.0.0.1:81", "localhost:81", "green.example.org:81"} <= address.hosts
    assert not {host for host in address.hosts if everywhere in host and "[" not in host}


@each_row(
    ("host", "is_safe"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        (EVERYWHERE, False),
        ("::", False),
        ("192.168.0.1", False),
        ("example.org", False),
        ("localhost.example.org", False),
    ],
)
def test_only_this_machine_reaches_a_loopback_address(host: str, is_safe: bool):
    assert is_loopback(host) is is_safe


# --- who is found


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load_config(os.environ, str(tmp_path))


def test_a_server_is_found_while_it_is_there(config: Config, tmp_path: Path):
    assert plates(config) == []
    with hung_out(config, "http://127.0.0.1:1", schedules=True) as plate:
        assert plates(config) == [plate]
        assert (plate.pid, plate.schedules) == (os.getpid(), True)
        (file,) = Path(config.state_dir, "web").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        other = load_config(os.environ, str(tmp_path), store=str(tmp_path / "other.db"))
        assert plates(other) == [], "it serves another store"
    assert plates(config) == []


def written(config: Config, name: str, text: bytes) -> Path:
    with hung_out(config, "http://127.0.0.1:1", schedules=False) as plate:
        file = Path(config.state_dir, "web", f"{plate.store}-{name}.json")
        file.write_bytes(text or msgspec.json.encode(plate))
    return file


def test_what_a_killed_server_left_counts_for_nothing_and_is_taken_away(config: Config):
    with subprocess.Popen(["true"]) as dead:
        dead.wait()
    *rest, boot, _, start = holder_name().split("/")
    holder = "/".join([*rest, boot, str(dead.pid), start])
    plate = Plate(store="", url="http://127.0.0.1:2", holder=holder)
    file = written(config, "dead", msgspec.json.encode(plate))
    assert plates(config) == []
    assert not file.exists()


def test_nobody_can_say_of_another_machine_whether_its_server_lives(config: Config):
    plate = Plate(store="", url="http://127.0.0.1:2", holder="elsewhere/1/boot/1/1")
    file = written(config, "far", msgspec.json.encode(plate))
    assert plates(config) == []
    assert file.exists()


@pytest.mark.parametrize("text", [b"{", b'{"store": 1}', b"[]", b"\xff"])
def test_what_can_not_be_read_is_no_server(text: bytes, config: Config):
    written(config, "odd", text)
    assert plates(config) == []


# --- login


def test_a_login_needs_a_server_that_runs_or_an_address(tg: Run, furnished: Furnished):
    answer = tg("login", "--json")
    assert answer.status == 2
    assert answer.error("not_found")["allowed"][0] == "truegreen up"
    assert "next: truegreen up\n" in tg("login").err


@contextmanager
def answering(body: str) -> Iterator[int]:
    """A server that says this whenever it is asked how it is."""

    async def say(_: Request) -> Response:
        return PlainTextResponse(body)

    listener, address = listening("127.0.0.1", 0)
    made = Serving(Starlette(routes=[Route("/api/v1/healthz", say)]), listener)
    made.start()
    try:
        yield address.port
    finally:
        made.stop()


def test_no_link_leads_to_where_nobody_or_somebody_else_answers(tg: Run, furnished: Furnished):
    with socket.create_server(("127.0.0.1", 0)) as line:
        port = line.getsockname()[1]
    with answering("<h1>another server</h1>") as other:
        for number in (port, other):
            answer = tg("login", "--port", str(number))
            assert (answer.status, answer.out) == (2, "")
            assert f"no truegreen answers on port {number}" in answer.err
            assert "next: truegreen up\n" in answer.err


@pytest.mark.parametrize(
    ("words", "role"), [([], Role.OPERATOR), (["--viewer"], Role.VIEWER)], ids=["all", "look"]
)
def test_a_login_link_opens_one_session_of_its_role_once(
    words: list[str], role: Role, tg: Run, furnished: Furnished
):
    with answering('{"status":"ok"}\n') as port:
        document = tg("login", "--port", str(port), "--json", *words).json()
    assert document.keys() == {"login", "url", "role", "seconds"}
    url, _, code = document["login"].rpartition("/login/")
    assert (url, document["role"]) == (f"http://127.0.0.1:{port}", role)
    ledger = open_ledger(furnished.url)
    token, secret = ledger.log_in(code)
    assert ledger.authenticate(secret, kind="session").role is token.role is role
    with pytest.raises(Exception, match="was used"):
        ledger.log_in(code)
    ledger.close()


def test_the_link_stands_alone_on_stdout(tg: Run, furnished: Furnished, tmp_path: Path):
    (tmp_path / "truegreen.toml").write_text('[web]\nurl = "https://green.example.org"\n')
    assert tg("outlets", "trust").status == 0  # there are runs under way
    answer = tg("login")
    assert answer.out.startswith("https://green.example.org/login/tg_login_")
    assert answer.out.count("\n") == 1
    assert "10 minutes" in answer.err


def test_an_agent_logs_nobody_in(tg: Run, furnished: Furnished):
    for words in (["login", "--port", "1"], ["up", "--port", "0"], ["web", "--port", "0"]):
        answer = tg(*words, "--json", TRUEGREEN_RUN="run_0")
        assert (answer.status, answer.error("forbidden")["details"]) == (2, {"run": "run_0"})


# --- how a server ends


def test_what_begins_after_the_signal_ends_at_once():
    heard: list[str] = []
    ending = Ending()
    ending.add(lambda at_once=False: heard.append(f"first {at_once}"))
    ending.stop()
    ending.add(lambda at_once=False: heard.append(f"later {at_once}"))
    ending.stop(at_once=True)
    assert heard == ["first False", "later False", "first True", "later True"]


def test_a_port_that_is_taken_is_said_with_the_way_out():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port} can't be listened on") as said:
            listening("127.0.0.1", port)
    assert said.value.allowed == ("--port 0",)
    with pytest.raises(InvalidInput, match=r"knows no nowhere\.invalid"):
        listening("nowhere.invalid", 0)


class Stage:
    """A server with requests that take as long as a test wants."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.release = threading.Event()
        self.mourned = threading.Event()
        routes = [Route("/stream", self.stream), Route("/stuck", self.stuck)]
        routes += [Route("/thread", self.thread), Route("/block", self.block)]
        routes += [Route("/", self.root)]
        app = Starlette(routes=routes)
        self.listener, self.address = listening("127.0.0.1", 0)
        self.serving = Serving(app, self.listener, self.open.set, self.mourned.set)

    async def root(self, _request: Request) -> Response:
        return PlainTextResponse("here")

    async def stream(self, _request: Request) -> Response:
        async def until_let_go() -> Any:
            yield b"begin\n"
            await self.open.wait()
            yield b"end\n"

        return StreamingResponse(until_let_go())

    async def stuck(self, _request: Request) -> Response:
        async def forever() -> Any:
            yield b"begin\n"
            await asyncio.sleep(3600)

        return StreamingResponse(forever())

    def thread(self, _request: Request) -> Response:
        self.release.wait(30)
        return PlainTextResponse("late")

    async def block(self, request: Request) -> Response:
        return self.thread(request)

    def asked(self, path: str) -> socket.socket:
        line = socket.create_connection(("127.0.0.1", self.address.port))
        line.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        return line

    def stopped(self) -> tuple[bool, float]:
        begun = time.monotonic()
        clean = self.serving.stop()
        return clean, time.monotonic() - begun


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    made.serving.start()
    yield made
    made.release.set()
    made.serving.stop()


def heard(line: socket.socket, mark: bytes) -> bytes:
    got = b""
    while mark not in got and (part := line.recv(65536)):
        got += part
    return got


def test_streams_are_let_go_and_come_to_their_end(stage: Stage):
    with stage.asked("/stream") as line, stage.asked("/") as idle:
        assert b"begin" in heard(line, b"begin")
        assert b"here" in heard(idle, b"here")
        clean, seconds = stage.stopped()
        assert (clean, seconds < serving.STOP_SECONDS) == (True, True)
        assert heard(line, b"\r\n0\r\n\r\n").endswith(b"end\n\r\n0\r\n\r\n")
        assert idle.recv(100) == b"", "a connection that only waits is closed"
    assert not stage.mourned.is_set()


def test_what_does_not_end_is_cut(stage: Stage):
    with stage.asked("/stuck") as line, stage.asked("/thread"):
        heard(line, b"begin")
        clean, seconds = stage.stopped()
        assert (clean, seconds < serving.LAST_SECONDS) == (True, True)


def test_what_can_not_be_cut_is_left_behind_and_said_so(stage: Stage):
    with stage.asked("/block"):
        time.sleep(0.2)
        clean, seconds = stage.stopped()
        assert (clean, seconds < 2) == (False, True)


def test_at_once_waits_for_no_request(stage: Stage):
    with stage.asked("/stuck") as line:
        heard(line, b"begin")
        stage.serving.ask_to_stop(at_once=True)
        _, seconds = stage.stopped()
        assert seconds < serving.STOP_SECONDS


def test_a_server_that_ends_by_itself_is_mourned(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    async def over(_counter: int) -> bool:
        return True

    monkeypatch.setattr(stage.serving._server, "on_tick", over)
    assert stage.mourned.wait(5)
    assert not stage.serving.alive
