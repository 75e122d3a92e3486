"""`token`: a secret is said once and kept nowhere."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from truegreen.errors import Unauthenticated
from truegreen.model import Role
from truegreen.record.ledger import open_ledger

CREATE = ("token", "create", "--role", "lead", "--name", "ci")


def everything_written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.criterion("O05")
def test_a_secret_is_printed_once_and_is_nowhere_else(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    answer = tg(*CREATE)
    secret = answer.out.strip()
    assert re.fullmatch(r"tg_lead_[\w-]{43}", secret)
    assert answer.out == f"{secret}\n"
    assert secret not in answer.err
    for words in (
        ["token", "list"],
        ["token", "list", "--json"],
        ["events", "--json"],
        ["doctor", "--json"],
        ["list", "--json"],
        ["token", "revoke", "tok_1", "--json"],
    ):
        again = tg(*words)
        assert again.status == 0
        assert secret not in again.out + again.err
        assert secret.removeprefix("tg_lead_") not in again.out + again.err
    ledger = open_ledger(furnished.url)
    ledger.close()
    assert secret.encode() not in everything_written(tmp_path)


def test_the_secret_opens_the_ledger_under_its_name(tg: Run, furnished_anywhere: Furnished):
    secret = tg(*CREATE, "--json").json()["secret"]
    ledger = open_ledger(furnished_anywhere.url)
    actor = ledger.authenticate(secret)
    ledger.close()
    assert (actor.role, actor.name) == (Role.LEAD, "ci")


def test_a_secret_goes_into_a_file_for_its_owner_alone(
    tg: Run, furnished: Furnished, tmp_path: Path
):
    answer = tg(*CREATE, "--out", "ci.token", "--json")
    file = tmp_path / "ci.token"
    secret = file.read_text().strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in answer.out
    assert answer.json()["file"] == "ci.token"
    assert "secret" not in answer.json()
    ledger = open_ledger(furnished.url)
    assert ledger.authenticate(secret).name == "ci"
    ledger.close()


@pytest.mark.usefixtures("furnished")
def test_a_secret_in_a_repository_is_warned_of_with_a_better_place(tg: Run, tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path / "fleet"], check=True, timeout=30)
    inside = tg(*CREATE, "--out", "fleet/ci.token")
    assert inside.status == 0
    assert f"is inside the repository {tmp_path / 'fleet'}: agents" in inside.err
    moving = inside.err.split("Move it: ")[1]
    subprocess.run(["sh", "-c", moving], cwd=tmp_path, check=True, timeout=30)
    assert not (tmp_path / "fleet" / "ci.token").exists()
    outside = tg("token", "create", "--role", "viewer", "--name", "other", "--out", "other.token")
    assert (outside.status, "repository" in outside.err) == (0, False)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_secret_overwrites_nothing_and_follows_no_link(
    kind: str, tg: Run, furnished: Furnished, tmp_path: Path
):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    target = tmp_path / "ci.token"
    target.symlink_to(precious) if kind == "link" else target.write_text("mine")
    answer = tg(*CREATE, "--out", "ci.token")
    assert (answer.status, answer.out) == (2, "")
    assert target.read_text() == precious.read_text() == "mine"
    assert tg("token", "list", "--json").json() == {"tokens": []}


def test_no_file_stays_when_no_token_was_made(tg: Run, tmp_path: Path):
    (tmp_path / "garbage.db").write_bytes(b"no database" * 1000)
    answer = tg(*CREATE, "--out", "ci.token", "--store", "garbage.db")
    assert answer.status == 70
    assert not (tmp_path / "ci.token").exists()


def test_no_token_stays_when_its_secret_could_not_be_said(
    environ: Callable[..., dict[str, str]], tg: Run, furnished: Furnished
):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SCRIPT, *CREATE], stdout=full, stderr=-1, check=False, env=environ())
    assert done.returncode == 5
    assert b"Traceback" not in done.stderr
    (token,) = tg("token", "list", "--json").json()["tokens"]
    assert token["state"] == "revoked"


@pytest.mark.parametrize("role", ["agent", "judge"])
def test_roles_that_are_bound_to_a_run_are_refused_with_the_reason(
    role: str, tg: Run, furnished: Furnished
):
    words = ("token", "create", "--role", role, "--name", "x")
    answer = tg(*words)
    assert (answer.status, answer.out) == (2, "")
    assert "bound to one run" in answer.err
    allowed = tg(*words, "--json").error("invalid_input")["allowed"]
    assert allowed == ["viewer", "lead", "operator"]


@pytest.mark.parametrize(
    "words",
    [
        ["--role", "system", "--name", "x"],
        ["--role", "king", "--name", "x"],
        ["--role", "viewer", "--name", " "],
        ["--role", "viewer", "--name", "x" * 1000],
        ["--role", "viewer", "--name", "x", "--ttl", "soon"],
        ["--role", "viewer", "--name", "x", "--ttl", "0"],
        ["--role", "viewer", "--name", "x", "--ttl", "-5"],
        ["--role", "viewer", "--name", "x", "--ttl", "999999999d"],
        ["--name", "x"],
    ],
)
def test_a_wrong_wish_makes_no_token(words: list[str], tg: Run, furnished: Furnished):
    answer = tg("token", "create", *words)
    assert (answer.status, answer.out) == (2, "")
    assert tg("token", "list", "--json").json() == {"tokens": []}


def test_tokens_are_listed_with_their_state_and_revoked_for_good(tg: Run, furnished: Furnished):
    secret = tg(*CREATE).out.strip()
    tg("token", "create", "--role", "viewer", "--name", "tv", "--ttl", "30d")
    tg("token", "create", "--role", "viewer", "--name", "short", "--ttl", "1ms")
    time.sleep(0.002)
    tokens = {token["name"]: token for token in tg("token", "list", "--json").json()["tokens"]}
    assert {name: token["state"] for name, token in tokens.items()} == {
        "ci": "active",
        "tv": "active",
        "short": "expired",
    }
    assert tokens["tv"]["expires_at"]
    assert tokens["ci"]["expires_at"] is None
    ours = tokens["ci"]["id"]
    revoked = tg("token", "revoke", ours, "--reason", "leaked", "--json").json()["token"]
    assert (revoked["state"], revoked["id"]) == ("revoked", ours)
    assert tg("token", "revoke", ours, "--json").json()["token"] == revoked, "again: no change"
    line = next(line for line in tg("token", "list").out.splitlines() if line.startswith(ours))
    assert "revoked" in line
    ledger = open_ledger(furnished.url)
    with pytest.raises(Unauthenticated):
        ledger.authenticate(secret)
    ledger.close()
    events = [json.loads(line) for line in tg("events", "--json").out.splitlines()]
    last = [event for event in events if event["event"] == "token"]
    assert last[-1]["reason"] == "leaked"
    assert last[-1]["actor"].startswith("operator:")


def test_an_unknown_token_is_not_found(tg: Run, furnished: Furnished):
    tg("token", "revoke", "tok_zzz", "--json").error("not_found")
    tg("token", "revoke", "../etc", "--json").error("invalid_input")


def test_tokens_that_nobody_named_have_names_of_their_own(tg: Run, furnished: Furnished):
    made = [tg("token", "create", "--role", "viewer", "--json").json() for _ in range(2)]
    names = {each["token"]["name"] for each in made}
    assert len(names) == 2
    assert all(name.startswith("viewer-") for name in names)
    assert made[0]["secret"] != made[1]["secret"]
