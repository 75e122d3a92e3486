"""The installed `up` and `web`: they answer, carry out tasks, and are gone when they are to go."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.outlets.receiver import Receiver
from tests.record.lives import OPERATOR
from tests.walk.conftest import Walk, own, shell, until
from tests.walk.test_people import BARE, under_way
from truegreen.model import Role, TaskStatus
from truegreen.work.exits import SHUT_DOWN

SECONDS = 2.0
STREAMS = 50


class Up:
    """A server that runs while the test goes on."""

    def __init__(self, walk: Walk, *words: str) -> None:
        self.walk = walk
        self.process = walk.beside(*words)
        self.ready: dict[str, Any] = {}

    def answers(self) -> None:
        """Wait for the line that says so."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1].decode()
        self.ready = json.loads(line)

    @property
    def url(self) -> str:
        url: str = self.ready["url"]
        return url

    def token(self, role: Role = Role.OPERATOR) -> dict[str, str]:
        secret = self.walk.ledger().mint_token(role, "test", actor=OPERATOR)[1]
        return {"authorization": f"Bearer {secret}"}

    def ended(self, number: signal.Signals) -> tuple[int, float, str]:
        """Signal it; says its status, how long it took, and what it said."""
        begun = time.monotonic()
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, time.monotonic() - begun, err.decode()


@contextmanager
def begin(walk: Walk, *words: str) -> Iterator[Up]:
    made = Up(walk, *words, "--port", "0")
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        for stream in (made.process.stdout, made.process.stderr):
            if stream:
                stream.close()


@contextmanager
def up(walk: Walk, *words: str) -> Iterator[Up]:
    with begin(walk, *(words or ("up",)), "--json") as made:
        made.answers()
        yield made


def added(walk: Walk, command: str, *words: str) -> str:
    answer = walk.tg("add", "--json", "--gate", "test -s out.txt", *words, *shell(command))
    task: str = answer.json()["id"]
    return task


def is_closed(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) != 0


def plates_of(walk: Walk) -> list[Path]:
    return list(Path(os.environ["XDG_STATE_HOME"], "truegreen", "web").iterdir())


def test_one_process_answers_logs_in_and_carries_out(walk: Walk):
    task = added(walk, "echo x >> out.txt")
    with up(walk) as server, httpx2.Client(base_url=server.url) as browser:
        assert server.ready["pid"] == server.process.pid
        assert browser.get("/api/v1/healthz").status_code == 200
        assert browser.get(f"/api/v1/tasks/{task}").status_code == 401
        link = server.ready["login"].removeprefix(server.url)
        assert browser.get(link).status_code == 200
        assert browser.get("/").status_code == 200, "the link opened a session"
        until(lambda: browser.get(f"/api/v1/tasks/{task}").json()["task_status"] == "succeeded")
        other = walk.tg("login", "--viewer", "--json").json()
        assert other["url"] == server.url
        assert server.ended(signal.SIGTERM)[0] == 0
    assert is_closed(server.ready["port"])
    assert plates_of(walk) == []
    assert (walk.folder / "out.txt").read_text() == "x\n"


def test_news_leaves_while_it_is_up(walk: Walk):
    (walk.folder / "truegreen.toml").write_text(
        f'[[notify]]\ncommand = ["sh", "-c", "cat > {walk.folder}/news.txt"]\non = ["failed"]\n'
    )
    news = walk.folder / "news.txt"
    with up(walk) as server:
        task = added(walk, "true", "--max-attempts", "1")
        until(lambda: news.exists() and news.read_text().endswith("}\n"))
        assert server.ended(signal.SIGTERM)[0] == 0
    assert json.loads(news.read_text())["data"]["url"] == f"{server.url}/tasks/{task}"


@pytest.mark.criterion("L12", "O03")
def test_an_outlet_that_somebody_trusts_is_used_without_a_restart(walk: Walk):
    with Receiver() as receiver, up(walk) as server:
        text = f'[[notify]]\nname = "ops"\nwebhook = "{receiver.url}/x"\nallow_private = true\n'
        (walk.folder / "new.toml").write_text(text)
        ledger = walk.ledger()
        first = added(walk, "cp new.toml truegreen.toml", "--max-attempts", "1")
        until(lambda: ledger.task(first).status is TaskStatus.FAILED)
        assert walk.tg("outlets", "--json").json()["outlets"][0]["is_used"] is False
        assert receiver.asked == [], "an agent wrote it"
        assert walk.tg("outlets", "trust", "--json").json()["trusted"] is True
        second = added(walk, "true", "--max-attempts", "1", "--title", "another")
        until(lambda: second in [asked.json["subject"] for asked in receiver.asked])
        assert walk.tg("outlets", "--json").json()["outlets"][0]["sent"] >= 1
        assert server.ended(signal.SIGTERM)[0] == 0


def test_settings_that_are_read_once_need_a_restart_and_it_says_so(walk: Walk):
    with begin(walk, "up") as server:
        read_until(server.process, b"Ctrl-C ends it")
        (walk.folder / "truegreen.toml").write_text("[web]\nport = 9000\n")
        assert server.process.stderr
        line = b""
        while b"changed: restart to use it" not in line:
            line = server.process.stderr.readline()
            assert line
        assert str(walk.folder / "truegreen.toml") in line.decode()
        assert b"changed: restart" not in server.ended(signal.SIGTERM)[2].encode()


def test_mcp_is_spoken_on_the_same_port_with_a_token(walk: Walk):
    accept = {"accept": "application/json, text/event-stream"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with up(walk, "web") as server:
        url = f"{server.url}/mcp"
        headers = {**accept, **server.token()}
        with httpx2.Client(timeout=20) as client:  # the first request loads its library
            assert client.post(url, json=call, headers=accept).status_code == 401
            assert "task_create" in client.post(url, json=call, headers=headers).text
            foreign = {**headers, "host": "evil.example.org"}
            assert client.post(url, json=call, headers=foreign).status_code == 421


def test_web_alone_starts_nothing_and_ctrl_c_ends_it(walk: Walk):
    task = added(walk, "echo x >> out.txt")
    with up(walk, "web") as server:
        headers = server.token()
        seen = httpx2.get(f"{server.url}/api/v1/tasks/{task}", headers=headers).json()
        assert seen["task_status"] == "queued"
        time.sleep(0.3)
        status, seconds, _ = server.ended(signal.SIGINT)
    assert (status, seconds < SECONDS) == (130, True)
    assert walk.ledger().task(task).status is TaskStatus.QUEUED


def test_it_says_in_plain_lines_where_it_is_and_warns_of_a_network(walk: Walk):
    with begin(walk, "web", "--host", "0.0.0.0") as server:  # noqa: S104 - that is the test
        lines = read_until(server.process, b"Ctrl-C ends it")
        status, _, err = server.ended(signal.SIGTERM)
    assert lines[0].startswith("truegreen listens on http://127.0.0.1:")
    assert "/login/tg_login_" in lines[1]
    assert "truegreen login makes another" in lines[2]
    assert "0.0.0.0 is open to the network" in err
    assert "proxy with TLS" in err
    assert status == 0


def read_until(process: subprocess.Popen[bytes], mark: bytes) -> list[str]:
    assert process.stdout
    lines: list[bytes] = []
    while mark not in b"".join(lines[-1:]):
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    return b"".join(lines).decode().splitlines()


def test_a_second_one_on_the_store_is_fine_and_says_so(walk: Walk):
    with up(walk) as first, up(walk) as second:
        for number in range(6):
            work = ("--title", f"t{number}", "--gate", f"test -f t{number}")
            added(walk, f"echo x >> out.txt; touch t{number}", *work)
        ledger = walk.ledger()
        # They work in one folder, so they take turns.
        until(lambda: all(t.status is TaskStatus.SUCCEEDED for t in ledger.page().tasks), 40)
        assert walk.tg("login", "--json").json()["url"] == second.url, "the latest is meant"
        assert second.ended(signal.SIGTERM)[0] == 0
        assert walk.tg("login", "--json").json()["url"] == first.url
    assert (walk.folder / "out.txt").read_text() == "x\n" * 6


def test_it_names_the_other_one(walk: Walk):
    with up(walk) as first, begin(walk, "up") as other:
        read_until(other.process, b"Ctrl-C ends it")
        _, _, err = other.ended(signal.SIGTERM)
        words = f"{first.url} (process {first.process.pid}) works on this store, too"
        assert f"{words}; each task is started once" in err


def test_a_port_that_is_taken_is_refused_with_the_way_out(walk: Walk):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = walk.tg("up", "--port", port, "--json")
        assert answer.status == 5
        assert answer.error("unavailable")["allowed"] == ["--port 0"]
        assert "--port 0 takes a free one" in walk.tg("web", "--port", port).err


def test_a_second_one_on_the_same_port_says_that_it_is_there_already(walk: Walk):
    with up(walk, "web") as first:
        port = str(first.ready["port"])
        answer = walk.tg("up", "--port", port, "--json")
        assert answer.status == 5
        told = answer.error("unavailable")
    assert told["allowed"] == ["truegreen login", "--port 0"]
    words = f"truegreen serves this store there already (process {first.process.pid})"
    assert words in told["message"]


@pytest.mark.criterion("O06")
def test_nobody_inside_of_a_run_serves_or_logs_in(walk: Walk):
    words = [own("up", "--port", "0"), own("web", "--port", "0"), own("login", "--port", "1")]
    script = "; ".join(f"{each} 2>> out.txt" for each in words)
    walk.run("--gate", "test -s out.txt", *shell(script))
    said = (walk.folder / "out.txt").read_text()
    assert said.count("an agent can declare and ask") == len(words)


FOUND = """
import http.client, json, sys
port, secret, code = sys.argv[1:]
token = json.dumps({"role": "viewer", "name": "x"})
for method, path, body in ("GET", f"/login/{code}", None), ("POST", "/api/v1/tokens", token):
    line = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
    line.request(method, path, body, headers)
    print(line.getresponse().status, flush=True)
"""


@pytest.mark.criterion("O02", "O06")
def test_nobody_inside_of_a_run_acts_through_the_server_with_what_it_found(walk: Walk):
    """Neither with a key nor with a login link, not even with an environment of its own."""
    (walk.folder / "found.py").write_text(FOUND)
    ledger = walk.ledger()
    secret = ledger.mint_token(Role.OPERATOR, "ana", actor=OPERATOR)[1]
    code = ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)[1]
    with up(walk, "web") as server:
        words = f"{server.ready['port']} {secret} {code}"
        line = f"{BARE} {sys.executable} -I found.py {words} > out.txt"
        walk.run("--isolation", "none", "--gate", "test -s out.txt", *shell(line))
        assert (walk.folder / "out.txt").read_text().split() == ["403", "403"]
        assert httpx2.get(f"{server.url}/login/{code}").status_code == 200, "it is still good"


@pytest.mark.criterion("M04")
def test_connections_of_nobody_neither_end_it_nor_keep_anybody_out(walk: Walk):
    with up(walk) as server, ExitStack() as lines:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (256, 256))
        for _ in range(400):
            line = socket.create_connection(("127.0.0.1", server.ready["port"]), timeout=20)
            lines.enter_context(line)
            with suppress(ConnectionResetError, BrokenPipeError):
                line.sendall(b"GET / HTTP/1.1\r\n")
        assert httpx2.get(f"{server.url}/api/v1/healthz", timeout=20).status_code == 200
        task = added(walk, "echo x >> out.txt")
        ledger = walk.ledger()
        until(lambda: ledger.task(task).status is TaskStatus.SUCCEEDED)
        assert server.ended(signal.SIGTERM)[0] == 0


# --- the end


@contextmanager
def crowd(server: Up, run: str) -> Iterator[list[socket.socket]]:
    """Streams of events and of pages, a log that is followed, and connections that only wait."""
    bearer = server.token()["authorization"]
    paths = ["/api/v1/events"] * STREAMS + [f"/api/v1/runs/{run}/log?follow=1"]
    paths += ["/live/overview"] * 5 + ["/api/v1/healthz"] * 4
    with ExitStack() as lines:
        opened = []
        for path in paths:
            line = lines.enter_context(
                socket.create_connection(("127.0.0.1", server.ready["port"]), timeout=20)
            )
            head = f"host: 127.0.0.1:{server.ready['port']}\r\nauthorization: {bearer}\r\n"
            line.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
            opened.append(line)
        for path, line in zip(paths, opened, strict=True):
            assert b" 200 " in line.recv(4096).split(b"\r\n")[0], path
        yield opened


def begun(walk: Walk, server: Up) -> tuple[str, str]:
    """A task whose agent works until it is ended."""
    task = added(walk, "echo x >> out.txt; echo working; trap '' TERM; sleep 60 & wait; sleep 60")
    until((walk.folder / "out.txt").exists)
    ledger = walk.ledger()
    return task, ledger.dossier(task).runs[-1].id


@pytest.mark.timeout(90)
def test_fifty_streams_and_a_follower_hold_the_web_face_for_less_than_two_seconds(walk: Walk):
    with up(walk) as server:
        task, run = begun(walk, server)
        with crowd(server, run) as lines:
            started = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            for line in lines:
                while line.recv(65536):
                    pass
            seconds = time.monotonic() - started
            assert is_closed(server.ready["port"])
        assert seconds < SECONDS, seconds
        assert server.process.poll() is None, "its run is still being ended, gracefully"
        server.process.send_signal(signal.SIGTERM)
        _, err = server.process.communicate(timeout=20)
    assert server.process.returncode == 0, err
    assert b"Traceback" not in err
    ledger = walk.ledger()
    assert ledger.task(task).status is TaskStatus.QUEUED, "another scheduler goes on with it"
    assert SHUT_DOWN in ledger.dossier(task).runs[-1].facts
    assert plates_of(walk) == []


def test_the_second_signal_ends_everything_at_once(walk: Walk):
    with up(walk) as server:
        _, run = begun(walk, server)
        with crowd(server, run):
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            status, seconds, err = server.ended(signal.SIGINT)
    assert (status, seconds < SECONDS) == (130, True), (seconds, err)
    assert "once more kills it at once" in err


RESTARTS = 4
"""One more than the deferrals of a task."""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("words", [("up", "--port", "0"), ("worker",), ("scheduler",)])
def test_restarts_cost_a_task_no_attempt_while_deferrals_are_left(
    walk: Walk, words: tuple[str, ...]
):
    beat = walk.folder.parent / "beat"
    agent = f"echo x >> {beat}; test $(wc -l < {beat}) -gt {RESTARTS} || sleep 60; echo y > out.txt"
    options = ("--here", "--gate", "test -s out.txt", "--max-attempts", "3", "--isolation", "none")
    task = walk.tg("add", "--json", *options, *shell(agent)).json()["id"]
    drain = () if words == ("scheduler",) else ("--drain-for", "0s")
    ledger = walk.ledger()
    for number in range(1, RESTARTS + 1):
        with under_way(walk, *words, *drain) as process:
            until(lambda: beat.exists() and len(beat.read_text().split()) == number)  # noqa: B023
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        run = ledger.dossier(task).runs[-1]
        assert (run.status, run.exit_detail, run.ended_by) == (
            "crashed",
            "supervisor_restarted",
            "supervisor",
        )
        left = ledger.task(task)
        charged = (number // RESTARTS, min(number, RESTARTS - 1))
        assert (left.status, left.attempts, left.deferrals) == (TaskStatus.QUEUED, *charged)
    with under_way(walk, *words, *drain):
        until(lambda: ledger.task(task).status is TaskStatus.SUCCEEDED)
    assert len(ledger.dossier(task).runs) == RESTARTS + 1
    assert ledger.inbox() == []


def test_up_drains_before_it_stops_what_is_under_way(walk: Walk):
    with under_way(walk, "up", "--port", "0") as process:
        task = added(walk, "touch begun; while ! test -e go; do sleep 0.05; done; echo x > out.txt")
        later = added(walk, "echo x > other.txt")
        ledger = walk.ledger()
        until((walk.folder / "begun").exists)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None
        (walk.folder / "go").touch()
        assert process.wait(30) == 0
    assert ledger.task(task).status is TaskStatus.SUCCEEDED
    assert ledger.task(later).status is TaskStatus.QUEUED


def test_a_drain_of_up_ends_after_its_time(walk: Walk):
    with under_way(walk, "up", "--port", "0", "--drain-for", "1s") as process:
        task = added(walk, "touch begun; sleep 60")
        until((walk.folder / "begun").exists)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert b"waits up to 1 s for 1 under way" in err
    left = walk.ledger().task(task)
    assert (left.status, left.exit_detail) == (TaskStatus.QUEUED, "supervisor_restarted")


def test_a_restart_before_the_agent_starts_leaves_the_task_as_it_was(walk: Walk):
    acted = walk.folder.parent / "acted"
    words = ("--here", "--gate", "sleep 3; test -s out.txt", *shell(f"touch {acted}"))
    task = walk.tg("add", "--json", *words).json()["id"]
    ledger = walk.ledger()
    with under_way(walk, "up", "--port", "0", "--drain-for", "0s") as process:
        until(lambda: ledger.task(task).run_status == "starting")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    left = ledger.task(task)
    assert (left.status, left.exit_detail) == (TaskStatus.QUEUED, "supervisor_restarted")
    assert (left.attempts, acted.exists()) == (0, False)
