"""No process of a run acts for a person through the server, with whatever secret it has found."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

import pytest

from tests.faces.web.conftest import Web, served
from tests.record.lives import OPERATOR, opened, started
from truegreen.app import check_peer
from truegreen.contract.terms import Isolation
from truegreen.faces.web import identity
from truegreen.faces.web.house import Address
from truegreen.faces.web.routes import API
from truegreen.model import Role, TaskStatus
from truegreen.record.ledger import Ledger, Start
from truegreen.work.become import RTTIME
from truegreen.work.tree import Identity, boot_id, mark_of

CALLER = """
import http.client, json, resource, sys
port, limit, asks = json.load(sys.stdin)
if limit:
    resource.setrlimit({number}, (limit, limit))
said = []
for method, path, body, headers in asks:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    line.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = line.getresponse()
    said.append([answer.status, answer.read().decode("utf-8", "replace")])
    line.close()
print(json.dumps(said))
"""
Asked = tuple[str, str, dict[str, Any] | None, dict[str, str]]


def asked(address: Address, limit: int, *asks: Asked) -> list[tuple[int, str]]:
    """What a process with this limit is told."""
    words = [sys.executable, "-I", "-c", CALLER.format(number=RTTIME)]
    given = json.dumps([address.port, limit, asks])
    done = subprocess.run(
        words, input=given, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return [(status, body) for status, body in json.loads(done.stdout)]


def by_session(web: Web, address: Address) -> dict[str, str]:
    """What a browser sends, and every other port of the host hears."""
    return {
        "Cookie": f"truegreen_session_{address.port}={web.session()}",
        "Origin": address.url,
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/json",
    }


def by_token(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}


@pytest.mark.criterion("O02")
@pytest.mark.parametrize("smaller", [0, 5], ids=["marked", "with a smaller mark"])
def test_nobody_inside_a_run_acts_with_a_secret_that_it_found(web: Web, smaller: int):
    ticket = started(web.ledger)
    with served(web) as address:
        cancel = f"{API}/tasks/{ticket.task}/cancel"
        code = web.ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)[1]
        session, operator = by_session(web, address), by_token(web.secret(Role.OPERATOR))
        asks: list[Asked] = [
            ("POST", f"{API}/tokens", {"role": "operator", "name": "x"}, session),
            ("POST", f"{API}/tokens", {"role": "viewer", "name": "y"}, operator),
            ("POST", cancel, {"reason": "x"}, by_token(web.secret(Role.LEAD))),
            ("GET", f"/login/{code}", None, {}),
        ]
        inside = asked(address, mark_of(ticket.run) - smaller, *asks)
        assert [status for status, _ in inside] == [403] * 4
        named = ticket.run if not smaller else "run_"  # of a smaller mark nobody knows whose it was
        assert all(f"this is inside {named}" in body for _, body in inside)
        assert web.ledger.task(ticket.task).status is TaskStatus.RUNNING
        outside = asked(address, 0, asks[0], asks[1], asks[3])
        assert [status for status, _ in outside] == [201, 201, 200], "the link was not used up"


@pytest.mark.criterion("O02")
def test_a_program_that_plays_sound_acts_while_all_agents_are_in_jails(web: Web, ledger: Ledger):
    """Such programs have a limit of 200 ms, which looks like a mark that was made smaller."""
    empty = Web(ledger, web.config, ExitStack())
    operator = by_token(empty.secret(Role.OPERATOR))
    ask: Asked = ("DELETE", f"{API}/tokens/tok_nobody", None, operator)
    with served(empty) as address:
        jailed = ledger.start(opened(ledger).id, Start("test", isolation=Isolation.JAIL))
        assert asked(address, 200_000, ask)[0][0] == 403, "nobody knows its outermost process yet"
        process = Identity(boot_id(), 1 << 30, 0)._asdict()
        ledger.heartbeat(jailed, process=process)
        assert asked(address, 200_000, ask)[0][0] == 404
        assert asked(address, mark_of(jailed.run), ask)[0][0] == 403
        loose = ledger.start(opened(ledger).id, Start("test", isolation=Isolation.REAPER))
        ledger.heartbeat(loose, process=process)
        assert asked(address, 200_000, ask)[0][0] == 403


def test_an_agent_acts_for_itself_and_everybody_looks(web: Web):
    ticket = started(web.ledger)
    secret = web.bound(Role.AGENT, ticket)
    with served(web) as address:
        asks: list[Asked] = [
            ("POST", f"{API}/runs/{ticket.run}/heartbeat", {}, by_token(secret)),
            ("GET", f"{API}/tasks", None, by_token(web.secret(Role.VIEWER))),
        ]
        said = asked(address, mark_of(ticket.run), *asks)
    assert [status for status, _ in said] == [200, 200], said


QUICK = """
import json, resource, socket, sys
port, limit, words = json.load(sys.stdin)
resource.setrlimit({number}, (limit, limit))
for each in words:
    line = socket.create_connection(("127.0.0.1", port))
    line.sendall(each.encode())
    line.close()
"""


def test_who_does_not_wait_for_the_answer_changes_nothing(web: Web):
    ticket = started(web.ledger)
    tokens = [
        web.ledger.mint_token(Role.VIEWER, f"v{number}", actor=OPERATOR) for number in range(5)
    ]
    with served(web) as address:
        host = f"Host: 127.0.0.1:{address.port}"
        bearer = f"Authorization: Bearer {web.secret(Role.OPERATOR)}"
        words = [
            f"DELETE {API}/tokens/{token.id} HTTP/1.1\r\n{host}\r\n{bearer}\r\n\r\n"
            for token, _ in tokens
        ]
        given = json.dumps([address.port, mark_of(ticket.run), words])
        script = [sys.executable, "-I", "-c", QUICK.format(number=RTTIME)]
        subprocess.run(script, input=given, text=True, timeout=60, check=True)
    # The server is down by now: whatever came of it has come.
    assert all(web.ledger.authenticate(secret).role is Role.VIEWER for _, secret in tokens)


def test_a_connection_is_looked_at_once(web: Web, monkeypatch: pytest.MonkeyPatch):
    looks: list[object] = []

    def look(*given: Any) -> None:
        looks.append(given)
        check_peer(*given)

    monkeypatch.setattr(identity, "check_peer", look)
    started(web.ledger)
    with served(web) as address:
        line = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
        for number in range(3):
            body = json.dumps({"role": "viewer", "name": f"v{number}"})
            line.request("POST", f"{API}/tokens", body, by_token(web.secret(Role.OPERATOR)))
            answer = line.getresponse()
            answer.read()
            assert answer.status == 201
        line.close()
    assert len(looks) == 1
