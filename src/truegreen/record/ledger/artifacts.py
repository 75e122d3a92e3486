"""What agents hand in beside their claim: a name, a digest, a size. The bytes lie elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from truegreen.contract import checked
from truegreen.errors import BudgetSpent, InvalidInput, Stale
from truegreen.facts import Actor, Ticket
from truegreen.patterns import late
from truegreen.record.ledger.desk import Desk
from truegreen.record.rows import Artifact, read
from truegreen.record.store import Tx

LARGEST_ARTIFACT = 16 << 20
MOST_ARTIFACTS, MOST_BYTES = 100, 64 << 20
_NAME_LIMIT = 200
_DIGEST = late(r"[0-9a-f]{64}")


class Artifacts(Desk):
    """Evidence that agents bring."""

    def attach(
        self, ticket: Ticket, name: str, sha256: str, size: int, *, actor: Actor
    ) -> Artifact:
        """Write down that a live run handed something in; a name is used once."""
        self._may(actor, "declare")
        _check(name, sha256, size)

        def act(tx: Tx) -> Callable[[], Artifact]:
            work = self._held(tx, ticket, actor)
            if work.run.exit_reason is not None:
                raise Stale(f"{ticket.run} has ended; it hands nothing in any more", stale="run")
            had = [read(Artifact, row) for row in tx.all("artifacts_of_run", run=ticket.run)]
            same = next((artifact for artifact in had if artifact.name == name), None)
            if same and same.sha256 == sha256:
                return lambda: same
            if same:
                raise InvalidInput(f"{name} was handed in already, with other contents")
            if len(had) >= MOST_ARTIFACTS or size + sum(a.size for a in had) > MOST_BYTES:
                limit = f"{MOST_ARTIFACTS} artifacts, {MOST_BYTES >> 20} MiB in all"
                raise BudgetSpent(f"a run hands in at most {limit}")
            values = {"name": name, "content": sha256, "size": size}
            hit = tx.hit("insert_artifact", run_key=work.run.key, **values, now=tx.now)
            return lambda: read(Artifact, hit.row)

        return self._witnessed("attach", actor, ticket, act, {"name": name, "sha256": sha256})

    def artifacts(self, run_id: str) -> list[Artifact]:
        """What a run handed in, oldest first."""
        with self._store.snapshot() as tx:
            return [read(Artifact, row) for row in tx.all("artifacts_of_run", run=run_id)]

    def alive(self, ticket: Ticket, *, actor: Actor) -> None:
        """The agent of a live run says that it is at work."""
        self._may(actor, "declare")

        def act(tx: Tx) -> Callable[[], None]:
            work = self._held(tx, ticket, actor)
            if work.run.exit_reason is not None:
                raise Stale(f"{ticket.run} has ended", stale="run")
            tx.run("see_active", run_key=work.run.key, now=tx.now)
            return lambda: None

        self._witnessed("alive", actor, ticket, act, {})


def _check(name: str, sha256: str, size: int) -> None:
    if not checked(name, "name", _NAME_LIMIT).strip() or "/" in name or name in (".", ".."):
        raise InvalidInput("an artifact has a plain name, without a folder", path="name")
    if not name.isprintable():
        raise InvalidInput("an artifact's name can be printed", path="name")
    if not _DIGEST.fullmatch(sha256):
        raise InvalidInput("expected a SHA-256 in hexadecimal", path="sha256")
    if not 0 <= size <= LARGEST_ARTIFACT:
        raise InvalidInput(f"an artifact has at most {LARGEST_ARTIFACT >> 20} MiB", path="size")
