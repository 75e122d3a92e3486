"""Held-out cases: read once when a task is created, kept by their digest, never shown to an agent.

A case is what a program is given and what it must answer. Reads a folder of files or one JSON
file that a person wrote outside of the workspace; refuses what can't be read in one way only, and
cases that a program that does nothing would satisfy. Starts no program.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from truegreen.contract import Gate, GateKind
from truegreen.contract.reading import canonical, convert, digest_of, refusal
from truegreen.errors import InvalidInput
from truegreen.patterns import late
from truegreen.work.documents import NotJson, Trouble, inside, read_document, read_regular
from truegreen.work.gates.schema import same

CASES = 1000
DATA_BYTES = 16 * 1024 * 1024
KEPT_BYTES = 64 * 1024 * 1024
_NAME = late(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,99}")
_DIGEST = late(r"sha256:([0-9a-f]{64})")
_PARTS = ("in", "out", "args", "code")
_ARGUMENTS = 1000
_ARGUMENT_BYTES = 100_000
_FILES = 100
_LAST_CODE = 255
_CANT_FAIL = "a program that {} satisfies every case: the cases can't fail"


class Case(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a program is given, and what it must answer: all that is said here must hold."""

    name: str
    args: tuple[str, ...] = ()
    stdin: bytes = b""
    files: dict[str, bytes] = {}
    exit: int = 0
    stdout: bytes | None = None
    json: str | None = None
    """The expected value as a JSON text."""
    contains: tuple[str, ...] = ()

    def satisfied(self, code: int | None, stdout: bytes) -> bool:
        """Whether such an answer is the expected one."""
        return (
            code == self.exit
            and (self.stdout is None or _lines(stdout) == _lines(self.stdout))
            and all(text.encode() in stdout for text in self.contains)
            and (self.json is None or _same_json(stdout, self.json))
        )


class _Written(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case as people write it."""

    name: str = ""
    args: list[str] = []
    stdin: str = ""
    files: dict[str, str] = {}
    exit: int | UnsetType = UNSET
    stdout: str | UnsetType = UNSET
    json: Any = UNSET
    contains: str | list[str] = []


def _lines(text: bytes) -> list[bytes]:
    """Text as lines; how a line ends and how many empty ones come last is no difference."""
    return text.replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")


def _same_json(stdout: bytes, expected: str) -> bool:
    try:
        return same(read_document(stdout), read_document(expected.encode()))
    except (NotJson, RecursionError):
        return False


# --- from files to cases


def read_cases(path: str) -> tuple[Case, ...]:
    """The cases in a folder or a file; InvalidInput says what is wrong with them."""
    cases = _from_folder(path) if os.path.isdir(path) else _from_file(path)
    if not cases:
        raise _wrong(path, "there is no case in it")
    if len(cases) > CASES:
        raise _wrong(path, f"{len(cases)} cases; the limit is {CASES}")
    seen: set[str] = set()
    for case in cases:
        _check(case, path)
        if case.name in seen:
            raise _wrong(path, f"two cases are called {case.name!r}")
        seen.add(case.name)
    if why := cant_fail(cases):
        raise _wrong(path, why)
    return tuple(sorted(cases, key=lambda case: case.name))


def _wrong(path: str, problem: str) -> InvalidInput:
    return refusal("data", f"{path}: {problem}")


def _read(path: str) -> bytes:
    found = read_regular(path, within=os.path.dirname(path), limit=DATA_BYTES)
    if isinstance(found, Trouble):
        raise _wrong(path, found.reason)
    return found.data


def _from_folder(folder: str) -> list[Case]:
    parts: dict[str, dict[str, bytes]] = {}
    size = 0
    for file in sorted(os.listdir(folder)):
        name, _, kind = file.rpartition(".")
        if kind not in _PARTS or not name:
            problem = f"{file!r} is no part of a case: NAME.in, NAME.out, NAME.args or NAME.code"
            raise _wrong(folder, problem)
        parts.setdefault(name, {})[kind] = _read(os.path.join(folder, file))
        size += len(parts[name][kind])
        if size > DATA_BYTES or len(parts) > CASES:
            raise _wrong(folder, f"more than {DATA_BYTES} bytes or {CASES} cases")
    return [_of_parts(folder, name, given) for name, given in parts.items()]


def _of_parts(folder: str, name: str, given: Mapping[str, bytes]) -> Case:
    if not {"out", "code"} & given.keys():
        raise _wrong(folder, f"case {name!r} expects nothing: it has no .out and no .code")
    code = given.get("code", b"0").strip()
    if not re.fullmatch(rb"[0-9]{1,3}", code):
        raise _wrong(folder, f"{name}.code is no exit code")
    try:
        words = given.get("args", b"").decode()
    except UnicodeDecodeError:
        raise _wrong(folder, f"{name}.args is no UTF-8 text") from None
    return Case(
        name=name,
        args=tuple(words.removesuffix("\n").split("\n")) if words else (),
        stdin=given.get("in", b""),
        exit=int(code),
        stdout=given.get("out"),
    )


def _from_file(path: str) -> list[Case]:
    data = _read(path)
    try:
        if path.endswith(".jsonl"):
            lines = [line for line in data.split(b"\n") if line.strip()]
            raw = [read_document(line) for line in lines[: CASES + 1]]
        elif path.endswith(".json"):
            raw = read_document(data)
        else:
            raise _wrong(path, "cases are a folder, a .json or a .jsonl file")
    except NotJson as error:
        raise _wrong(path, f"no JSON: {error}") from None
    if not isinstance(raw, list):
        raise _wrong(path, "expected a list of cases")
    return [_of_document(path, n, each) for n, each in enumerate(raw[: CASES + 1], 1)]


def _of_document(path: str, n: int, raw: object) -> Case:
    given = convert(raw, _Written, f"{path}, case {n}")
    expected = (given.exit, given.stdout, given.json)
    if all(value is UNSET for value in expected) and not given.contains:
        raise _wrong(path, f"case {n} expects nothing: give stdout, json, contains or exit")
    texts = [given.contains] if isinstance(given.contains, str) else given.contains
    return Case(
        name=given.name or f"case-{n}",
        args=tuple(given.args),
        stdin=given.stdin.encode(),
        files={name: text.encode() for name, text in given.files.items()},
        exit=0 if isinstance(given.exit, UnsetType) else given.exit,
        stdout=None if isinstance(given.stdout, UnsetType) else given.stdout.encode(),
        json=None if given.json is UNSET else _json_text(given.json),
        contains=tuple(text for text in texts if text),
    )


def _json_text(value: Any) -> str:
    import json  # noqa: PLC0415 - numbers of any size; start-up is measured

    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _check(case: Case, path: str) -> None:
    problems = (
        (not _NAME.fullmatch(case.name), "its name is no plain word"),
        (not 0 <= case.exit <= _LAST_CODE, f"no program exits with {case.exit}"),
        (len(case.args) > _ARGUMENTS, "too many arguments"),
        (any(len(word.encode()) > _ARGUMENT_BYTES for word in case.args), "an argument too long"),
        (any("\0" in word for word in case.args), "a zero byte in an argument"),
        (len(case.files) > _FILES, "too many files"),
        (any(map(_leads_out, case.files)), "a file that does not lie in the tree"),
    )
    for holds, problem in problems:
        if holds:
            raise _wrong(path, f"case {case.name[:100]!r}: {problem}")


def _leads_out(path: str) -> bool:
    plain = os.path.normpath(path) == path and "\0" not in path
    return not plain or path.split("/", maxsplit=1)[0] in ("", ".", "..", ".git")


def cant_fail(cases: Sequence[Case]) -> str:
    """The negative control: why no program could fail these cases; empty if one can."""
    if all(case.satisfied(0, b"") for case in cases):
        return _CANT_FAIL.format("does nothing")
    if all(case.satisfied(0, case.stdin) for case in cases):
        return _CANT_FAIL.format("repeats its input")
    return ""


# --- kept until they are needed


def frozen(gate: Gate, *, here: str, top: str, kept: str) -> Gate:
    """A gate whose cases are read, checked and kept; from now on only their digest counts.

    `here` is where a relative path starts, `top` the work tree that the agent can read.
    """
    if gate.kind is not GateKind.HELD_OUT:
        return gate
    path = os.path.abspath(os.path.join(here, os.path.expanduser(gate.data)))
    real = os.path.realpath(path)
    if inside(real, top):
        problem = f"{path} lies in the workspace, where the agent could read it: move it elsewhere"
        raise refusal("data", problem)
    if inside(top, real):
        raise refusal("data", f"the workspace lies in {path}: name the cases alone")
    if not os.path.exists(real):
        raise refusal("data", f"{path} does not exist")
    digest = keep(read_cases(real), kept)
    if gate.data_digest not in ("", digest):
        raise refusal("data_digest", f"the cases in {path} are {digest}: they were changed")
    return replace(gate, data=real, data_digest=digest)


def keep(cases: tuple[Case, ...], folder: str) -> str:
    """Write the cases where only their owner reads them; their digest is their name."""
    import tempfile  # noqa: PLC0415 - only who creates a task keeps cases; start-up is measured

    text = canonical(cases)
    digest = digest_of(text)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder)  # for its owner's eyes only
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, _place(folder, digest))
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    return digest


def kept_cases(folder: str, digest: str) -> tuple[Case, ...] | str:
    """The cases of a digest, or why there are none."""
    if not folder or not _DIGEST.fullmatch(digest):
        return "its cases were not read when the task was created"
    found = read_regular(_place(folder, digest), within=folder, limit=KEPT_BYTES)
    if isinstance(found, Trouble):
        return f"its cases ({digest[:15]}…) are not kept here any more: the file {found.reason}"
    text = found.data.decode("utf-8", "replace")
    if digest_of(text) != digest:
        return f"its cases ({digest[:15]}…) were changed since the task was created"
    return msgspec.json.decode(text, type=tuple[Case, ...])


def _place(folder: str, digest: str) -> str:
    return os.path.join(folder, f"{digest.removeprefix('sha256:')}.json")


def data_paths(gates: Iterable[Gate]) -> tuple[str, ...]:
    """Where people keep the cases of these gates; nobody in a jail may look there."""
    return tuple(gate.data for gate in gates if gate.data and os.path.isabs(gate.data))
