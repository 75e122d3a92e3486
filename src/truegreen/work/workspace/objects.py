"""Git's object formats: how blobs, trees and commits are written, read and named. Pure.

We make these ourselves, so that no program has to run to take or to compare a snapshot, and name
every object by its content whenever we read it back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator

from truegreen import errors
from truegreen.tuples import NamedTuple
from truegreen.work.workspace.names import wrong_name

COMMIT, TREE, BLOB = b"commit", b"tree", b"blob"
FILE, PROGRAM, LINK, FOLDER = b"100644", b"100755", b"120000", b"40000"
ID_BYTES = 20
AUTHOR = b"truegreen <truegreen@localhost>"


class Entry(NamedTuple):
    """One file or link of a tree: git's mode and the id of its blob."""

    mode: bytes
    oid: bytes


def naming(kind: bytes, size: int) -> hashlib._Hash:
    """A hash that has seen an object's header and waits for its body."""
    return hashlib.sha1(b"%s %d\0" % (kind, size), usedforsecurity=False)


def name_of(kind: bytes, body: bytes) -> bytes:
    """The id of an object."""
    digest = naming(kind, len(body))
    digest.update(body)
    return digest.digest()


def tree_body(entries: Iterable[tuple[bytes, bytes, bytes]]) -> bytes:
    """A tree of (name, mode, id); git sorts a folder as if its name ended in a slash."""
    ordered = sorted((name + b"/" if mode == FOLDER else name, mode, oid, name)
                     for name, mode, oid in entries)  # fmt: skip
    return b"".join(mode + b" " + name + b"\0" + oid for _, mode, oid, name in ordered)


def tree_entries(body: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The (name, mode, id) of a tree, each name and mode looked at."""
    at = 0
    while at < len(body):
        space = body.index(b" ", at)
        end = body.index(b"\0", space)
        mode, name = body[at:space], body[space + 1 : end]
        at = end + 1 + ID_BYTES
        if mode not in {FILE, PROGRAM, LINK, FOLDER} or wrong_name(name) or at > len(body):
            raise errors.Broken(f"a snapshot's tree holds an entry that we never write: {name!r}")
        yield name, mode, body[end + 1 : at]


def flat(tree: bytes, read: Callable[[bytes], bytes], prefix: bytes = b"") -> dict[bytes, Entry]:
    """Every file and link below a tree by its path."""
    found: dict[bytes, Entry] = {}
    waiting = [(prefix, tree)]
    while waiting:
        above, oid = waiting.pop()
        for name, mode, below in tree_entries(read(oid)):
            if mode == FOLDER:
                waiting.append((above + name + b"/", below))
            else:
                found[above + name] = Entry(mode, below)
    return found


def apart(
    before: bytes, after: bytes, read: Callable[[bytes], bytes]
) -> tuple[dict[bytes, Entry], dict[bytes, Entry]]:
    """What two trees have that differs, by path; folders that are equal are not looked into."""
    gone: dict[bytes, Entry] = {}
    come: dict[bytes, Entry] = {}
    waiting = [(b"", before, after)]
    while waiting:
        above, *trees = waiting.pop()
        old, new = ({n: (m, o) for n, m, o in tree_entries(read(tree))} for tree in trees)
        for name in old.keys() | new.keys():
            sides = (old.get(name), new.get(name))
            if sides[0] == sides[1]:
                continue
            below = above + name + b"/"
            first, second = (side[1] if side and side[0] == FOLDER else b"" for side in sides)
            if first and second:
                waiting.append((below, first, second))
                continue
            for side, tree, found in zip(sides, (first, second), (gone, come), strict=True):
                if tree:
                    found.update(flat(tree, read, below))
                elif side:
                    found[above + name] = Entry(*side)
    return gone, come


def commit_body(tree: bytes, parents: Iterable[bytes], seconds: int, message: bytes) -> bytes:
    """A commit by truegreen at an instant."""
    lines = [b"tree " + tree.hex().encode()]
    lines += [b"parent " + parent.hex().encode() for parent in parents]
    lines += [b"%s %s %d +0000" % (who, AUTHOR, seconds) for who in (b"author", b"committer")]
    return b"\n".join(lines) + b"\n\n" + message


def commit_parts(body: bytes) -> tuple[bytes, bytes]:
    """The tree and the message of a commit."""
    head, _, message = body.partition(b"\n\n")
    word, _, tree = head.partition(b"\n")[0].partition(b" ")
    if word != b"tree" or len(tree) != 2 * ID_BYTES:
        raise errors.Broken("a snapshot's commit does not start with its tree")
    return bytes.fromhex(tree.decode("ascii", "replace")), message
