"""Terminate, whoever asks for it: true in the record first, then at the doors and on this machine.

The order is fixed: the record seals and fences, marks tell the hooks, processes are killed and
looked for again, the client's conversation is put out of its reach, and what is left is named.
Nothing after the first step can undo it, and each step can be taken again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from truegreen.doors import marks
from truegreen.facts import Actor, AgentKind
from truegreen.record.ledger import Ledger, Termination
from truegreen.record.ledger.fencing import Conversation, Held, Lost, Whom
from truegreen.record.ledger.tripwires import Fenced
from truegreen.supervisor.holder import host_name, process_of, read_holder
from truegreen.supervisor.place import private_home_of
from truegreen.supervisor.tripwire import note_fence
from truegreen.tuples import NamedTuple
from truegreen.work.agents.sealing import BEGAN_FACT, KEPT_FACT, Kept, Talk, seal
from truegreen.work.silencing import Quarry, Silence, living, silence_runs

ELSEWHERE_SECONDS = 2.0
"""How long supervisors on other machines are waited for; they look at the fence every 0.2 s."""
_LOOK_SECONDS = 0.05
_SKEW_SECONDS = 3600.0
"""The clocks of a machine and of its record may differ."""


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """A run that another machine has to end."""

    run: str
    task: str
    holder: str
    ended: bool
    """Whether its supervisor has said that all of it is gone."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to terminate: the same in every face."""

    task: str | None
    agents: tuple[str, ...]
    outcome: str
    prior_status: str
    already_terminated: bool
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    fence: int = 0
    complete: bool = True
    """Nothing is known to live, and no other machine still owes an answer."""
    runs: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    unconfirmed: tuple[str, ...] = ()
    """Runs of which nothing is seen any more, without proof: their isolation gives none."""
    elsewhere: tuple[Elsewhere, ...] = ()
    sealed: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    """What could not be done beside the record and the kill, and why."""
    retired: tuple[str, ...] = ()
    """The agents that this call has terminated; the others were so before."""
    lost: Lost = Lost()
    """Unread messages and wake-ups that died with them."""


class Aftermath(NamedTuple):
    """What followed from a terminate outside of the record."""

    silence: Silence
    elsewhere: tuple[Elsewhere, ...]
    sealed: tuple[str, ...]
    troubles: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is left that is known of."""
        return not self.silence.survivors and all(run.ended for run in self.elsewhere)


def terminate(
    ledger: Ledger, whom: Whom, *, state_dir: str, actor: Actor, reason: str = ""
) -> Ended:
    """For ever: seal it, fence it off, kill it, and say what is left. Again, it changes nothing."""
    done = _verb(ledger, whom)(whom.id, actor=actor, reason=reason)

    def held() -> list[Held]:
        return ledger.held(task=done.task, agents=done.agents)

    after = enforce(
        held,
        lambda: ledger.names_of(done.agents),
        lambda: ledger.dead_conversations(done.agents),
        state_dir,
    )
    return _answer(done, after, ledger.lost_with(done.retired))


def enforce(
    held: Callable[[], list[Held]],
    names: Callable[[], Fenced],
    conversations: Callable[[], list[Conversation]],
    state_dir: str,
) -> Aftermath:
    """Make it so outside of the record, in the order that leaves the least room."""
    troubles: list[str] = []
    fenced_off = [each for each in held() if each.was_live or _is_of_this_boot(each)]
    silence = silenced(fenced_off, names(), state_dir, troubles)
    sealed = _sealed(conversations(), state_dir, troubles)
    elsewhere = _waited_for(held, _live_elsewhere(fenced_off))
    return Aftermath(silence, elsewhere, sealed, tuple(troubles))


def silenced(held: list[Held], names: Fenced, state_dir: str, troubles: list[str]) -> Silence:
    """Mark the names, then kill what runs here; without a mark it dies all the same."""
    try:
        marks.write(state_dir, names)
    except OSError as error:
        troubles.append(f"marks for hooks could not be written: {error}")
    silence = silence_runs([_quarry(each) for each in held if is_here(each.holder)])
    try:
        note_fence(state_dir, names.runs)
    except OSError as error:
        troubles.append(f"repositories are watched later: {error}")
    return silence


def rehearse(ledger: Ledger, whom: Whom, *, actor: Actor) -> dict[str, Any]:
    """What terminate would end and kill now. Nothing changes, and nothing is counted."""
    would = _verb(ledger, whom)(whom.id, actor=actor, rehearse=True)
    owned = {left.run: left for left in ledger.owned("")}
    quarries = []
    for run in would.runs:
        left = owned.get(run)
        if left and is_here(left.lease.holder):
            quarries.append(Quarry(run, process=process_of(left.lease.process)))
    seen = living(quarries)
    runs = [
        {
            "run": run,
            "holder": owned[run].lease.holder if run in owned else "",
            "here": run in seen,
            "processes": msgspec.to_builtins(seen.get(run, ())),
        }
        for run in would.runs
    ]
    agents = [ledger.agent(agent) for agent in would.agents]
    shown = ("id", "kind", "status", "name", "session")
    return {
        "dry_run": True,
        **msgspec.to_builtins(would),
        "would": {
            "tasks": [{"task": task, "status": ledger.task(task).status} for task in would.tasks],
            "agents": [{name: getattr(agent, name) for name in shown} for agent in agents],
            "runs": runs,
        },
    }


def is_here(holder: str) -> bool:
    """Whether a supervisor of that name is, or was, one of this machine; or of no known one."""
    return read_holder(holder) is None or holder.startswith(host_name())


def _verb(ledger: Ledger, whom: Whom) -> Callable[..., Termination]:
    return ledger.terminate if whom.kind == "task" else ledger.terminate_agent


def _live_elsewhere(held: Iterable[Held]) -> list[Held]:
    """What other machines have to end; checks that are under way there act for nobody."""
    return [each for each in held if each.was_live and not is_here(each.holder)]


def _quarry(held: Held) -> Quarry:
    """A run that nobody can be about to start any more needs no patience and no proof."""
    holder, process = read_holder(held.holder), process_of(held.process)
    held_by_nobody = not held.holder or (holder is not None and not holder.alive())
    over = not held.was_live or (process is None and held_by_nobody)
    return Quarry(held.run, held.isolation, process, _is_gone(held) or (over and not held.doubtful))


def _is_of_this_boot(held: Held) -> bool:
    """Nothing outlives the machine that it ran on."""
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return not held.ended_at or held.ended_at / 1e6 >= booted - _SKEW_SECONDS


def _waited_for(held: Callable[[], list[Held]], others: list[Held]) -> tuple[Elsewhere, ...]:
    """Who ends runs on other machines says so in the record; nobody is called dead before."""
    deadline = time.monotonic() + ELSEWHERE_SECONDS
    while not all(_is_gone(each) for each in others) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        now = {each.run: each for each in held()}
        others = [now.get(each.run, each) for each in others]
    return tuple(
        Elsewhere(run=each.run, task=each.task, holder=each.holder, ended=_is_gone(each))
        for each in others
    )


def _is_gone(held: Held) -> bool:
    return held.is_over and not held.doubtful


def _sealed(
    conversations: list[Conversation], state_dir: str, troubles: list[str]
) -> tuple[str, ...]:
    """Put the conversations of the terminated where their client does not find them."""
    wanted: dict[Kept, list[Talk]] = {}
    for each in conversations:
        if KEPT_FACT not in each.facts:
            continue
        kept = msgspec.convert(each.facts[KEPT_FACT], Kept)
        kept = kept.within(private_home_of(state_dir, each.run))
        further = each.kind is AgentKind.CONVERSATION
        kind = AgentKind.AGENT if further else each.kind
        began = float(each.began.get(BEGAN_FACT) or 0)
        wanted.setdefault(kept, []).append(Talk(kind, each.session, began, further))
    paths: list[str] = []
    for kept, sessions in wanted.items():
        done = seal(kept, sessions)
        paths += done.paths
        troubles += done.troubles
    return tuple(paths)


def _answer(done: Termination, after: Aftermath, lost: Lost) -> Ended:
    met = after.silence.killed or after.silence.survivors
    return Ended(
        task=done.task,
        agents=done.agents,
        outcome="interrupted" if met else done.outcome,
        prior_status=done.prior_status,
        already_terminated=done.already_terminated,
        fence=done.fence,
        runs=done.runs,
        tasks=done.tasks,
        killed=tuple(each.pid for each in after.silence.killed),
        survivors=tuple(each.pid for each in after.silence.survivors),
        unconfirmed=(*after.silence.unconfirmed, *done.inside),
        elsewhere=after.elsewhere,
        sealed=after.sealed,
        troubles=(*after.troubles, *(_living_inside(run) for run in done.inside)),
        retired=done.retired,
        lost=lost,
        complete=after.complete and not done.inside,
    )


def _living_inside(run: str) -> str:
    return f"it lives inside {run}, which goes on: hooks deny it; to kill it, terminate {run}"
