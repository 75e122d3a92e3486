"""Claim files: read, never believed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truegreen.contract import checked
from truegreen.facts import Claim, Statement
from truegreen.model import ClaimKind
from truegreen.record.ledger.inputs import EXTRA_LIMIT, REASON_LIMIT, as_json
from truegreen.work.claims.files import Rejected, counted, read_claim_file
from truegreen.work.claims.kinds import MOST_STATEMENTS

RUN = "run_mine"
EARLIER = time.time_ns() - 3_600_000_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "task-status.json"


def read(file: Path, **more):
    more.setdefault("since_ns", EARLIER)
    return read_claim_file(str(file), run=RUN, **more)


def said(file: Path, **fields) -> Claim:
    file.write_text(json.dumps(fields))
    claim = read(file)
    assert isinstance(claim, Claim), claim
    return claim


def rejected(file: Path, **more) -> str:
    found = read(file, **more)
    assert isinstance(found, Rejected), found
    return found.reason


# --- claim files


@pytest.mark.criterion("A07")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("succeeded", ClaimKind.DONE),
        ("failed", ClaimKind.FAILED),
        ("blocked", ClaimKind.BLOCKED),
        ("noop", ClaimKind.NOOP),
    ],
)
def test_a_claim_is_read_and_further_fields_are_kept(file, status, kind):
    claim = said(file, task_status=status, reason="egress blocked", issues_triaged=0, list=[1])
    assert (claim.kind, claim.reason) == (kind, "egress blocked")
    assert claim.extra == {"issues_triaged": 0, "list": [1]}
    assert claim.source == "file:task-status.json"


def test_no_file_is_no_claim(file):
    assert read(file) is None
    assert read(file.parent / "no" / "folder.json") is None


@pytest.mark.criterion("A08")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("TASK_COMPLETE", "is no JSON"),
        ('{"task_status": "succeeded"} x', "is no JSON"),
        ('{"task_status": "failed", "task_status": "succeeded"}', "is there twice"),
        ('{"task_status": "succeeded", "n": NaN}', "NaN"),
        (b"\xff\xfe", "not UTF-8"),
        ('{"task_status": "succeeded", "x": "\\ud800"}', "lone surrogate"),
        ("[" * 60_000, "nested too deep"),
        ('{"task_status": "succeeded", "x": ' + "[" * 120 + "]" * 120 + "}", "nested too deep"),
        ("[]", "no JSON object"),
        ('"succeeded"', "no JSON object"),
        ("{}", "has no task_status"),
        ('{"task_status": true}', "has the task_status True"),
        ('{"task_status": ["succeeded"]}', "has the task_status"),
        ('{"task_status": "SUCCEEDED"}', "known are succeeded, failed"),
        ('{"task_status": "done"}', "has the task_status 'done'"),
        ('{"task_status": "failed"}', "says failed without a reason"),
        ('{"task_status": "blocked", "reason": "  "}', "says blocked without a reason"),
        ('{"task_status": "succeeded", "reason": 7}', "has a reason that is no text"),
    ],
)
def test_an_unclear_file_is_rejected_with_the_reason(file, text, reason):
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert reason in rejected(file)


GOOD = '{"task_status": "succeeded", "reason": "ok"}'


@pytest.mark.criterion("A08")
def test_a_file_that_is_too_large_is_rejected(file):
    file.write_text(json.dumps({"task_status": "succeeded", "x": "y" * 70_000}))
    assert "too large" in rejected(file)
    file.write_text(GOOD)
    assert "too large" in rejected(file, limit=10)
    with file.open("wb") as sparse:
        sparse.truncate(10 << 30)
    assert "too large" in rejected(file)


@pytest.mark.criterion("A08")
def test_links_pipes_and_folders_are_rejected(file, tmp_path):
    real = tmp_path / "real.json"
    real.write_text(GOOD)
    file.symlink_to(real)
    assert rejected(file) == "the claim file is a link"
    file.unlink()
    file.symlink_to("/nonexistent")
    assert rejected(file) == "the claim file is a link"
    file.unlink()
    os.mkfifo(file)
    assert rejected(file) == "the claim file is no regular file"
    file.unlink()
    file.mkdir()
    assert rejected(file) == "the claim file is no regular file"


@pytest.mark.criterion("A08")
def test_a_file_outside_the_allowed_folder_is_rejected(tmp_path):
    allowed, outside = tmp_path / "allowed", tmp_path / "outside"
    allowed.mkdir()
    outside.mkdir()
    (outside / "s.json").write_text(GOOD)
    (allowed / "link").symlink_to(outside)
    for path in (
        outside / "s.json",
        allowed / "link" / "s.json",
        allowed / ".." / "outside" / "s.json",
    ):
        assert "lies outside" in rejected(path, within=str(allowed))
    (allowed / "s.json").write_text(GOOD)
    assert isinstance(read(allowed / "s.json", within=str(allowed)), Claim)


@pytest.mark.criterion("A09")
def test_a_file_from_before_the_attempt_is_stale(file):
    file.write_text(GOOD)
    now = time.time_ns()
    os.utime(file, ns=(now, now - 1_000_000_000))
    assert rejected(file, since_ns=now) == "the claim file is older than the attempt"
    os.utime(file, ns=(now, now))
    assert isinstance(read(file, since_ns=now), Claim)


def test_a_file_written_at_once_is_not_taken_for_old(file):
    since = time.time_ns()
    file.write_text(GOOD)
    assert isinstance(read(file, since_ns=since), Claim)


@pytest.mark.criterion("A09")
@pytest.mark.parametrize(
    "field", [{"run": "run_other"}, {"TRUEGREEN_RUN": "run_other"}, {"TRUEGREEN_RUN": 7}]
)
def test_another_runs_file_is_rejected(file, field):
    file.write_text(json.dumps({"task_status": "succeeded", **field}))
    assert "speaks for another run" in rejected(file)
    assert said(file, task_status="succeeded", run=RUN, TRUEGREEN_RUN=RUN).extra == {}


def test_a_long_reason_is_cut_so_that_the_record_takes_it(file):
    claim = said(file, task_status="failed", reason="ä\0" * 5000)
    assert checked(claim.reason, "reason", REASON_LIMIT).endswith("…")


any_value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text(max_size=8), any_value, max_size=5),
    st.sampled_from(["succeeded", "failed", "x"]),
)
def test_whatever_is_in_the_file_gives_a_claim_that_can_be_recorded_or_a_reason(fields, status):
    path = Path("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp") / f"claim-{os.getpid()}"  # noqa: S108 - hypothesis has no tmp_path
    try:
        path.write_text(json.dumps({**fields, "task_status": status}), errors="surrogatepass")
        found = read(path)
    finally:
        path.unlink()
    if isinstance(found, Claim):
        as_json(found.extra, "extra", EXTRA_LIMIT)
        checked(found.reason, "reason", REASON_LIMIT)
    else:
        assert found
        assert found.reason


@pytest.mark.criterion("N07")
@pytest.mark.parametrize(
    ("tests", "text"),
    [
        ({"passed": 3, "failed": 0}, "3 tests passed, 0 failed"),
        ("3/0/1", "3 tests passed, 0 failed, 1 skipped"),
        ("3/1", "3 tests passed, 1 failed, 0 skipped"),
        ("passed", "tests: passed"),
        ({"passed": "many"}, "tests: {'passed': 'many'}"),
        ({"passed": True}, "tests: {'passed': True}"),
    ],
)
def test_declared_tests_become_a_statement(file, tests, text):
    claim = said(file, task_status="succeeded", tests=tests)
    assert claim.statements == (Statement(text=text, kind="tests"),)
    assert claim.extra == {"tests": tests}


@pytest.mark.criterion("N07", "J13")
@pytest.mark.parametrize(
    ("fields", "stated"),
    [
        ({"files": ["a.py", "b/c.py"]}, [("file", "changed `a.py`"), ("file", "changed `b/c.py`")]),
        (
            {"files": {"created": ["n.py"], "deleted": ["o.py"], "read": ["p.py"]}},
            [("file", "created `n.py`"), ("file", "deleted `o.py`")],
        ),
        ({"commit": "1a2b3c4d"}, [("commit", "commit 1a2b3c4d")]),
        ({"branch": "agent/fix"}, [("branch", "branch: agent/fix")]),
        ({"pr": 123}, [("pr", "PR #123")]),
        ({"pr": "https://example.org/pull/7"}, [("pr", "PR https://example.org/pull/7")]),
        ({"url": "https://example.org"}, [("url", "live at https://example.org")]),
        ({"lint": True}, [("lint", "lint: passed")]),
        ({"build": "clean"}, [("build", "build: clean")]),
        ({"deployed": True}, [("deploy", "deployed")]),
        ({"deployed": "https://example.org"}, [("deploy", "deployed to https://example.org")]),
        ({"lint": False, "build": None, "deployed": False, "pr": 0, "url": ""}, []),
        ({"files": "a.py", "commit": 7, "branch": [], "pr": True, "url": {}}, []),
        ({"files": [1, None, {"a": 1}, " "]}, []),
    ],
)
def test_declared_fields_become_statements(file, fields, stated):
    claim = said(file, task_status="succeeded", **fields)
    assert [(each.kind, each.text) for each in claim.statements] == stated
    assert claim.extra == fields


def test_a_flood_of_declared_files_is_bounded(file):
    claim = said(file, task_status="succeeded", files=[f"f{n}.py" for n in range(1000)])
    assert len(claim.statements) == MOST_STATEMENTS


def test_declared_text_can_not_break_the_line_it_is_shown_on(file):
    claim = said(file, task_status="succeeded", build="ok\n\x1b[2Kgreen\u202e" + "x" * 500)
    (statement,) = claim.statements
    assert statement.text.startswith("build: ok green")
    assert len(statement.text) <= 200


def test_the_command_and_the_file_declare_tests_alike(file):
    claim = said(file, task_status="succeeded", tests="3/0/1")
    assert claim.statements == (counted(3, 0, 1),)
