"""Gates of kind `http`: real servers, good and bad ones."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.work.gates.trees import Tree
from truegreen.contract import Gate, GateKind, Isolation
from truegreen.model import FindingOutcome, Level

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE

SERVER = """\
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = open("answer.txt", "rb").read()
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""
SERVE = (sys.executable, "-I", "server.py")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"server.py": SERVER, "answer.txt": "before"})


def probe(url: str, **more) -> Gate:
    more.setdefault("timeout", "20s")
    return Gate(name="probe", kind=GateKind.HTTP, url=url, **more)


class Answers(BaseHTTPRequestHandler):
    """A server with a page for every kind of answer."""

    def do_GET(self) -> None:
        status, headers, body = {
            "/ok": (200, {}, b"all is well"),
            "/missing": (404, {}, b"no"),
            "/same-host": (302, {"Location": "/ok"}, b""),
            "/round": (302, {"Location": "/round"}, b""),
            "/elsewhere": (302, {"Location": "http://127.0.0.2:1/ok"}, b""),
            "/large": (200, {}, b"x" * 3_000_000 + b"needle"),
            "/binary": (200, {}, b"\xff\x00\x1b[31m"),
        }[self.path]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@contextlib.contextmanager
def listening(answer: bytes) -> Iterator[str]:
    """A server that sends these bytes to whoever comes, and then says nothing more."""
    over = threading.Event()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            with contextlib.suppress(OSError):
                peer, _ = listener.accept()
                with peer:
                    peer.sendall(answer)
                    over.wait(30)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        finally:
            over.set()
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.criterion("A25", "E24")
@pytest.mark.parametrize(
    ("page", "more", "outcome", "reason"),
    [
        ("/ok", {}, PASSED, "answered 200"),
        ("/ok", {"contains": "well"}, PASSED, "answered 200"),
        ("/same-host", {"contains": "well"}, PASSED, "answered 200"),
        ("/same-host", {"status": 302}, PASSED, "answered 302"),
        ("/missing", {"status": 404}, PASSED, "answered 404"),
        ("/missing", {}, FAILED, "answered 404, not 200"),
        ("/ok", {"contains": "ill"}, FAILED, "does not contain 'ill'"),
        ("/elsewhere", {}, FAILED, "redirects to http://127.0.0.2:1/ok"),
        ("/round", {}, FAILED, "redirects to itself"),
        ("/large", {"contains": "needle"}, ERROR, "the first part of its answer"),
        ("/binary", {"contains": "x"}, FAILED, "does not contain"),
    ],
)
def test_status_and_text_of_a_server_decide(tree, address, page, more, outcome, reason):
    found = tree.ask(probe(address + page, **more))
    assert found.outcome is outcome
    assert reason in found.reason
    assert found.level is Level.A2
    assert "not started from the clean copy" in found.evidence["short"][0]


def test_a_refused_connection_is_red(tree):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        found = tree.ask(probe(f"http://localhost:{unused.getsockname()[1]}/"))
    assert found.outcome is FAILED
    assert "refused the connection" in found.reason


@pytest.mark.criterion("E14")
@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nX: y", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"]
)
def test_a_server_that_never_finishes_is_a_gate_error_in_time(tree, answer):
    with listening(answer) as url:
        found = tree.ask(probe(url, timeout="300ms"))
    assert found.outcome is ERROR
    assert found.duration_us < 10_000_000


def test_a_server_that_speaks_something_else_is_a_gate_error(tree):
    with listening(b"SSH-2.0-OpenSSH_9.2\r\n" * 10) as url:
        assert tree.ask(probe(url)).outcome is ERROR


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://example.org/", "needs network = true"),
        ("http://localhost.example.org/", "needs network = true"),
        ("http://127.0.0.1.example.org/", "needs network = true"),
        ("ftp://127.0.0.1/", "no http or https address"),
        ("http://", "no http or https address"),
        ("http://127.0.0.1:99999/", "is no address"),
        ("http://user:secret@127.0.0.1/", "user name"),
        ("http://127.0.0.1/a b\r\nX: y", "must be escaped"),
        ("http://[::1/", "is no address"),
    ],
)
def test_an_address_that_must_not_be_asked_is_a_gate_error(tree, url, reason):
    found = tree.ask(probe(url))
    assert found.outcome is ERROR
    assert reason in found.reason


@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.REAPER])
def test_a_server_is_started_from_the_clean_copy_and_ended(tree, isolation):
    tree.write({"answer.txt": "after"})
    site = {"isolation": isolation}
    gate = probe("http://127.0.0.1:$PORT/health", command=SERVE, contains="after")
    found = tree.ask(gate, **site)
    outside = found.isolation == Isolation.JAIL
    assert (found.outcome, found.level) == (PASSED, Level.A4 if outside else Level.A2), found
    assert found.evidence["status"] == 200
    with socket.socket() as again:
        port = int(found.evidence["url"].split(":")[2].split("/")[0])
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


def test_the_server_is_what_the_agent_left_and_not_restored(tree):
    tree.write({"server.py": SERVER.replace('open("answer.txt", "rb").read()', 'b"mended"')})
    gate = probe("http://127.0.0.1:$PORT/health", command=SERVE, contains="mended")
    found = tree.ask(gate)
    assert found.outcome is PASSED, found
    assert "doubt" not in found.evidence


def test_a_server_in_doubt_is_worth_no_more_than_elsewhere(tree):
    gate = probe("http://127.0.0.1:$PORT/health", command=SERVE)
    assert tree.ask(gate, unconfirmed=True).level is Level.A1


def test_a_port_can_be_a_word_of_the_command(tree):
    words = (sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "$PORT")
    found = tree.ask(probe("http://127.0.0.1:${PORT}/answer.txt", command=words, contains="before"))
    assert found.outcome is PASSED, found


def test_a_started_server_with_another_answer_is_red(tree):
    found = tree.ask(probe("http://127.0.0.1:$PORT/nowhere", command=SERVE))
    assert found.outcome is FAILED
    assert "answered 404, not 200" in found.reason


def test_a_server_that_ends_before_it_answers_is_red(tree):
    words = ("sh", "-c", "echo no database; exit 3")
    found = tree.ask(probe("http://127.0.0.1:$PORT/", command=words))
    assert found.outcome is FAILED
    assert found.reason == "the server ended with exit 3 before it answered: no database"


@pytest.mark.criterion("E14")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("no-such-server",), "not on the PATH"),
        (("sleep", "60"), "no answer within 500ms"),
        (("sh", "-c", "kill -9 $$"), "killed by SIGKILL"),
    ],
)
def test_a_server_that_never_answers_is_a_gate_error(tree, words, reason):
    found = tree.ask(probe("http://127.0.0.1:$PORT/", command=words, timeout="500ms"))
    assert found.outcome is ERROR
    assert reason in found.reason


def test_somebody_else_on_the_port_is_not_taken_for_the_server(tree, address):
    found = tree.ask(probe(f"{address}/ok", command=("sleep", "60")))
    assert found.outcome is ERROR
    assert "something else answers" in found.reason
