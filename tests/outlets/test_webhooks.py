"""Webhooks: signed by the specification, tried patiently, and never into a private network."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import threading
import time
from typing import Any

import pytest

from tests.outlets.receiver import Asked, Receiver, Reply
from tests.table import each_row
from truegreen.contract import Notify
from truegreen.outlets import reaching
from truegreen.outlets.reaching import is_private, request
from truegreen.outlets.webhooks import Webhook, signature, signed_headers

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - published by the specification
PUBLIC = "93.184.215.14"

LITERAL = [
    *("127.0.0.1", "127.0.0.2", "127.255.255.254", "127.1", "127.0.1", "0", "0.0.0.1"),
    "0.0.0.0",  # noqa: S104 - nobody binds to it here
    *("2130706433", "017700000001", "0x7f000001", "0x7f.1", "0177.0.0.1", "0x7f.0x0.0x0.0x1"),
    *("10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.1.254"),
    *("169.254.169.254", "169.254.170.2", "2852039166", "0xa9fea9fe", "100.64.0.1"),
    *("100.100.100.200", "192.0.0.1", "192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.7"),
    *("203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("192.88.99.1", "localhost", "LOCALHOST", "localhost."),
    *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    *("[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[::127.0.0.1]", "[fe80::1]"),
    *("[fc00::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]", "[2002:7f00:1::]"),
    *("[2002:a9fe:a9fe::]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::7f00:1]"),
    *("[2001:0:7f00:1::]", "[2001:db8::1]", "[100::1]", "[3fff::1]", "[::ffff:0:127.0.0.1]"),
    *("user@127.0.0.1", "user:pass@127.0.0.1", "example.org@127.0.0.1", "example.org:80@10.0.0.1"),
    *("①②⑦.⓪.⓪.①", "127。0。0。1"),
]
RESOLVED = {
    "rebind.example": ["127.0.0.1"],
    "metadata.google.internal": ["169.254.169.254"],
    "both.example": [PUBLIC, "127.0.0.1"],
    "mapped.example": ["::ffff:10.0.0.1"],
    "scoped.example": ["fe80::1%eth0"],
    "odd.example": ["not-an-address"],
    "late.example": [PUBLIC, PUBLIC, "192.168.0.7"],
    "translated.example": ["64:ff9b::c0a8:1"],
}


class Wall:
    """Stands where connections are made, and lets none through."""

    def __init__(self) -> None:
        self.dialled: list[str] = []

    def __call__(self, address: str, port: int, seconds: float) -> socket.socket:
        self.dialled.append(address)
        raise ConnectionRefusedError(111, f"no further ({port}, {seconds})")


def resolving(*answers: list[str]) -> Any:
    """A resolver whose answers change from one question to the next."""
    left = list(answers)

    def resolve(_: str, port: int, **__: Any) -> list[tuple[Any, ...]]:
        now = left.pop(0) if len(left) > 1 else left[0]
        return [(2, 1, 6, "", (address, port)) for address in now]

    return resolve


def post(url: str, **more: Any) -> reaching.Answer:
    return request("POST", url, headers={}, body=b"{}", **more)


# --- never into a private network


def test_the_corpus_is_long_enough():
    assert len(LITERAL) + len(RESOLVED) >= 60
    assert len(set(LITERAL)) == len(LITERAL)


@each_row("host", LITERAL)
def test_no_way_to_write_a_private_address_is_connected_to(host: str):
    wall = Wall()
    with Receiver() as receiver:
        answer = post(f"http://{host}:{receiver.port}/", connect=wall, seconds=1)
        assert receiver.asked == []
    assert wall.dialled == []
    assert answer.trouble


@each_row("name", RESOLVED)
def test_no_name_of_a_private_address_is_connected_to(name: str):
    wall = Wall()
    answer = post(f"https://{name}/", connect=wall, resolve=resolving(RESOLVED[name]))
    assert wall.dialled == []
    assert "not on the internet" in answer.trouble


@each_row("host", ["127.1", "2130706433", "0x7f.1", "017700000001", "localhost", "0"])
def test_the_corpus_is_dangerous_without_the_guard(host: str):
    with Receiver() as receiver:
        post(f"http://{host}:{receiver.port}/", allow_private=True)
        assert len(receiver.asked) == 1


def test_a_name_that_means_something_else_a_moment_later_gains_nothing():
    wall = Wall()
    answer = post(
        "http://rebind.example/", connect=wall, resolve=resolving([PUBLIC], ["127.0.0.1"])
    )
    assert wall.dialled == [PUBLIC]
    assert "can't be reached" in answer.trouble


def test_what_is_on_the_internet_is_connected_to():
    wall = Wall()
    for host in (PUBLIC, "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]", "[64:ff9b::5db8:d70e]"):
        post(f"http://{host}/", connect=wall)
    assert len(wall.dialled) == 3


def test_ones_own_network_is_reached_only_where_that_is_said():
    with Receiver() as receiver:
        assert post(f"{receiver.url}/", allow_private=True).status == 204
        assert "allow_private = true" in post(f"{receiver.url}/").trouble
        assert len(receiver.asked) == 1


@each_row("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int):
    with Receiver() as inside:
        there = {"location": f"{inside.url}/secrets"}
        with Receiver(lambda _: Reply(status, headers=there)) as receiver:
            notice = Notify(webhook=receiver.url, allow_private=True)
            sent = Webhook(notice, {}).deliver("pst_1", "{}", {})
        assert inside.asked == []
    assert sent.trouble == f"it answered {status}; redirects are not followed"


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch):
    with Receiver() as proxy, Receiver() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert post(receiver.url, allow_private=True).status == 204
        assert proxy.asked == []


def test_what_is_no_address_is_private():
    assert is_private("nothing")
    assert is_private("")
    assert not is_private(PUBLIC)


# --- bounded


def test_a_server_that_drips_is_cut_off():
    drip = threading.Event()
    with Receiver(lambda _: Reply(drip=drip)) as receiver:
        begun = time.monotonic()
        answer = post(receiver.url, allow_private=True, seconds=0.3)
        assert time.monotonic() - begun < 3
        drip.set()
    assert "no answer" in answer.trouble


def test_an_endless_answer_is_read_only_so_far():
    body = b"x" * (reaching.ANSWER_BYTES + 1000)
    with Receiver(lambda _: Reply(500, body)) as receiver:
        answer = post(receiver.url, allow_private=True)
    assert len(answer.body) == reaching.ANSWER_BYTES


@each_row("url", ["http://", "http:///x", "http://[::1", "http://a:99999/", "x"])
def test_what_is_no_address_at_all_is_trouble_and_no_crash(url: str):
    assert post(url, connect=Wall()).trouble


def test_certificates_are_those_of_the_name(monkeypatch: pytest.MonkeyPatch):
    seen: list[str] = []

    class Context:
        @staticmethod
        def wrap_socket(sock: socket.socket, *, server_hostname: str) -> socket.socket:
            seen.append(server_hostname)
            return sock

    monkeypatch.setattr("ssl.create_default_context", Context)
    with Receiver() as receiver:
        resolve = resolving(["127.0.0.1"])
        url = f"https://hooks.example:{receiver.port}/x"
        assert post(url, allow_private=True, resolve=resolve).status == 204
        assert receiver.asked[0].headers["host"] == f"hooks.example:{receiver.port}"
    assert seen == ["hooks.example"]


def test_a_certificate_that_nobody_vouches_for_is_refused():
    with Receiver() as receiver:
        url = receiver.url.replace("http:", "https:")
        assert "no answer" in post(url, allow_private=True).trouble
        assert receiver.asked == []


# --- signed


def test_the_signature_is_that_of_the_published_vector():
    signed = signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', SECRET)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def verified(asked: Asked, secret: str) -> bool:
    """As a receiver of the specification checks it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    parts = (asked.headers["webhook-id"], asked.headers["webhook-timestamp"], asked.body.decode())
    code = hmac.new(key, ".".join(parts).encode(), hashlib.sha256).digest()
    return asked.headers["webhook-signature"] == f"v1,{base64.b64encode(code).decode()}"


def test_a_receiver_can_tell_whose_it_is_and_that_it_came_before():
    with Receiver() as receiver:
        notice = Notify(webhook=f"{receiver.url}/in?x=1", secret_env="S", allow_private=True)  # noqa: S106
        hook = Webhook(notice, {"S": SECRET})
        for _ in range(2):
            assert not hook.deliver("pst_1", '{"title": "ä"}', {}).trouble
        first, second = receiver.asked
    assert verified(first, SECRET)
    assert not verified(first._replace(body=b"{}"), SECRET)
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == "pst_1"
    assert abs(int(first.headers["webhook-timestamp"]) - time.time()) < 60
    assert first.headers["content-type"] == "application/cloudevents+json"
    assert (first.method, first.path) == ("POST", "/in?x=1")


@each_row(
    ("environ", "words"),
    [({}, "$S is not set"), ({"S": "whsec_%%"}, "in base64"), ({"S": "whsec_"}, "is empty")],
)
def test_nothing_is_sent_unsigned_that_was_to_be_signed(environ: dict[str, str], words: str):
    with Receiver() as receiver:
        notice = Notify(webhook=receiver.url, secret_env="S", allow_private=True)  # noqa: S106
        sent = Webhook(notice, environ).deliver("pst_1", "{}", {})
        assert receiver.asked == []
    assert words in sent.trouble


def test_while_a_secret_is_changed_both_sign_and_either_receiver_is_content():
    new = "whsec_" + base64.b64encode(b"another key of 24 bytes.").decode()
    with Receiver() as receiver:
        notice = Notify(webhook=receiver.url, secret_env="S", allow_private=True)  # noqa: S106
        assert not Webhook(notice, {"S": f"{new} {SECRET}"}).deliver("p", "{}", {}).trouble
        assert (
            "in base64" in Webhook(notice, {"S": f"{new} whsec_%"}).deliver("p", "{}", {}).trouble
        )
        (asked,) = receiver.asked
    codes = asked.headers["webhook-signature"].split(" ")
    assert len(codes) == 2
    for code, secret in zip(codes, (new, SECRET), strict=True):
        alone = {**asked.headers, "webhook-signature": code}
        assert verified(asked._replace(headers=alone), secret)


def test_another_body_id_or_time_has_another_signature():
    made = {
        signature("msg_1", 1614265330, b"{}", SECRET),
        signature("msg_2", 1614265330, b"{}", SECRET),
        signature("msg_1", 1614265331, b"{}", SECRET),
        signature("msg_1", 1614265330, b"{} ", SECRET),
    }
    assert len(made) == 4


def test_without_a_secret_there_is_no_signature():
    assert "webhook-signature" not in signed_headers("pst_1", 1, b"{}", "")


# --- what an answer means


@each_row(
    ("reply", "lasting", "wait"),
    [
        (Reply(410), True, None),
        (Reply(429, headers={"retry-after": "7"}), False, 7.0),
        (Reply(503, headers={"retry-after": "999999"}), False, 3600.0),
        (Reply(500, b"boom \x1b[31m"), False, None),
        (Reply(404), False, None),
    ],
)
def test_only_a_2xx_has_arrived(reply: Reply, *, lasting: bool, wait: float | None):
    with Receiver(lambda _: reply) as receiver:
        sent = Webhook(Notify(webhook=receiver.url, allow_private=True), {}).deliver("p", "{}", {})
    assert sent.trouble.startswith(f"it answered {reply.status}")
    assert "\x1b" not in sent.trouble
    assert (sent.lasting, sent.wait) == (lasting, wait)


def test_where_it_leads_shows_no_key():
    for url in ("https://u:key@hooks.example/key?key", "https://hooks.example?key#key"):
        shown = Webhook(Notify(webhook=url), {}).where
        assert shown == "https://hooks.example/…"


def test_many_dead_addresses_take_no_longer_than_one():
    dialled: list[str] = []

    def slow(address: str, port: int, seconds: float) -> socket.socket:
        dialled.append(address)
        time.sleep(min(seconds, 0.1))
        raise TimeoutError(110, f"{address}:{port}")

    many = resolving([f"93.184.215.{n}" for n in range(1, 200)])
    assert post("http://many.example/", connect=slow, resolve=many, seconds=0.25).trouble
    assert 2 <= len(dialled) <= 4
