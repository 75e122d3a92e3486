"""A command, a mail and any other service: what they get, and what is said when they fail."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.outlets.mail_server import MailServer
from tests.outlets.receiver import Receiver, Reply
from tests.proofs import noop, regression_only, unproven, weak
from tests.table import each_row
from truegreen.contract import Mail, Notify, Tls
from truegreen.outlets import cloudevents, notify
from truegreen.outlets.cloudevents import body_lines, encoded, headline, sample
from truegreen.outlets.handing import Doorkeeper
from truegreen.outlets.mail import Mailbox, letter
from truegreen.outlets.news import News
from truegreen.outlets.notify import Command, Notifier, Service, way_of
from truegreen.outlets.sending import ARRIVED, Sent
from truegreen.outlets.webhooks import Webhook
from truegreen.outlets.wording import plain
from truegreen.record.ledger import Ledger, open_ledger

DATABASES = ("sqlite",)

DATA: dict[str, Any] = {
    "task": "tsk_1",
    "title": "fix the parser",
    "task_status": "failed",
    "run_status": "exited",
    "cell_title": "silent failure",
    "reason": "gate tests: 3 failed of 212",
    "times": 3,
    "next": "truegreen show tsk_1",
    "url": "https://green.example/tasks/tsk_1",
}
EVENT = {"id": "evt_1", "type": "dev.truegreen.task.failed", "data": DATA}
BODY = msgspec.json.encode(EVENT).decode()


def delivered(way: notify.Way, event: dict[str, Any] = EVENT) -> Sent:
    return way.deliver("pst_1", msgspec.json.encode(event).decode(), event)


# --- a command


def command(*words: str, **environ: str) -> Command:
    return Command(Notify(command=words, secret_env="KEY"), {"PATH": "/usr/bin:/bin", **environ})  # noqa: S106


@pytest.mark.criterion("L12")
def test_a_command_gets_the_event_and_nothing_else_of_the_house(tmp_path: Path):
    note = tmp_path / "note"
    script = f"cat > {note}; env >> {note}"
    way = command("sh", "-c", script, KEY="k", TRUEGREEN_STORE="postgresql://secret", OTHER="x")
    assert delivered(way) == ARRIVED
    text = note.read_text()
    assert text.startswith(f"{BODY}\n")  # a file of them has one event per line
    assert "KEY=k\n" in text
    assert "TRUEGREEN_POST=pst_1\n" in text
    assert "secret" not in text
    assert "OTHER" not in text


@each_row(
    ("words", "trouble"),
    [
        (("sh", "-c", "echo no such channel; exit 3"), "exit 3: no such channel"),
        (("sh", "-c", "kill -9 $$"), "signal 9"),
        (("/nowhere/at/all",), "there is no file '/nowhere/at/all': check the path"),
        (("sh", "-c", "printf '\\033[31m'; exit 1"), "exit 1"),
    ],
)
def test_what_a_command_failed_of_is_said(words: tuple[str, ...], trouble: str):
    assert delivered(command(*words)) == Sent(trouble)


def test_a_command_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notify, "COMMAND_SECONDS", 0.2)
    begun = time.monotonic()
    assert delivered(command("sleep", "60")) == Sent("stopped after 0.2 s")
    assert time.monotonic() - begun < 5


def test_the_arguments_of_a_command_are_not_shown():
    assert command("page", "--key", "k").where == "page"


# --- a mail


def terms(port: int, **more: Any) -> Mail:
    given: dict[str, Any] = {"tls": Tls.NONE, "to": ("ops@example.org", "lead@example.org")}
    return Mail(host="127.0.0.1", port=port, sender="green@example.org", **{**given, **more})


@pytest.mark.criterion("L12")
def test_a_mail_says_what_failed_and_how_to_go_on():
    with MailServer() as server:
        assert delivered(Mailbox(terms(server.port), {})) == ARRIVED
        (mail,) = server.letters
    assert mail["Subject"] == "[truegreen] silent failure: fix the parser"
    assert mail["To"] == "ops@example.org, lead@example.org"
    assert mail["Message-ID"] == "<pst_1@truegreen>"
    text = mail.get_content()
    for words in ("failed (3 times)", "exited", "3 failed of 212", "truegreen show tsk_1"):
        assert words in text


@pytest.mark.criterion("L16")
def test_a_title_adds_no_header_and_turns_no_line_round():
    hostile = "a\r\nBcc: eve@example.org\r\n\r\n\u202eevil\x1b[31m \ud800"
    event = {**EVENT, "data": {**DATA, "title": hostile, "reason": hostile}}
    mail = letter(terms(25), "pst_1", event)
    parsed = mail.as_bytes()
    assert b"\nBcc:" not in parsed
    assert "\u202e" not in mail["Subject"]
    assert "\x1b" not in mail.get_content()


@each_row(
    ("refuse", "words"),
    [
        ({"RCPT": "550 no such user"}, "refused for ops@example.org, lead@example.org"),
        ({"MAIL": "451 try later"}, "the server said 451 try later"),
        ({"AUTH": "535 wrong"}, "the server said 535 wrong"),
        ({"STARTTLS": "454 none"}, "can't be spoken to"),
    ],
)
def test_what_a_mail_server_refuses_is_said(refuse: dict[str, str], words: str):
    with MailServer(refuse) as server:
        more: dict[str, Any] = {}
        if "AUTH" in refuse:
            more = {"user": "u", "password_env": "P", "tls": Tls.STARTTLS}
        way = Mailbox(terms(server.port, **more), {"P": "p"})
        if "STARTTLS" in refuse:
            way = Mailbox(terms(server.port, tls=Tls.STARTTLS), {})
        trouble = delivered(way).trouble
        assert server.letters == []
    assert words in trouble or "STARTTLS" in trouble


def test_nobody_logs_in_without_a_password_and_none_goes_out_in_the_clear():
    with MailServer() as server:
        more = {"user": "u", "password_env": "P", "tls": Tls.STARTTLS}
        assert "$P is not set" in delivered(Mailbox(terms(server.port, **more), {})).trouble
        assert delivered(Mailbox(terms(server.port, **more), {"P": "p"})).trouble
        assert not any(line.startswith("AUTH") for line in server.lines)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Of 127.0.0.1, signed by nobody but itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    own = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = tmp_path / "mail.pem"
    pem = serialization.Encoding.PEM
    file.write_bytes(made.public_bytes(pem) + key.private_bytes(pem, *own))
    return file


@pytest.mark.criterion("L12")
def test_a_password_and_a_letter_go_out_encrypted_and_only_to_whom_somebody_vouches_for(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    more = {"user": "u", "password_env": "P", "tls": Tls.STARTTLS}
    with MailServer(tls=context) as server:
        way = Mailbox(terms(server.port, **more), {"P": "p"})
        assert "CERTIFICATE_VERIFY_FAILED" in delivered(way).trouble
        assert server.letters == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert delivered(way) == ARRIVED
        assert len(server.letters) == 1
        sent = server.lines[server.lines.index("-- encrypted from here") :]
    assert any(line.startswith("AUTH PLAIN") for line in sent)
    assert not any(line.startswith(("AUTH", "MAIL")) for line in server.lines[: -len(sent)])


@pytest.mark.criterion("L13")
def test_mails_of_one_topic_are_shown_together():
    def made(post_id: str, topic: str) -> Any:
        return letter(terms(25), post_id, {**EVENT, "data": {**DATA, "topic": topic}})

    hostile = "cap_hit: a\r\nBcc: eve@example.org"
    first, second, other = made("pst_1", hostile), made("pst_2", hostile), made("pst_3", "else")
    assert first["References"] == second["References"] == second["In-Reply-To"]
    assert other["References"] != first["References"]
    assert len({each["Message-ID"] for each in (first, second, other)}) == 3
    assert b"\nBcc:" not in first.as_bytes()
    assert letter(terms(25), "pst_1", EVENT)["References"] is None


def test_a_mail_has_the_date_of_its_event():
    at = 1_700_000_000_000_000
    event = sample("", at)
    with MailServer() as server:
        for _ in range(2):
            assert delivered(Mailbox(terms(server.port), {}), event) == ARRIVED
    first, again = server.letters
    assert first.get_all("Date") == ["Tue, 14 Nov 2023 22:13:20 +0000"]
    assert again["Date"] == first["Date"], "the second try is the same message"


def test_a_server_that_is_not_there_is_trouble():
    with MailServer() as server:
        port = server.port
    assert "can't be spoken to" in delivered(Mailbox(terms(port), {})).trouble


# --- any other service


@pytest.mark.criterion("L12")
def test_a_service_is_reached_through_apprise():
    with Receiver(lambda _: Reply(200)) as receiver:
        way = Service(Notify(url=f"json://127.0.0.1:{receiver.port}/", allow_private=True))
        assert delivered(way) == ARRIVED
        body = receiver.asked[0].json
    assert body["title"] == "silent failure: fix the parser"
    assert "truegreen show tsk_1" in body["message"]


def test_a_service_goes_to_no_private_address_unless_it_may():
    with Receiver(lambda _: Reply(200)) as receiver:
        trouble = delivered(Service(Notify(url=f"json://localhost:{receiver.port}/"))).trouble
        assert receiver.asked == []
    assert "is not on the internet; allow_private = true lets it be" in trouble


def test_a_service_has_no_keys_of_the_house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told = tmp_path / "told"
    script = f"import json, os; json.dump(dict(os.environ), open({str(told)!r}, 'w')); os._exit(0)"
    (tmp_path / "apprise.py").write_text(script)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/root", "HTTPS_PROXY": "http://x", "KEY": "secret"}
    delivered(Service(Notify(url="slack://key"), environ))
    seen = msgspec.json.decode(told.read_bytes())
    assert not {"HTTPS_PROXY", "KEY"} & set(seen)
    assert seen["HOME"] == "/"


def test_a_service_that_refuses_is_trouble():
    with Receiver(lambda _: Reply(500)) as receiver:
        way = Service(Notify(url=f"json://127.0.0.1:{receiver.port}/", allow_private=True))
        assert delivered(way) == Sent("the service did not take it")


def test_a_service_that_nobody_knows_is_trouble():
    assert delivered(Service(Notify(url="nosuch://x"))) == Sent("apprise knows no such address")


def test_without_apprise_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "apprise.py").write_text("raise ImportError")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    trouble = delivered(Service(Notify(url="slack://key"))).trouble
    assert "pip install 'truegreen[notify]'" in trouble


def test_a_service_that_ends_without_a_word_has_sent_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "apprise.py").write_text("import os; os._exit(0)")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert delivered(Service(Notify(url="slack://key"))) == Sent("apprise ended without a word")


@each_row(
    ("event", "given"),
    [
        ("socket.connect", (None, ("10.0.0.7", 80))),
        ("socket.connect", (None, ("::1", 80, 0, 0))),
        ("socket.connect", (None, ("metadata.internal", 80))),
        ("socket.connect", (None, "/run/docker.sock")),
        ("socket.sendto", (None, ("127.0.0.1", 514))),
        ("socket.sendmsg", (None, ("169.254.169.254", 80))),
        ("subprocess.Popen", ("sh", ["sh"], None, None)),
        ("os.posix_spawn", ("/bin/sh", [], {})),
        ("os.system", (b"true",)),
    ],
)
def test_nothing_private_is_reached_and_no_program_started(event: str, given: tuple[Any, ...]):
    keeper = Doorkeeper(allow_private=False)
    with pytest.raises(PermissionError):
        keeper(event, given)
    assert keeper.refused
    if event.startswith("socket"):
        Doorkeeper(allow_private=True)(event, given)
    else:
        with pytest.raises(PermissionError):
            Doorkeeper(allow_private=True)(event, given)


def test_what_is_on_the_internet_is_let_through():
    keeper = Doorkeeper(allow_private=False)
    keeper("socket.connect", (None, ("1.1.1.1", 443)))
    keeper("socket.sendmsg", (None, None))
    keeper("open", ("/etc/hosts", "r", 0))
    assert keeper.refused == ""


# --- what people read


@pytest.mark.criterion("L16")
@each_row(
    "hostile",
    [
        "@everyone",
        "<!channel> <@U123>",
        "<https://evil.example|click to approve>",
        "[approve](https://evil.example)",
        "see https://evil.example/x, www.evil.example or evil.example/x",
        "`` ``` **bold** ~~gone~~ | a | b |",
        "first\nnext   https://evil.example\u2028third",
        "\u202eevil\u200b \x1b[31m \ud800",
    ],
)
def test_what_an_agent_wrote_calls_nobody_and_leads_nowhere(hostile: str):
    event = {**EVENT, "data": {**DATA, "title": hostile, "reason": hostile}}
    lines = [headline(event), *body_lines(event)]
    told = "".join(lines)
    assert not set(told) & set("@<>[]`*|~\n\u2028\u202e\x1b\ud800")
    assert "://evil" not in told
    assert "evil.example" not in told
    assert "next   truegreen show tsk_1" in lines


def test_what_is_harmless_stays_as_it_was():
    assert plain("gate tests: 3 failed of 212 (see C#, 50 %)") == (
        "gate tests: 3 failed of 212 (see C#, 50 %)"
    )
    assert plain("a.py").replace("\u200b", "") == "a.py"


def test_the_address_of_a_service_is_not_shown():
    assert Service(Notify(url="slack://key/key")).where == "slack://…"


# --- all of them


def test_every_entry_has_its_way():
    mail = terms(25)
    ways = [
        (Notify(webhook="https://x"), Webhook),
        (Notify(command=("x",)), Command),
        (Notify(mail=mail), Mailbox),
        (Notify(url="slack://x"), Service),
    ]
    assert all(isinstance(way_of(notice, {}), kind) for notice, kind in ways)


def test_a_test_says_nothing_but_that_it_arrived(tmp_path: Path):
    note = tmp_path / "note"
    entry = Notify(command=("sh", "-c", f"cat > {note}"))
    notifier = Notifier("ops", entry, Command(entry, {"PATH": "/usr/bin:/bin"}))
    assert notifier.test(1_000_000) == ARRIVED
    event = msgspec.json.decode(note.read_bytes())
    assert event["type"] == cloudevents.TEST_TYPE
    assert headline(event) == "truegreen can reach you: this is a test"
    assert f"{encoded(sample('', 1_000_000))}\n" == note.read_text()


# --- the three answers


@pytest.mark.parametrize(
    ("make", "missing", "words"),
    [
        (weak, "weak_evidence", "only at level A1, and A2 is required. Read the changes"),
        (unproven, "unproven", "made the difference. Read the changes and accept or reject"),
    ],
)
def test_an_event_says_what_is_missing_and_what_to_do(
    sqlite_url: str, make: Callable[[Ledger], str], missing: str, words: str
):
    ledger = open_ledger(sqlite_url)
    task = make(ledger)
    event = cloudevents.cloud_event(News(ledger, ledger.events(task)[-1]))
    ledger.close()
    data = event["data"]
    assert (data["task_status"], data["checks"], data["missing"]) == (
        "needs_review",
        "passed",
        missing,
    )
    assert data["require"] == "A2"
    assert data["proof"]["status"] == ("missing" if make is unproven else "shown")
    assert words in data["meaning"]
    lines = body_lines(event)
    assert any(line.startswith("means ") and words in line for line in lines)
    assert f'next   truegreen review {task} --accept --reason "looked at the diff"' in lines


@pytest.mark.parametrize("make", [regression_only, noop])
def test_an_event_about_a_success_carries_its_badges(
    sqlite_url: str, make: Callable[[Ledger], str]
):
    ledger = open_ledger(sqlite_url)
    task = make(ledger)
    event = cloudevents.cloud_event(News(ledger, ledger.events(task)[-1]))
    ledger.close()
    data = event["data"]
    assert (data["task_status"], data["missing"]) == ("succeeded", "")
    assert data["badges"] == [make.__name__]
    assert data["proof"]["status"] == "waived"
