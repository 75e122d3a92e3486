"""Login codes, sessions, and requests that come twice."""

from __future__ import annotations

import threading

import pytest

from tests.record.lives import OPERATOR
from truegreen.errors import Forbidden, InvalidInput, KeyReused, Unauthenticated
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.entrance import SESSION

VIEWER = Actor(Role.VIEWER, "vera")


def test_a_login_code_opens_one_session_and_is_worth_nothing_afterwards(ledger: Ledger):
    token, code = ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)
    session, secret = ledger.log_in(code)
    assert ledger.authenticate(secret, kind=SESSION) == Actor(Role.OPERATOR, "ana")
    assert (token.kind, session.kind) == ("login", "session")
    with pytest.raises(Unauthenticated, match="used, or it has expired"):
        ledger.log_in(code)


@pytest.mark.criterion("O01", "L17")
def test_neither_a_code_nor_a_session_is_a_key_and_no_key_is_a_session(ledger: Ledger):
    _, code = ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)
    _, key = ledger.mint_token(Role.OPERATOR, "ana", actor=OPERATOR)
    for wrong in (code, key):
        with pytest.raises(Unauthenticated):
            ledger.authenticate(wrong, kind=SESSION)
    with pytest.raises(Unauthenticated):
        ledger.authenticate(code)
    with pytest.raises(Unauthenticated):
        ledger.log_in(key)
    _, secret = ledger.log_in(code)
    with pytest.raises(Unauthenticated):
        ledger.authenticate(secret)


def test_a_code_that_expired_opens_nothing(ledger: Ledger):
    _, code = ledger.mint_login(Role.VIEWER, "vera", actor=OPERATOR, seconds=1e-6)
    with pytest.raises(Unauthenticated):
        ledger.log_in(code)


def test_a_session_ends_when_somebody_logs_out_and_ends_once(ledger: Ledger):
    _, secret = ledger.log_in(ledger.mint_login(Role.VIEWER, "vera", actor=OPERATOR)[1])
    for _ in range(2):
        ledger.log_out(secret)
        with pytest.raises(Unauthenticated, match="revoked"):
            ledger.authenticate(secret, kind=SESSION)


def test_logging_out_with_a_key_takes_the_key_from_nobody(ledger: Ledger):
    _, key = ledger.mint_token(Role.OPERATOR, "ana", actor=OPERATOR)
    ledger.log_out(key)
    assert ledger.authenticate(key).name == "ana"


@pytest.mark.parametrize("role", [Role.AGENT, Role.JUDGE, Role.LEAD, Role.SYSTEM])
def test_only_people_log_in(ledger: Ledger, role: Role):
    with pytest.raises(InvalidInput, match="operator or viewer"):
        ledger.mint_login(role, "x", actor=OPERATOR)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.LEAD, Role.AGENT])
@pytest.mark.criterion("O01", "O03")
def test_only_an_operator_lets_somebody_in(ledger: Ledger, role: Role):
    with pytest.raises(Forbidden):
        ledger.mint_login(Role.VIEWER, "x", actor=Actor(role, "eve"))


def test_a_code_that_many_use_at_once_opens_one_session(ledger: Ledger):
    _, code = ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)
    opened: list[str] = []

    def use() -> None:
        try:
            opened.append(ledger.log_in(code)[1])
        except Unauthenticated:
            return

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1


@pytest.mark.criterion("O05")
def test_no_secret_of_a_login_is_kept(ledger: Ledger):
    _, code = ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)
    _, secret = ledger.log_in(code)
    told = repr([told.event for told in ledger.house_events()]) + repr(ledger.tokens())
    assert code not in told
    assert secret not in told
    assert [t.event.event for t in ledger.house_events()].count("token") == 2


def test_the_same_request_comes_first_once_for_each_who_sends_it(ledger: Ledger):
    assert ledger.claim_request("k", "abc", actor=OPERATOR)
    assert not ledger.claim_request("k", "abc", actor=OPERATOR)
    assert ledger.claim_request("k", "abc", actor=VIEWER)


def test_a_key_that_was_used_for_another_request_is_refused(ledger: Ledger):
    ledger.claim_request("k", "abc", actor=OPERATOR)
    with pytest.raises(KeyReused):
        ledger.claim_request("k", "abd", actor=OPERATOR)


@pytest.mark.parametrize("key", ["", "x" * 201, "nul\0"])
def test_a_request_is_named_by_something_that_can_be_kept(ledger: Ledger, key: str):
    with pytest.raises(InvalidInput):
        ledger.claim_request(key, "abc", actor=OPERATOR)
