"""Reads a repository's own files (HEAD, refs, config, exclude, index) without running git.

Nothing here is believed further than it goes: an agent can write all of it. Reads are bounded, what
is odd counts as absent, and a name only ever becomes a path below the repository's own folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib

from truegreen.patterns import late
from truegreen.tuples import NamedTuple
from truegreen.work.workspace.disk import read_bounded
from truegreen.work.workspace.ignoring import RULES_BYTES
from truegreen.work.workspace.names import PATH_BYTES

_SMALL = 1 << 16
_CONFIG_BYTES = 1 << 20
_REFS_BYTES = 64 << 20
_INDEX_BYTES = 64 << 20
_ID = late(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = late(rb"refs(?:/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+)+")
_SECTION = late(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*')
_VALUE = late(r"([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)")


class Repository(NamedTuple):
    """Where a work tree's repository lies: its own folder, and the one it shares."""

    folder: str
    common: str


class Head(NamedTuple):
    """What is checked out; each may be empty."""

    commit: str = ""
    branch: str = ""


def repository_of(root: str) -> Repository | None:
    """The repository of a work tree: a folder `.git`, or the one that a file `.git` names."""
    folder = os.path.join(root, ".git")
    if not os.path.isdir(folder):
        text = read_bounded(folder, _SMALL) or b""
        word, _, place = text.partition(b": ")
        if word != b"gitdir":
            return None
        folder = os.path.join(root, os.fsdecode(place.rstrip(b"\r\n")))
    if "\0" in folder or read_bounded(os.path.join(folder, "HEAD"), _SMALL) is None:
        return None
    shared = read_bounded(os.path.join(folder, "commondir"), _SMALL)
    common = os.path.join(folder, os.fsdecode(shared.rstrip(b"\r\n"))) if shared else folder
    return Repository(folder, folder if "\0" in common else common)


def head_of(repository: Repository) -> Head:
    """The commit and the branch that HEAD names."""
    text = (read_bounded(os.path.join(repository.folder, "HEAD"), _SMALL) or b"").strip()
    if not text.startswith(b"ref:"):
        return Head(commit=_id(text))
    ref = text[4:].strip()
    if not _REF.fullmatch(ref) or b".." in ref:
        return Head()
    branch = ref.removeprefix(b"refs/heads/").decode("utf-8", "backslashreplace")
    return Head(commit=resolve(repository, ref), branch=branch)


def resolve(repository: Repository, ref: bytes) -> str:
    """The id that a ref names, loose or packed; empty if it names none."""
    for folder in (repository.folder, repository.common):
        if text := read_bounded(os.path.join(folder, os.fsdecode(ref)), _SMALL):
            return _id(text.strip())
    packed = read_bounded(os.path.join(repository.common, "packed-refs"), _REFS_BYTES) or b""
    if ref not in packed:
        return ""  # most often; an expression for every name takes longer than the reading
    found = re.search(rb"^([0-9a-f]+) " + re.escape(ref) + rb"$", packed, re.MULTILINE)
    return _id(found[1]) if found else ""


def tree_of(repository: Repository, commit: str) -> str:
    """The tree that a commit holds: named anew, not believed; empty if it does not lie loose."""
    place = os.path.join(repository.common, "objects", commit[:2], commit[2:])
    data = read_bounded(place, _SMALL) or b""
    try:
        whole = zlib.decompressobj().decompress(data, _SMALL)
    except zlib.error:
        return ""
    if hashlib.sha1(whole, usedforsecurity=False).hexdigest() != commit:
        return ""
    found = re.match(rb"commit [0-9]+\0tree ([0-9a-f]{40})\n", whole)
    return found[1].decode("ascii") if found else ""


def _id(text: bytes) -> str:
    return text.decode("ascii") if _ID.fullmatch(text) else ""


def exclude_of(repository: Repository) -> bytes:
    """The rules of info/exclude."""
    return read_bounded(os.path.join(repository.common, "info", "exclude"), RULES_BYTES) or b""


def remotes_of(repository: Repository) -> dict[str, str]:
    """Name → URL of every remote in the repository's own config; includes are not followed."""
    remotes: dict[str, str] = {}
    for section, name, key, value in _settings(repository):
        if section == "remote" and name and key == "url":
            remotes.setdefault(name, value)
    return remotes


def identity_of(repository: Repository) -> dict[str, str]:
    """Name and mail address that the repository's own config gives to who commits."""
    said = {
        key: value
        for section, name, key, value in _settings(repository)
        if section == "user" and not name and key in ("name", "email") and value.isprintable()
    }
    return {key: value for key, value in said.items() if value}


def unwritable_format(repository: Repository) -> str:
    """Why objects and refs of ours would not be understood there; empty where they are."""
    for section, name, key, value in _settings(repository):
        if section != "extensions" or name:
            continue
        if key == "objectformat" and value.lower() != "sha1":
            return f"objects by {value}"
        if key == "refstorage" and value.lower() != "files":
            return f"branches in a {value}"
    return ""


def _settings(repository: Repository) -> list[tuple[str, str, str, str]]:
    data = read_bounded(os.path.join(repository.common, "config"), _CONFIG_BYTES) or b""
    section, name, found = "", "", []
    for line in data.decode("utf-8", "replace").split("\n"):
        text = line.strip()
        if header := _SECTION.match(text):
            section, name = header[1].lower(), re.sub(r"\\(.)", r"\1", header[2] or "")
            text = text[header.end() :]
        if value := _VALUE.fullmatch(text):
            found.append((section, name, value[1].lower(), _plain(value[2])))
    return found


def _plain(value: str) -> str:
    """A value without its quotes, escapes and comment."""
    plain, quoted, escaped = "", False, False
    for sign in value:
        if escaped:
            plain += {"n": "\n", "t": "\t", "b": "\b"}.get(sign, sign)
            escaped = False
        elif sign == "\\":
            escaped = True
        elif sign == '"':
            quoted = not quoted
        elif sign in "#;" and not quoted:
            break
        else:
            plain += sign
    return plain.strip()


def tracked_by(repository: Repository) -> frozenset[bytes]:
    """The paths in the index; none where the index is missing, split, or not to be understood."""
    data = read_bounded(os.path.join(repository.folder, "index"), _INDEX_BYTES) or b""
    sha256 = ("extensions", "", "objectformat", "sha256") in _settings(repository)
    try:
        return frozenset(_paths(data, id_bytes=32 if sha256 else 20))
    except (IndexError, ValueError, struct.error):
        return frozenset()


def _paths(data: bytes, *, id_bytes: int) -> list[bytes]:
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in {2, 3, 4}:
        raise ValueError("not an index")
    at, path, paths = 12, b"", []
    fixed = 40 + id_bytes
    for _ in range(count):
        flags = struct.unpack_from(">H", data, at + fixed)[0]
        start = at + fixed + (4 if flags & 0x4000 else 2)
        if version == 4:  # noqa: PLR2004 - paths are cut to what differs from the one before
            dropped, start = _offset(data, start)
            end = data.index(b"\0", start)
            path = path[: len(path) - dropped] + data[start:end]
            at = end + 1
        else:
            end = data.index(b"\0", start)
            path = data[start:end]
            at += (end - at + 8) & ~7
        if len(path) > PATH_BYTES:
            raise ValueError("a path that no file has")
        paths.append(path)
    return paths


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, as git writes it before a path; and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1 << 7) | byte & 0x7F
    return value, at + 1
