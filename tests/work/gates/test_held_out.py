"""Gates of kind `held_out`: real programs, honest, hard-coded and spying ones."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table import each_row
from tests.work.gates.trees import Tree
from tests.work.running import need_jail
from truegreen.contract import Gate, GateKind
from truegreen.errors import InvalidInput
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Level
from truegreen.work import verify
from truegreen.work.gates import held_cases, held_out
from truegreen.work.gates.held_cases import Case, cant_fail, frozen, keep, kept_cases, read_cases

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE
needs_jail = pytest.mark.usefixtures("in_jail")

HONEST = "import sys\nprint(sum(map(int, sys.stdin.read().split())))\n"
HARD_CODED = "import sys\nprint({'1 2': 3}.get(sys.stdin.read().strip(), 0))\n"
# Numbers that are in no path and no duration.
SECRET_IN, SECRET_OUT = "3133731337 1111411114", "4245142451"
CASES = [
    {"name": "small", "stdin": "1 2\n", "stdout": "3\n"},
    {"name": "large", "stdin": SECRET_IN, "stdout": SECRET_OUT},
]
ADD = (sys.executable, "-I", "add.py")


class Held:
    """A tree, and cases that are kept for it."""

    def __init__(self, home: Path, files: dict[str, str]) -> None:
        self.tree = Tree(home, {"README": "x", **files})
        self.kept = str(home / "state" / "held")
        self.data = home / "cases.json"

    def gate(self, cases: object, *command: str, **more: Any) -> Gate:
        self.data.write_text(json.dumps(cases))
        words = command or ADD
        gate = Gate(name="held", kind=GateKind.HELD_OUT, command=words, data=str(self.data), **more)
        return frozen(gate, here="/", top=str(self.tree.root), kept=self.kept)

    def ask(self, gate: Gate, **more: Any) -> Finding:
        hidden = (str(Path(self.kept).parent), str(self.data))
        logs = self.tree.home / "state" / "logs"
        logs.mkdir(exist_ok=True)
        given = {"held": self.kept, "hidden": hidden, "logs": str(logs)}
        return self.tree.ask(gate, **{**given, **more})


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path, {"add.py": HARD_CODED})


@pytest.fixture
def in_jail() -> None:
    need_jail()


# --- what it finds


@needs_jail
def test_an_honest_program_is_green_from_outside(held: Held) -> None:
    held.tree.write({"add.py": HONEST})
    found = held.ask(held.gate(CASES))
    assert (found.outcome, found.level) == (PASSED, Level.A4), found
    assert found.counts == {"passed": 2, "failed": 0, "skipped": 0}
    assert "short" not in found.evidence


def test_a_hard_coded_program_is_red_by_the_names_of_cases(held: Held) -> None:
    found = held.ask(held.gate(CASES))
    assert found.outcome is FAILED
    assert found.reason == "1 failed of 2: large (wrong output)"
    assert found.evidence["cases"] == {"passed": ["small"], "failed": ["large"]}


def test_the_program_is_what_the_agent_left_and_not_restored(held: Held) -> None:
    held.tree.write({"add.py": HONEST})
    found = held.ask(held.gate(CASES))
    assert found.outcome is PASSED
    assert "tampered" not in found.evidence


def test_the_program_does_not_see_that_it_is_looked_at(held: Held) -> None:
    watched = "import os\nif {'CI', 'TRUEGREEN_GATE'} & set(os.environ): raise SystemExit\n"
    held.tree.write({"add.py": watched + HONEST})
    assert held.ask(held.gate(CASES)).outcome is PASSED


SPY = """\
import os, sys
given = sys.stdin.read()
print("given", given, file=sys.stderr)
print("GIVEN", given)
sys.exit(int(given.split()[0]) % 200)
"""


def test_neither_inputs_nor_expectations_get_into_what_an_agent_is_told(held: Held) -> None:
    held.tree.write({"add.py": SPY})
    secret = {"name": "s", "stdin": SECRET_IN, "stdout": SECRET_OUT, "args": ["--secret-argument"]}
    more = {"contains": ["secret-text"], "files": {"in.txt": "secret-file"}, "exit": 3}
    found = held.ask(held.gate([{**secret, **more}, {**CASES[0], "json": ["secret-value"]}]))
    assert found.outcome is FAILED
    told = msgspec.json.encode(found).decode() + verify.feedback([found])
    number = str(int(SECRET_IN.split(maxsplit=1)[0]) % 200)
    for word in (*SECRET_IN.split(), SECRET_OUT, "secret", "given", "GIVEN", f"exit {number}"):
        assert word not in told, word
    assert "s (wrong exit code)" in verify.feedback([found])
    # Those who own the cases can look it up.
    log = Path(found.evidence["log"])
    assert SECRET_IN.split(maxsplit=1)[0] in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


CRASH = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (CRASH, "crashed"),
        ("print('x' * 20_000_000)", "too much output"),
        ("raise SystemExit(3)", "wrong exit code"),
        ("", "wrong output"),
    ],
)
def test_a_program_that_does_not_answer_is_red(held: Held, program: str, words: str) -> None:
    held.tree.write({"add.py": program})
    found = held.ask(held.gate(CASES))
    assert found.outcome is FAILED
    assert f"small ({words})" in found.reason


def test_a_program_of_the_tree_that_is_not_there_yet_is_red(held: Held) -> None:
    found = held.ask(held.gate(CASES, "./bin/add"))
    assert found.outcome is FAILED
    assert "there is no such program" in found.reason


@pytest.mark.criterion("E14")
def test_a_program_that_the_machine_does_not_have_is_a_gate_error(held: Held) -> None:
    found = held.ask(held.gate(CASES, "no-such-interpreter", "add.py"))
    assert found.outcome is ERROR
    assert "gate error: case large" in found.reason


@pytest.mark.criterion("E16")
def test_a_program_that_never_ends_is_a_gate_error(held: Held) -> None:
    held.tree.write({"add.py": "while True: pass"})
    found = held.ask(held.gate(CASES, timeout="1s"))
    assert found.outcome is ERROR
    assert "no answer within 1s" in found.reason


# --- one case after the other

REMEMBERS = """\
import os, sys
places = ["memory", os.path.expanduser("~/memory"), os.environ["TMPDIR"] + "/memory",
          "/dev/shm/memory", "src/deep/memory"]
found = [p for p in places if os.path.exists(p)]
given = sys.stdin.read()
for place in places:
    try:
        os.makedirs(os.path.dirname(place) or ".", exist_ok=True)
        open(place, "w").write(given)
    except OSError:
        pass
old = os.path.getmtime("old.txt")
seen = open("old.txt").read()
open("old.txt", "w").write(given)
os.utime("old.txt", (old, old))
print("saw", found, seen == "old")
"""


@needs_jail
def test_a_case_finds_nothing_of_the_cases_before_it(held: Held) -> None:
    held.tree.write({"add.py": REMEMBERS, "old.txt": "old"})
    cases = [{"name": f"c{n}", "stdin": f"{n}\n", "stdout": "saw [] True"} for n in range(3)]
    found = held.ask(held.gate(cases))
    assert found.outcome is PASSED, (found, Path(found.evidence["log"]).read_text())


FORGES = """\
import os, sys
before = os.stat("old.txt")
seen = open("old.txt").read()
with open("old.txt", "r+") as file:
    file.write("new")
os.utime("old.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
print(seen)
"""


def test_a_file_whose_time_was_set_back_is_still_seen_to_be_another(held: Held) -> None:
    held.tree.write({"add.py": FORGES, "old.txt": "old"})
    cases = [{"name": f"c{n}", "stdin": "1", "stdout": "old"} for n in range(2)]
    found = held.ask(held.gate(cases))
    assert found.outcome is PASSED, found


def test_a_copy_that_a_case_did_not_touch_is_used_again(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil  # noqa: PLC0415 - it is what is watched

    copies = []
    copy = shutil.copytree

    def counted(source: str, target: str, *, symlinks: bool) -> str:
        copies.append(target)
        return copy(source, target, symlinks=symlinks)

    monkeypatch.setattr(shutil, "copytree", counted)
    held.tree.write({"add.py": "import helper\n" + HONEST, "helper.py": ""})
    found = held.ask(held.gate(CASES, sys.executable, "add.py"))
    assert found.outcome is PASSED, found
    assert len(copies) == 1


def test_files_of_a_case_are_there_for_that_case_alone(held: Held) -> None:
    program = "import os\nprint(sorted(n for n in os.listdir('in') if n != 'kept'))\n"
    held.tree.write({"add.py": program, "in/kept": ""})
    cases = [
        {"name": "a", "files": {"in/one": "1"}, "stdout": "['one']"},
        {"name": "b", "files": {"in/two": "2", "in/three": "3"}, "stdout": "['three', 'two']"},
    ]
    assert held.ask(held.gate(cases)).outcome is PASSED


def test_files_of_a_case_are_not_written_through_links(held: Held) -> None:
    held.tree.write({"real/x": ""})
    os.symlink("real/x", held.tree.root / "file")
    found = held.ask(held.gate([{"name": "a", "files": {"file": "1"}, "stdout": "x"}]))
    assert found.outcome is ERROR
    assert "leads out" in found.reason


def test_arguments_and_all_expectations_count(held: Held) -> None:
    held.tree.write({"add.py": "import sys, json\nprint(json.dumps({'a': sys.argv[1:], 'n': 1}))"})
    right: dict[str, Any] = {
        "name": "a",
        "args": ["x", "y z"],
        "json": {"n": 1.0, "a": ["x", "y z"]},
    }
    assert held.ask(held.gate([{**right, "contains": ["y z"], "exit": 0}])).outcome is PASSED
    for wrong in ({"json": {"n": True, "a": ["x", "y z"]}}, {"contains": "no"}, {"exit": 1},
                  {"stdout": "{}"}, {"args": ["x"]}):  # fmt: skip
        assert held.ask(held.gate([{**right, **wrong}])).outcome is FAILED, wrong


# --- what is out of reach

LOOKS = """\
import os, sys
found = []
for path in sys.argv[1:]:
    try:
        found.append(open(path).read() if os.path.isfile(path) else os.listdir(path))
    except OSError:
        pass
for at in ("/proc/self/environ", "/proc/self/mountinfo", "/proc/1/cmdline"):
    found += [at] if "31448" in open(at, errors="replace").read() else []
print([each for each in found if each])
"""


@needs_jail
def test_the_program_sees_neither_the_cases_nor_where_they_are_kept(held: Held) -> None:
    held.tree.write({"add.py": LOOKS})
    gate = held.gate([{"name": "other", "stdout": SECRET_OUT}])
    kept = Path(held.kept) / f"{gate.data_digest.removeprefix('sha256:')}.json"
    looked = [str(held.data), str(kept), held.kept]
    assert all(os.path.exists(path) for path in looked)
    spied = [{"name": "a", "args": looked, "stdout": "[]"}, {"name": "b", "stdout": "[]"}]
    found = held.ask(held.gate(spied))
    assert found.outcome is PASSED, Path(found.evidence["log"]).read_text()


def test_an_agent_without_a_jail_could_have_read_them(held: Held) -> None:
    held.tree.write({"add.py": HONEST})
    found = held.ask(held.gate(CASES), exposed="it could")
    assert (found.outcome, found.level) == (PASSED, Level.A2)
    assert found.evidence["short"][0] == "it could"


def test_what_lies_in_doubt_is_worth_no_more_than_elsewhere(held: Held) -> None:
    held.tree.write({"add.py": HONEST})
    assert held.ask(held.gate(CASES), unconfirmed=True).level is Level.A1


# --- cases that can't be used


@pytest.mark.criterion("E15")
@pytest.mark.parametrize(
    ("cases", "why"),
    [
        ([{"name": "a", "stdin": "1", "stdout": ""}], "does nothing"),
        ([{"name": "a", "exit": 0}], "does nothing"),
        ([{"name": "a", "stdin": "1\n", "stdout": "1"}, {"name": "b", "stdout": "\n"}], "repeats"),
        ([{"name": "a", "stdin": "[1]", "json": [1]}], "repeats"),
    ],
)
def test_cases_that_a_null_program_satisfies_are_refused_and_never_a_pass(
    held: Held, cases, why: str
) -> None:
    with pytest.raises(InvalidInput, match=why):
        held.gate(cases)
    made = tuple(held_cases._of_document("x", n, each) for n, each in enumerate(cases))
    digest = keep(made, held.kept)
    gate = Gate(name="h", kind=GateKind.HELD_OUT, command=ADD, data="/x", data_digest=digest)
    held.tree.write({"add.py": HONEST})
    found = held.ask(gate)
    assert found.outcome is ERROR
    assert "the cases can't fail" in found.reason


def test_one_case_that_can_fail_is_enough(held: Held) -> None:
    assert cant_fail([Case(name="a", stdout=b""), Case(name="b", stdout=b"x")]) == ""


def test_cases_that_were_changed_or_removed_are_no_cases(held: Held) -> None:
    held.tree.write({"add.py": HONEST})
    gate = held.gate(CASES)
    kept = Path(held.kept) / f"{gate.data_digest.removeprefix('sha256:')}.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    text = kept.read_text()
    kept.write_text(text.replace("small", "smell"))
    assert "were changed" in held.ask(gate).reason
    kept.unlink()
    kept.symlink_to(held.data)
    assert "is a link" in held.ask(gate).reason
    kept.unlink()
    assert "is missing" in held.ask(gate).reason
    assert held.ask(gate).outcome is ERROR
    assert "not read" in str(kept_cases("", gate.data_digest))
    assert "not read" in str(kept_cases(held.kept, "../../etc/passwd"))


def test_cases_are_those_from_when_the_task_was_created(held: Held) -> None:
    gate = held.gate(CASES)
    held.data.write_text(json.dumps([{"name": "easy", "stdin": "1 2", "stdout": "3"}]))
    assert held.ask(gate).outcome is FAILED
    held.data.unlink()
    assert held.ask(gate).outcome is FAILED


def test_data_that_the_agent_could_read_is_refused(held: Held) -> None:
    inside = held.tree.root / "cases.json"
    inside.write_text(json.dumps(CASES))
    link = held.tree.home / "elsewhere.json"
    link.symlink_to(inside)
    for path, why in ((inside, "in the workspace"), (link, "in the workspace"),
                      (held.tree.home, "workspace lies in"),
                      (held.tree.home / "nothing", "does not exist")):  # fmt: skip
        gate = Gate(name="h", kind=GateKind.HELD_OUT, command=ADD, data=str(path))
        with pytest.raises(InvalidInput, match=why):
            frozen(gate, here="/", top=str(held.tree.root), kept=held.kept)


def test_a_digest_that_a_person_wrote_down_must_fit(held: Held) -> None:
    digest = held.gate(CASES).data_digest
    assert held.gate(CASES, data_digest=digest).data_digest == digest
    with pytest.raises(InvalidInput, match="they were changed"):
        held.gate(CASES[:1], data_digest=digest)


# --- how people write cases


def write(folder: Path, **files: str | bytes) -> Path:
    folder.mkdir()
    for name, data in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


def test_a_folder_of_cases(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "c",
        a__in=b"\xff\x00in",
        a__out="out\n",
        a__args="one\ntwo words\n",
        b__code="3\n",
        **{"c.d__out": "x"},
    )
    assert read_cases(str(folder)) == (
        Case(name="a", stdin=b"\xff\x00in", stdout=b"out\n", args=("one", "two words")),
        Case(name="b", exit=3),
        Case(name="c.d", stdout=b"x"),
    )


def test_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"name": "b", "stdout": "1"}\n\n{"json": null, "stdin": "x"}\n')
    assert read_cases(str(path)) == (
        Case(name="b", stdout=b"1"),
        Case(name="case-2", stdin=b"x", json="null"),
    )


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "no case"),
        ({"a__in": "1"}, "expects nothing"),
        ({"a__out": "1", "README": "hello"}, "no part of a case"),
        ({"a__out": "1", "__out": "2"}, "no part of a case"),
        ({"a__out": "1", "a__code": "-1"}, "no exit code"),
        ({"a__out": "1", "a__code": "999"}, "no program exits"),
        ({"a__out": "1", "a__args": b"\xff"}, "no UTF-8"),
        ({"a__out": "1", "a__args": "x\0y"}, "zero byte"),
        ({"-a__out": "1"}, "no plain word"),
    ],
)
def test_a_folder_that_is_not_understood_is_refused(tmp_path: Path, files, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        read_cases(str(write(tmp_path / "c", **files)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "no case"),
        ("{}", "expected a list"),
        ("[{}]", "expects nothing"),
        ('[{"stdout": "a", "stdout": "b"}]', "twice"),
        ('[{"stdout": "a", "expected": "b"}]', "expected"),
        ('[{"stdout": 1}]', "stdout"),
        ('[{"json": NaN}]', "no JSON"),
        ("[" * 5000, "no JSON"),
        ('[{"name": "a", "stdout": "1"}, {"name": "a", "stdout": "2"}]', "two cases"),
        ('[{"name": "a/../b", "stdout": "1"}]', "no plain word"),
        ('[{"name": "a\\u202e", "stdout": "1"}]', "no plain word"),
        ('[{"files": {"/etc/x": ""}, "stdout": "1"}]', "does not lie in the tree"),
        ('[{"files": {"a/../../x": ""}, "stdout": "1"}]', "does not lie in the tree"),
        ('[{"files": {".git/hooks/x": ""}, "stdout": "1"}]', "does not lie in the tree"),
        ('[{"exit": 256}]', "no program exits"),
        ('[{"args": ["\\u0000"], "stdout": "1"}]', "zero byte"),
        (json.dumps([{"stdout": "1"}] * 1001), "limit is 1000"),
        (json.dumps([{"args": ["x" * 200_000], "stdout": "1"}]), "too long"),
        (json.dumps([{"args": ["x"] * 1001, "stdout": "1"}]), "too many"),
        (json.dumps([{"files": {f"f{n}": "" for n in range(101)}, "stdout": "1"}]), "too many"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=why):
        read_cases(str(path))


def test_other_files_and_too_much_are_refused(tmp_path: Path, monkeypatch) -> None:
    other = tmp_path / "c.yaml"
    other.write_text("a: 1")
    with pytest.raises(InvalidInput, match=r"a folder, a \.json or a \.jsonl"):
        read_cases(str(other))
    monkeypatch.setattr(held_cases, "DATA_BYTES", 10)
    large = tmp_path / "c.json"
    large.write_text(json.dumps([{"stdout": "x" * 20}]))
    with pytest.raises(InvalidInput, match="too large"):
        read_cases(str(large))
    with pytest.raises(InvalidInput, match="more than 10 bytes"):
        read_cases(str(write(tmp_path / "f", a__out="123456", b__out="123456")))


_TEXT = st.text(max_size=20)
_CASE = st.builds(
    Case,
    name=st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True),
    args=st.lists(_TEXT.filter(lambda text: "\0" not in text), max_size=3).map(tuple),
    stdin=st.binary(max_size=20),
    files=st.dictionaries(st.sampled_from(["a", "b/c"]), st.binary(max_size=9), max_size=2),
    exit=st.integers(0, 255),
    stdout=st.none() | st.binary(max_size=20),
    json=st.none() | st.sampled_from(["null", "[1]", '"a"']),
    contains=st.lists(_TEXT, max_size=2).map(tuple),
)


@given(cases=st.lists(_CASE, max_size=5).map(tuple))
@settings(deadline=None, max_examples=60)
def test_kept_cases_come_back_as_they_were(cases, tmp_path_factory) -> None:
    folder = str(tmp_path_factory.getbasetemp() / "kept")
    digest = keep(cases, folder)
    assert kept_cases(folder, digest) == cases
    assert keep(cases, folder) == digest


@given(code=st.none() | st.integers(0, 255), stdout=st.binary(max_size=30), case=_CASE)
@settings(deadline=None)
def test_only_an_answer_that_fits_everything_satisfies(code, stdout: bytes, case: Case) -> None:
    if not case.satisfied(code, stdout):
        return
    assert code == case.exit
    assert (
        case.stdout is None
        or stdout.rstrip(b"\r\n") == case.stdout.rstrip(b"\r\n")
        or (b"\r\n" in stdout + case.stdout)
    )
    assert all(text.encode() in stdout for text in case.contains)


@each_row(
    ("expected", "got", "fits"),
    [
        (b"a\n", b"a", True),
        (b"a", b"a\n\n", True),
        (b"a\nb\n", b"a\r\nb\r\n", True),
        (b"a", b"a ", False),
        (b"a", b"\na", False),
        (b"", b"\n", True),
        (b"\xff", b"\xff\n", True),
    ],
)
def test_how_lines_end_is_no_difference(expected: bytes, got: bytes, fits: bool) -> None:
    assert Case(name="a", stdout=expected).satisfied(0, got) is fits


def test_the_room_of_the_cases_is_gone_afterwards(held: Held, monkeypatch) -> None:
    cleared = []
    clear = held_out._Table.clear

    def watched(table: held_out._Table) -> None:
        assert os.path.exists(table._place)
        clear(table)
        assert not os.path.exists(table._place)
        cleared.append(table)

    monkeypatch.setattr(held_out._Table, "clear", watched)
    held.ask(held.gate(CASES))
    assert len(cleared) == 1
