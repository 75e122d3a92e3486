"""What the agent found, what it left, and clean copies of both.

A snapshot is the workspace as it is (tracked, changed and new files, without what is ignored), as a
git tree in a mirror of our own. No program is ever run in the workspace, nor chosen by it. Knows
nothing of tasks beyond the name that a snapshot is kept under, and nothing of verdicts.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from truegreen import errors
from truegreen.paths import is_inside
from truegreen.patterns import late
from truegreen.tuples import NamedTuple
from truegreen.work.workspace import dotgit, laying, names, objects
from truegreen.work.workspace.disk import FOLDER, room
from truegreen.work.workspace.dotgit import Repository
from truegreen.work.workspace.globs import Globs
from truegreen.work.workspace.ignoring import ignoring
from truegreen.work.workspace.laying import Change
from truegreen.work.workspace.mirror import Mirror
from truegreen.work.workspace.names import shown
from truegreen.work.workspace.objects import COMMIT, LINK, TREE
from truegreen.work.workspace.packs import Naming
from truegreen.work.workspace.walking import (
    LIMITS,
    Choice,
    Keeper,
    Limits,
    Progress,
    TooMuch,
    Walk,
    Walked,
)

__all__ = ["Change", "Globs", "Laid", "Limits", "Snapshot", "TooMuch", "Workspace", "top_of"]

DIFF_BYTES = 65_536
_DIFF_S = 60.0
_NAME = late(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.|lock$|$)){0,127}")
_DERIVED = frozenset({b"__pycache__"})
_BY_THEIR_RULES = (
    ".: too much to take by the rules of the base; what the agent's own rules ignore was left out"
)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A tree in the mirror: its digest is what findings are bound to."""

    digest: str
    kind: str
    commit: str = ""
    branch: str = ""
    ref: str
    id: str
    files: int
    bytes: int
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Laid(msgspec.Struct, frozen=True, kw_only=True):
    """A clean copy, and what the agent had changed under protected paths."""

    root: str
    files: int
    tampered: tuple[Change, ...] = ()


class _Kept(msgspec.Struct, frozen=True):
    """What a snapshot's commit remembers besides its tree."""

    kind: str
    commit: str
    branch: str
    files: int
    bytes: int
    refused: tuple[str, ...]
    notes: tuple[str, ...]
    exclude: str
    rules: dict[str, str] = {}


class Workspace:
    """One agent's folder and the mirror that keeps what was in it."""

    def __init__(
        self,
        root: str,
        mirrors: str,
        *,
        leave_out: tuple[str, ...] = (),
        limits: Limits = LIMITS,
        progress: Progress | None = None,
    ) -> None:
        """`leave_out`: folders of ours that are no work even where they lie in the workspace."""
        self.root = os.path.realpath(root)
        self._limits = limits
        self._progress = progress
        ours = [os.path.realpath(folder) for folder in (mirrors, *leave_out)]
        self._never = frozenset(_below(self.root, folder) for folder in ours) - {b""}
        self.mirror = Mirror(ours[0], self.root)
        self._base: Snapshot | None = None

    def base(self, task: str) -> Snapshot:
        """Keep the workspace as the agent will find it."""
        ref = f"refs/truegreen/base/{_checked(task)}"
        with self._opened() as folder:
            taking = self._taking(None)
            self._base = self._keep(ref, taking, lambda keeper: self._walk(keeper, taking, folder))
        return self._base

    def left(self, run: str, *, base: Snapshot | None = None) -> Snapshot:
        """Keep what the agent left; `base` is the last one taken unless another is given.

        What the rules of the base did not ignore is taken, whatever the agent ignores now; so is
        what it no longer ignores. A workspace that is gone gives an empty tree that says so.
        """
        ref = f"refs/truegreen/left/{_checked(run)}"
        taking = self._taking(base or self._base)
        try:
            with self._opened() as folder:
                return self._keep_left(ref, taking, folder)
        except _Gone as gone:
            reason = f".: {gone.message}; nothing was left"
            return self._keep(ref, taking, lambda keeper: _nothing(keeper, reason))

    def snapshot_of(self, ref: str) -> Snapshot | None:
        """The snapshot that a ref in the mirror keeps."""
        commit = self.mirror.ref(ref)
        if commit is None:
            return None
        tree, kept = self._read_commit(commit)
        return _snapshot(ref, commit, tree, kept)

    def kept(self, snapshot_id: str, ref: str = "") -> Snapshot | None:
        """The snapshot with this id: unlike what a ref points to, it is the same for ever."""
        if not re.fullmatch(r"[0-9a-f]{40}", snapshot_id):
            return None
        commit = bytes.fromhex(snapshot_id)
        try:
            tree, kept = self._read_commit(commit)
        except errors.Broken:
            return None
        return _snapshot(ref, commit, tree, kept)

    def fetched(self, name: str) -> Snapshot | None:
        """A commit, branch or tag of the workspace's own repository; for a person, not an agent."""
        repository = dotgit.repository_of(self.root)
        if repository is None or not re.fullmatch(r"[\w][\w./-]{0,200}", name):
            return None
        ref = f"refs/truegreen/fetched/{_checked(name.replace('/', '_'))}"
        commit = self.mirror.fetch(repository.folder, name, ref)
        if commit is None:
            return None
        tree, _ = objects.commit_parts(self.mirror.read(commit, COMMIT))
        files = len(objects.flat(tree, self.mirror.tree))
        kept = _Kept("git", commit.hex(), "", files, 0, (), (), "")
        return _snapshot(ref, commit, tree, kept)

    def kept_from(self, folder: str, name: str, like: Snapshot) -> Snapshot:
        """Keep another folder's files as if they were the workspace's."""
        choice = Choice(never_names=_DERIVED, reads_rules=False)
        taking = _Taking(like.kind, dotgit.Head(), b"", choice, None)
        handle = os.open(folder, FOLDER)
        try:
            ref = f"refs/truegreen/made/{_checked(name)}"
            return self._keep(ref, taking, lambda keeper: self._walk(keeper, taking, handle))
        finally:
            os.close(handle)

    def digest(self, *, base: Snapshot | None = None) -> str:
        """The digest that the workspace has now, as `left` would find it; nothing is kept."""
        taking = self._taking(base or self._base)
        try:
            with self._opened() as folder:
                walked = self._walk(Naming(), taking, folder)
        except _Gone:
            walked = _nothing(Naming(), "")
        return f"tree:{walked.tree.hex()}"

    def is_committed(self, snapshot: Snapshot) -> bool:
        """Whether the commit that HEAD named holds exactly this tree; no, where nobody can tell."""
        repository = dotgit.repository_of(self.root)
        if repository is None or not snapshot.commit:
            return False
        return f"tree:{dotgit.tree_of(repository, snapshot.commit)}" == snapshot.digest

    def paths(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Every file of a snapshot."""
        return tuple(names.shown(path) for path in objects.flat(_tree(snapshot), self.mirror.tree))

    def ignores(self, path: str, snapshot: Snapshot) -> bool:
        """Whether the rules of a snapshot ignore a path, or a folder above it."""
        _, kept = self._read_commit(bytes.fromhex(snapshot.id))
        texts = self._rules(kept, objects.flat(_tree(snapshot), self.mirror.tree))
        rules, parts = ignoring(kept.exclude.encode("latin-1")), os.fsencode(path).split(b"/")
        for n in range(len(parts)):
            prefix = b"".join(part + b"/" for part in parts[:n])
            rules = rules.within(prefix, texts.get(prefix, b""))
            inner = n + 1 < len(parts) or os.path.isdir(os.path.join(self.root, path))
            if rules.ignored(prefix + parts[n], folder=inner):
                return True
        return False

    def changes(self, a: Snapshot, b: Snapshot) -> tuple[Change, ...]:
        """What differs from one snapshot to another, by path; a rename is two changes."""
        return laying.compared(*objects.apart(_tree(a), _tree(b), self.mirror.tree))

    def diff(
        self, a: Snapshot, b: Snapshot, paths: tuple[str, ...] = (), limit: int = DIFF_BYTES
    ) -> str:
        """The patch from one snapshot to another, of some files or folders if they are named."""
        options = ["-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"]
        trees = [_tree(a).hex(), _tree(b).hex()]
        said = self.mirror.run_git(
            ["diff-tree", *options, *trees, "--", *paths], timeout=_DIFF_S, limit=limit + 1
        )
        text = said.stdout[:limit].decode("utf-8", "backslashreplace")
        if len(said.stdout) > limit:
            return f"{text}\n… cut: the diff has more than {limit} bytes\n"
        if said.timed_out:
            return f"{text}\n… cut: the diff took more than {_DIFF_S:.0f} s\n"
        if said.code != 0:
            reason = said.stderr.decode("utf-8", "backslashreplace").strip()
            raise errors.Broken(f"git could not compare two snapshots: {reason}")
        return text

    def lay(
        self,
        snapshot: Snapshot,
        into: str,
        *,
        protect: tuple[str, ...] = (),
        base: Snapshot | None = None,
        unless: tuple[str, ...] = (),
        also: Snapshot | None = None,
    ) -> Laid:
        """Lay a snapshot down in a new folder; what is protected comes whole from the base.

        Paths that `unless` covers are taken as they were left. The files of `also` are added
        where the tree has nothing.
        """
        if protect and base is None:
            raise errors.InvalidInput("protected paths come from a base; none was given")
        read = self.mirror.tree
        left = objects.flat(_tree(snapshot), read)
        before = objects.flat(_tree(base), read) if base and protect else {}
        tree, tampered = laying.composed(left, before, protect, self.mirror.blob, unless)
        if also is not None:
            tree = laying.completed(tree, objects.flat(_tree(also), read))
        with room(f"a clean copy in {into}"):
            laying.lay(tree, into, self.mirror.blob, self.mirror.pieces)
        return Laid(root=into, files=len(tree), tampered=tampered)

    def remotes(self) -> dict[str, str]:
        """Name → URL of the repository's remotes; call it before an agent can change them."""
        repository = dotgit.repository_of(self.root)
        return dotgit.remotes_of(repository) if repository else {}

    def describe(self, ref: str) -> str:
        """The command that gives a person a snapshot's files back."""
        snapshot = self.snapshot_of(ref)
        if snapshot is None:
            raise errors.NotFound(f"{ref} keeps nothing in {self.mirror.path}")
        mirror = shlex.quote(self.mirror.path)
        name = ref.removeprefix("refs/")
        if snapshot.kind == "git":
            return f"git fetch {mirror} {ref}:{name}"
        folder = name.replace("/", "-")
        return f"git init -q {folder} && git -C {folder} pull -q {mirror} {ref}"

    # How a snapshot is taken

    @contextmanager
    def _opened(self) -> Iterator[int]:
        where = shown(os.fsencode(self.root))
        try:
            folder = os.open(self.root, FOLDER)
        except FileNotFoundError:
            raise _Gone(f"the workspace {where} does not exist") from None
        except NotADirectoryError:
            raise _Gone(f"the workspace {where} is not a folder") from None
        except OSError as error:
            raise _Gone(f"the workspace {where} can't be read: {error.strerror}") from None
        try:
            yield folder
        finally:
            os.close(folder)

    def _taking(self, base: Snapshot | None) -> _Taking:
        repository = dotgit.repository_of(self.root)
        kind = base.kind if base else "git" if repository else "plain"
        exclude = dotgit.exclude_of(repository) if repository else b""
        head = dotgit.head_of(repository) if repository else dotgit.Head()
        choice = Choice(never=self._never, never_names=_DERIVED, reads_rules=False)
        if kind == "git":
            choice = self._git_choice(base, repository, exclude)
        return _Taking(kind, head, exclude, choice, bytes.fromhex(base.id) if base else None)

    def _git_choice(
        self, base: Snapshot | None, repository: Repository | None, exclude: bytes
    ) -> Choice:
        tracked: set[bytes] = set()

        def all_tracked() -> set[bytes]:
            return tracked | (dotgit.tracked_by(repository) if repository else frozenset())

        choice = Choice(now=ignoring(exclude), never=self._never, tracked=all_tracked)
        if base is None:
            return choice
        _, kept = self._read_commit(bytes.fromhex(base.id))
        excluded = kept.exclude.encode("latin-1")
        tree = objects.flat(_tree(base), self.mirror.tree)
        tracked.update(tree)
        return choice._replace(
            before=choice.now if excluded == exclude else ignoring(excluded),
            texts_before=self._rules(kept, tree),
        )

    def _rules(self, kept: _Kept, tree: laying.Tree) -> dict[bytes, bytes]:
        """The texts of a snapshot's .gitignore files, by the folder that each stands in."""
        hidden = {
            prefix.encode("latin-1"): text.encode("latin-1") for prefix, text in kept.rules.items()
        }
        return hidden | {
            path.removesuffix(b".gitignore"): self.mirror.blob(entry.oid)
            for path, entry in tree.items()
            if path.rpartition(b"/")[2] == b".gitignore" and entry.mode != LINK
        }

    def _walk(self, keeper: Keeper, taking: _Taking, folder: int) -> Walked:
        return Walk(keeper, taking.choice, self._limits, self._progress).take(folder)

    def _keep_left(self, ref: str, taking: _Taking, folder: int) -> Snapshot:
        try:
            return self._keep(ref, taking, lambda keeper: self._walk(keeper, taking, folder))
        except TooMuch:
            if taking.choice.before is None:
                raise
        # Most likely build products of a project that the agent set up: its own rules know them.
        theirs = taking._replace(choice=taking.choice._replace(before=None))

        def take(keeper: Keeper) -> Walked:
            walked = self._walk(keeper, theirs, folder)
            return walked._replace(refused=(*walked.refused, _BY_THEIR_RULES))

        return self._keep(ref, theirs, take)

    def _keep(self, ref: str, taking: _Taking, take: Callable[[Keeper], Walked]) -> Snapshot:
        with self.mirror.packer() as packer:
            walked = take(packer)
            kept = _Kept(
                kind=taking.kind,
                commit=taking.head.commit,
                branch=taking.head.branch,
                files=walked.files,
                bytes=walked.bytes,
                refused=walked.refused,
                notes=walked.notes,
                exclude=taking.exclude.decode("latin-1"),
                rules={
                    prefix.decode("latin-1"): text.decode("latin-1")
                    for prefix, text in walked.hidden_rules.items()
                },
            )
            title = ref.removeprefix("refs/truegreen/").replace("/", " ")
            message = f"truegreen {title}\n\n".encode() + msgspec.json.encode(kept) + b"\n"
            with self.mirror.locked():
                # An earlier snapshot under the same name stays in reach as a parent.
                parents = (taking.parent, self.mirror.ref(ref))
                body = objects.commit_body(
                    walked.tree, filter(None, parents), int(time.time()), message
                )
                commit = packer.add(COMMIT, body)
                packer.finish()
                self.mirror.point(ref, commit)
        self.mirror.tidy()
        return _snapshot(ref, commit, walked.tree, kept)

    def _read_commit(self, commit: bytes) -> tuple[bytes, _Kept]:
        tree, message = objects.commit_parts(self.mirror.read(commit, COMMIT))
        try:
            return tree, msgspec.json.decode(message.partition(b"\n\n")[2], type=_Kept)
        except msgspec.MsgspecError:
            raise errors.Broken(f"commit {commit.hex()} of the mirror is no snapshot") from None


class _Gone(errors.InvalidInput):
    """There is no folder where the workspace should be."""


class _Taking(NamedTuple):
    """How one snapshot is taken."""

    kind: str
    head: dotgit.Head
    exclude: bytes
    choice: Choice
    parent: bytes | None


def top_of(folder: str) -> str:
    """The top of the work tree that a folder lies in; the folder itself where there is no git."""
    here = top = os.path.realpath(folder)
    while dotgit.repository_of(top) is None:
        above = os.path.dirname(top)
        if above == top:
            return here
        top = above
    return top


def _tree(snapshot: Snapshot) -> bytes:
    form, _, name = snapshot.digest.partition(":")
    if form != "tree" or not re.fullmatch(r"[0-9a-f]{40}", name):
        raise errors.InvalidInput(f"{snapshot.digest!r} is not the digest of a tree")
    return bytes.fromhex(name)


def _snapshot(ref: str, commit: bytes, tree: bytes, kept: _Kept) -> Snapshot:
    return Snapshot(
        digest=f"tree:{tree.hex()}",
        kind=kept.kind,
        commit=kept.commit,
        branch=kept.branch,
        ref=ref,
        id=commit.hex(),
        files=kept.files,
        bytes=kept.bytes,
        refused=kept.refused,
        notes=kept.notes,
    )


def _nothing(keeper: Keeper, reason: str) -> Walked:
    return Walked(keeper.add(TREE, b""), 0, 0, (reason,), ())


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise errors.InvalidInput(f"{name!r} can't name a snapshot: letters, digits, _ - . only")
    return name


def _below(root: str, folder: str) -> bytes:
    """The path of a folder of ours in the workspace; empty if it lies elsewhere."""
    if is_inside(root, folder):
        raise errors.InvalidInput(
            f"the workspace {root} lies in {folder}, where truegreen's own files are"
        )
    return os.fsencode(os.path.relpath(folder, root)) if is_inside(folder, root) else b""
