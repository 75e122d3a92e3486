"""What happens in a repository after its agent was fenced off: commits, moved branches, pushes.

The repository is the agent's: its files are read as data, and its objects by our own git, which
takes no setting, hook or filter from there. Dates are not believed: new is what could not be
reached from any ref at the fence. Who is told about it is not known here.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from os import path as paths

from msgspec import Struct, structs

from truegreen.errors import TruegreenError
from truegreen.tuples import NamedTuple
from truegreen.work.redact import Redactor
from truegreen.work.workspace.dotgit import repository_of
from truegreen.work.workspace.mirror import Mirror
from truegreen.work.workspace.refs import HEADS, TRACKED, Standing, heads_at, standing_of

_DETACHED = "HEAD"
_THERE = "//"  # before a branch as the remote itself has it
_MOST_COMMITS = 500
_MOST_REFS = 50
_MOST_TIPS = 2000
_GIT_S = 10.0
_LOOK_S = 20.0
_WORDS = 200
_FORMAT = "%H%x00%an <%ae>%x00%cn <%ce>%x00%s"


class Begun(Struct, frozen=True, kw_only=True):
    """How a repository stood when an agent came to it."""

    run: str
    task: str
    top: str
    branch: str
    remotes: dict[str, str]
    refs: dict[str, str]


class Watched(Struct, frozen=True, kw_only=True):
    """A repository whose agent was fenced off, as it was last seen."""

    run: str
    task: str
    top: str
    remotes: dict[str, str]
    since: float
    before: tuple[str, ...]
    """What refs named before the agent came."""
    own: tuple[str, ...]
    """Refs that it moved or made, and the branches that it stood on."""
    seen: dict[str, str]
    made: tuple[str, ...] | None = None
    """The commits of the run, and those after the fence; nothing until somebody looked."""
    known: tuple[str, ...] = ()
    """Who committed in the run, and nobody knew from before."""
    told: bool = False
    rests_until: float = 0.0


class Act(NamedTuple):
    """Something that a fenced run must not have done: its kind, and the words for it."""

    kind: str
    detail: str


class Commit(NamedTuple):
    """One commit as it says of itself."""

    id: str
    author: str
    committer: str
    subject: str

    def __str__(self) -> str:
        who = self.author if self.author == self.committer else f"{self.author}, {self.committer}"
        return f"{self.id[:12]} by {plain(who)}: {plain(self.subject)}"


def begun(run: str, task: str, top: str, remotes: dict[str, str]) -> Begun | None:
    """How the repository of a work tree stands before the agent comes."""
    standing = standing_of(top)
    if standing is None:
        return None
    return Begun(
        run=run, task=task, top=top, branch=standing.branch, remotes=remotes, refs=standing.refs
    )


def fenced(first: Begun, last: Begun, since: float) -> Watched | None:
    """How it stands when all runs of a task are fenced off; the first one tells how it was."""
    standing = standing_of(last.top)
    if standing is None:
        return None
    moved = {ref for ref, at in standing.refs.items() if first.refs.get(ref) != at}
    own = {ref for ref in moved if not ref.startswith(TRACKED)}
    stood = {first.branch, last.branch, standing.branch} - {""}
    return Watched(
        run=last.run,
        task=last.task,
        top=last.top,
        remotes=first.remotes,
        since=since,
        before=tuple(sorted({*first.refs.values()})),
        own=tuple(sorted(own | stood | {_DETACHED})),
        seen=_seen(standing, first.remotes, last.top),
    )


def look(watched: Watched, mirrors: str) -> tuple[Watched, list[Act]]:
    """Compare with the last look: what was done meanwhile that is this run's, told once."""
    standing = standing_of(watched.top)
    if standing is None:
        return watched, []
    now = _seen(standing, watched.remotes, watched.top)
    if now == watched.seen:
        return watched, []
    reader = _Reader(mirrors, watched.top)
    if watched.made is None:
        watched = _with_commits_of_the_run(watched, reader)
    compared = _Compared(watched, standing.branch, reader)
    changed = sorted(ref for ref, at in now.items() if watched.seen.get(ref) != at)
    near = [ref for ref in changed if not _is_remote(ref)]
    for ref in near[:_MOST_REFS]:
        compared.here(ref, now[ref])
    for ref in [ref for ref in changed if _is_remote(ref)][:_MOST_REFS]:
        compared.there(ref, now[ref])
    made = (*(watched.made or ()), *compared.fresh)[-4 * _MOST_COMMITS :]
    told = watched.told or bool(compared.acts)
    return structs.replace(watched, seen=now, made=made, told=told), compared.acts


class _Compared:
    """One look, ref by ref: those of the repository first, for they say what is the run's."""

    def __init__(self, watched: Watched, branch: str, reader: _Reader) -> None:
        self._watched, self._reader = watched, reader
        self._own = {*watched.own, branch}
        self._made = {*(watched.made or ())}
        self.fresh: dict[str, None] = {}
        self.acts: list[Act] = []

    def here(self, ref: str, at: str) -> None:
        """A branch or tag that is another now."""
        watched = self._watched
        fresh = self._reader.commits([at], watched.seen.values())
        if fresh is None:
            if ref in self._own:
                words = f"{_short(ref)} names {at[:12]} now, and its commits can't be read"
                self.acts.append(Act("commit", words))
            return
        carried = self._carried(ref, at)
        mine = ref in self._own or carried
        theirs = [
            each for each in fresh if mine or {each.author, each.committer} & {*watched.known}
        ]
        new = [each for each in theirs if each.id not in self.fresh]
        self.fresh.update(dict.fromkeys(each.id for each in theirs))
        if new:
            more = f" (and {len(new) - 1} more)" if len(new) > 1 else ""
            self.acts.append(Act("commit", f"on {_short(ref)}: {new[0]}{more}"))
        elif carried:
            words = f"{_short(ref)} was moved to {at[:12]} and holds work of the run"
            self.acts.append(Act("commit", words))

    def there(self, ref: str, at: str) -> None:
        """A branch of a remote that is another now."""
        carried = self._carried(ref, at)
        if carried:
            words = f"{_short(ref)} is at {at[:12]} and holds {carried[0][:12]} of the run"
            if Act("push", words) not in self.acts:  # the remote itself, and what is known of it
                self.acts.append(Act("push", words))

    def _carried(self, ref: str, at: str) -> list[str]:
        """What a ref holds of the run's commits now, and did not hold before."""
        old = [self._watched.seen[ref]] if ref in self._watched.seen else []
        held = self._reader.commits([at], [*old, *self._watched.before]) or []
        return [each.id for each in held if each.id in self._made or each.id in self.fresh]


class _Reader:
    """Commits of somebody's repository, through a repository of our own."""

    def __init__(self, mirrors: str, top: str) -> None:
        repository = repository_of(top)
        common = repository.common if repository else top
        self._objects = paths.realpath(paths.join(common, "objects"))
        self._deadline = time.monotonic() + _LOOK_S
        try:
            self._mirror: Mirror | None = Mirror(mirrors, paths.realpath(top))
        except TruegreenError:
            self._mirror = None

    def commits(self, of: Iterable[str], without: Iterable[str]) -> list[Commit] | None:
        """Those that some tips reach and others don't, newest first; nothing if it can't tell."""
        tips = [*dict.fromkeys(of)][:_MOST_TIPS]
        hidden = [f"^{at}" for at in [*dict.fromkeys(without)][:_MOST_TIPS]]
        if not tips:
            return []
        if not self._mirror or time.monotonic() > self._deadline:
            return None
        # What git keeps for speed says who a commit's parents are, and the agent can write it.
        options = ["-c", "core.commitGraph=false", "rev-list"]
        options += [f"--max-count={_MOST_COMMITS}", "--ignore-missing", "--no-commit-header"]
        words = [*options, f"--format={_FORMAT}", *tips, *hidden, "--"]
        said = self._mirror.run_git(words, timeout=_GIT_S, beside=self._objects)
        if said.code != 0:
            return None
        lines = said.stdout.decode("utf-8", "replace").split("\n")
        parts = [line.split("\0") for line in lines if line.count("\0") == len(Commit._fields) - 1]
        found = [Commit(*each) for each in parts]
        if found:
            return found
        # A tip that is not there is passed over: then no commits do not mean that there are none.
        said = self._mirror.run_git(
            ["cat-file", "-e", tips[0]], timeout=_GIT_S, beside=self._objects
        )
        return [] if said.code == 0 else None


def _with_commits_of_the_run(watched: Watched, reader: _Reader) -> Watched:
    """What was committed while the agent was there, and by whom that nobody knew."""
    tips = [at for ref, at in watched.seen.items() if ref in watched.own]
    made = reader.commits(tips, watched.before) or []
    people = {who for each in made for who in (each.author, each.committer)}
    before = reader.commits(watched.before[:_MOST_REFS], ()) if people else []
    for each in before or []:
        people -= {each.author, each.committer}
    return structs.replace(
        watched, made=tuple(each.id for each in made), known=tuple(sorted(people))
    )


def _seen(standing: Standing, remotes: dict[str, str], top: str) -> dict[str, str]:
    seen = dict(standing.refs)
    if standing.head and not standing.branch:
        seen[_DETACHED] = standing.head
    for name, address in remotes.items():
        heads = heads_at(address, top)
        seen.update({f"{_THERE}{name}/{ref.removeprefix(HEADS)}": at for ref, at in heads.items()})
    return seen


def _is_remote(ref: str) -> bool:
    return ref.startswith((TRACKED, _THERE))


def _short(ref: str) -> str:
    for start in (HEADS, TRACKED, _THERE, "refs/"):
        if ref.startswith(start):
            return plain(ref.removeprefix(start))
    return plain(ref)


def plain(text: str) -> str:
    """Words of an agent for a person's eyes: one line, short, without secrets."""
    redactor = Redactor()
    safe = redactor.feed(text.encode("utf-8", "replace")) + redactor.flush()
    shown = "".join(
        sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for sign in safe.decode("utf-8", "replace")
    )
    return shown if len(shown) <= _WORDS else f"{shown[:_WORDS]}…"
