"""The agent at work: one process tree of a run, and those of its re-entries, one after another.

A run is one attempt, however often its agent is sent back in. What each stint used counts against
the same caps, and all of it goes into one log.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from truegreen.contract import Caps, Contract, Home
from truegreen.doors import marks
from truegreen.facts import SYSTEM, Child, Processes, Usage
from truegreen.model import Role
from truegreen.supervisor.doorway import Doorway
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.place import Place, environment, own_variables
from truegreen.supervisor.prepared import caps_left
from truegreen.supervisor.roster import Roll
from truegreen.tuples import NamedTuple
from truegreen.work.agents import Adapter, Ending, Expectation, Live, Reader, Reading
from truegreen.work.agents.pointing import provider_keys
from truegreen.work.agents.reading import census
from truegreen.work.agents.wrappers import shell_text, variables_in
from truegreen.work.exits import BARRED
from truegreen.work.gates.held_cases import data_paths
from truegreen.work.jail import Placed, Profile, shielded
from truegreen.work.process import Ended, Launch, Limits, run
from truegreen.work.settings_files import around, still
from truegreen.work.tree import Identity
from truegreen.work.watch import HOLD

_MOST_PROCESSES = 4096
"""A fork bomb ends here; no honest agent comes near."""
_NEARLY = 0.8


class Stint(NamedTuple):
    """One process tree of a run from its start to its end."""

    ended: Ended
    reading: Reading
    live: Live
    touched: dict[str, str]
    """Which files of judges are others than before the run."""

    @property
    def usage(self) -> Usage:
        """What it consumed."""
        live, seconds = self.live, round(self.ended.seconds, 3)
        return Usage(live.turns, live.tokens, live.cost_usd, seconds)

    @property
    def is_barred(self) -> bool:
        """Whether its conversation is that of somebody who must not act any more."""
        return self.ended.stopped.lstrip("!").startswith(BARRED)

    @property
    def is_plain_stop(self) -> bool:
        """Whether the agent just stopped: nobody ended it, and nothing went wrong."""
        ended = self.ended
        quiet = not ended.stopped and not ended.launch_error and not ended.survivors
        return quiet and ended.code == 0 and ended.signal is None and ended.confirmed


class Worker:
    """Starts the agent of one run, as often as it is sent in."""

    def __init__(self, errand: Errand, more: dict[str, str]) -> None:
        """`more` are further variables for the agent."""
        self._ledger, self._place, self._watch = errand.ledger, errand.place, errand.watch
        self._prepared, self._ticket, self._pulse = errand.prepared, errand.ticket, errand.pulse
        self._more = more
        ticket = errand.ticket
        self.files = self._place.make(ticket)
        _, self.secret = self._ledger.mint_token(
            Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket
        )
        self.doorway: Doorway | None = None
        """The doors that are open for the agent."""
        self._roll = Roll(self._ledger, ticket, self._watch)
        self._waiting = False
        self._warned = False
        self.withheld: list[str] = []
        """Variables that the agent may need and does not get."""
        self.stints: list[Stint] = []

    @property
    def usage(self) -> Usage:
        """What all stints consumed together: as a door counted it, else as the client told."""
        return self.doorway.spent(self._told()) if self.doorway else self._told()

    def door_facts(self) -> dict[str, Any]:
        """What the doors saw of the run."""
        return self.doorway.facts(self._told()) if self.doorway else {}

    def _told(self) -> Usage:
        used = [stint.usage for stint in self.stints]
        return Usage(
            sum(each.turns for each in used),
            sum(each.tokens for each in used),
            sum(each.cost_usd for each in used),
            round(sum(each.seconds for each in used), 3),
        )

    def work(
        self, argv: tuple[str, ...], feedback: str, heard: Callable[[], None] | None = None
    ) -> Stint:
        """Send the agent in, and wait until all of it is gone; `heard` is called when it is in."""
        caps = caps_left(self._prepared.caps, [msgspec.json.encode(self.usage).decode()])
        reader = self._prepared.adapter.reader(self._expected(argv))
        ended = self._run(self._launch(argv, feedback, caps), reader, caps, heard)
        touched = self._prepared.touched_now(self._place)
        stint = Stint(ended, speakable(reader.read(_ending(ended))), reader.live, touched)
        self.stints.append(stint)
        return stint

    def output(self) -> dict[str, Any]:
        """What is known of the whole output."""
        last = self.stints[-1].ended.stdout
        if len(self.stints) == 1:
            return {
                "size": last.size,
                "sha256": last.sha256,
                "truncated": last.truncated,
                **({"missing": last.size - last.stored} if last.truncated else {}),
            }
        with open(self.files.stdout, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        outputs = [stint.ended.stdout for stint in self.stints]
        missing = sum(each.size - each.stored for each in outputs)
        return {
            "size": sum(each.size for each in outputs),
            "sha256": digest,
            "truncated": any(each.truncated for each in outputs),
            **({"missing": missing} if missing else {}),
        }

    def _expected(self, argv: tuple[str, ...]) -> Expectation:
        """What the arguments ask for, and the connectors that the contract says are needed."""
        asked = self._prepared.adapter.expects(argv)
        needed = (*asked.connectors, *self._prepared.contract.connectors)
        return msgspec.structs.replace(asked, connectors=tuple(dict.fromkeys(needed)))

    def _run(
        self, launch: Launch, reader: Reader, caps: Caps, heard: Callable[[], None] | None
    ) -> Ended:
        begun = time.monotonic()
        before = self.usage

        def tick() -> str | None:
            seconds = time.monotonic() - begun
            live = self._counted(reader.live, before)
            self._watch.live(live, seconds, caps)
            word = self._pulse.word()
            self._ask_people(word == HOLD)
            self._warn_of_time(seconds, caps)
            barred = self._roll.call(reader.live)
            checked = HOLD if self.doorway and self.doorway.checking else ""
            return word or barred or self._capped() or checked or over_cap(live, caps)

        def started(identity: Identity) -> None:
            self._pulse.keep({"boot": identity.boot, "pid": identity.pid, "start": identity.start})
            self._ledger.seen(self._ticket)
            if heard:
                heard()
            through = ", through the gateway" if self.doorway and self.doorway.gateway else ""
            how = f"{launch.isolation}{through}"
            self._watch.started(self._ticket, how, self.files.stdout)

        self._watch.phase("agent", "re-entering" if self.stints else "starting")
        # The last look at the fence before there is a process: terminate may have come meanwhile.
        self._pulse.renew()
        ended = run(launch, block=reader.feed, tick=tick, started=started, idle=self._pulse.idles)
        barred = self._roll.close(reader.live)
        if ended.stopped or ended.launch_error:
            return ended
        # The agent may end between two ticks: after a refusal of the gateway, or with a last event
        # that brings its turns, tokens and cost.
        over = self._capped() or over_cap(self._counted(reader.live, before), caps) or ""
        return msgspec.structs.replace(ended, stopped=barred or over)

    def _counted(self, live: Live, before: Usage) -> Live:
        """How far a stint is, with what a door counts instead of what the client tells."""
        if not self.doorway or not self.doorway.gateway:
            return live
        spent = self.doorway.spent(Usage(cost_usd=before.cost_usd + live.cost_usd))
        return msgspec.structs.replace(
            live,
            tokens=spent.tokens - before.tokens,
            cost_usd=spent.cost_usd - before.cost_usd,
            metered=True,
        )

    def _capped(self) -> str:
        """The cap at which a door refused the agent."""
        return self.doorway.gateway.capped if self.doorway and self.doorway.gateway else ""

    def _ask_people(self, waits: bool) -> None:  # noqa: FBT001 - a fact, not a switch
        """Say once what the agent waits for, and how to answer."""
        if waits and not self._waiting:
            task = self._ticket.task
            asked = self._ledger.events(task)[-1].event.reason
            self._watch.warn(f"waits for approval: {asked}")
            self._watch.warn(f"truegreen approve {task}   or   truegreen reject {task} --reason …")
        self._waiting = waits

    def _warn_of_time(self, seconds: float, caps: Caps) -> None:
        """Say once that the time is nearly over."""
        if not self._warned and seconds * 1e6 > _NEARLY * caps.time:
            self._watch.warn(f"{_NEARLY:.0%} of its time ({caps.time}) is over")
            self._warned = True

    def _launch(self, argv: tuple[str, ...], feedback: str, caps: Caps) -> Launch:
        prepared, contract = self._prepared, self._prepared.contract
        own = own_variables(
            self._ticket,
            self.files,
            self.files.write("token", self.secret),
            self.files.write("feedback.md", feedback) if feedback else "",
        )
        env, secrets = environment(
            self._place,
            contract,
            prepared.adapter.passes,
            {**prepared.adapter.env(), **own, **self._more},
        )
        if not self.stints:
            self._note_withheld(env)
        hidden: tuple[bytes, ...] = ()
        if self.doorway:
            argv, env = self.doorway.dressed(argv, env)
            hidden = self.doorway.secrets
        return Launch(
            argv=argv,
            cwd=contract.cwd,
            env=env,
            isolation=prepared.isolation,
            jail=self._profile(),
            tag=self._ticket.run,
            stdout_path=self.files.stdout,
            stderr_path="" if prepared.adapter.merged else self.files.stderr,
            append=bool(self.stints),
            secrets=(*secrets, self.secret.encode(), *hidden),
            time_s=caps.time / 1e6,
            idle_s=caps.idle / 1e6,
            limits=Limits(processes=_MOST_PROCESSES),
        )

    def _note_withheld(self, env: dict[str, str]) -> None:
        """Say in the first attempt which variables the agent does not get."""
        prepared = self._prepared
        self.withheld = withheld_from(self._place, prepared.contract, prepared.adapter, env)
        if self.withheld and not (prepared.failures or prepared.deferrals):
            ways = " ".join(f"--env {name}" for name in self.withheld)
            names = ", ".join(self.withheld)
            self._watch.warn(f"not passed to the agent: {names}. To pass: {ways}")

    def _profile(self) -> Profile:
        contract = self._prepared.contract
        home = self.files.private_home() if contract.home is Home.PRIVATE else ""
        # A hook inside that has lost its run has nothing else to go by.
        fenced = marks.make_folder(self._place.state_dir)
        root = self._prepared.workspace.root
        covered = (*self._place.hidden, *filter(None, [home and self._place.environ.get("HOME")]))
        settings = around((self._place.settings, *self._ledger.pinned()), contract.cwd)
        return Profile(
            writable=contract.writable,
            hidden=(*self._place.hidden, *data_paths(contract.gates)),
            bound=(self.files.inside, *self._prepared.shown, *([home] if home else [])),
            network=contract.network,
            private_home=home,
            placed=(
                *shielded(root),
                Placed(fenced, fenced),
                *still(settings, root, covered),
            ),
        )


def withheld_from(
    place: Place, contract: Contract, adapter: Adapter, env: Mapping[str, str]
) -> list[str]:
    """Variables that an agent may need and does not get.

    Those that its line of shell reads, and keys of model providers if its client is not known.
    """
    shell = shell_text(contract.command, contract.cwd, place.environ.get("PATH", os.defpath))
    wanted = variables_in(shell) if shell else []
    if not adapter.program and not contract.gateway.enabled:
        wanted += provider_keys(place.environ)
    return [
        name
        for name in dict.fromkeys(wanted)
        if name in place.environ and name not in env and not name.startswith("TRUEGREEN_")
    ]


def speakable(reading: Reading) -> Reading:
    """A reading whose texts can be written down: a stream may cut a character in half."""
    plain = msgspec.to_builtins(reading)
    return msgspec.convert(_whole(plain), Reading)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value


def over_cap(live: Live, caps: Caps) -> str | None:
    """The cap that a run has gone beyond; reaching it exactly is allowed."""
    if live.turns > caps.turns:
        return "turns"
    if live.tokens > caps.tokens:
        return "tokens"
    return "cost_usd" if live.cost_usd > caps.cost_usd else None


def _ending(ended: Ended) -> Ending:
    return Ending(
        code=ended.code,
        signal=ended.signal,
        stopped=ended.stopped,
        stderr=ended.stderr.tail,
        survivors=len(ended.survivors),
        swept=len(ended.swept),
    )


def log_facts(worker: Worker) -> dict[str, Any]:
    """Where the output of a run is, and what was alive that should not have been."""
    ended = worker.stints[-1].ended
    swept = [f"{each.name} ({each.pid})" for each in ended.swept[:50]]
    facts = {
        "log": worker.files.stdout,
        "output": worker.output(),
        "swept": swept,
        "withheld": worker.withheld,
        "survivors": list(ended.survivors),
        "unconfirmed": processes_of(worker) is not Processes.GONE,
        "stints": len(worker.stints) if len(worker.stints) > 1 else 0,
        "model": worker.stints[-1].live.model or "",
        "children": census(_children(worker)),
    }
    return {name: value for name, value in facts.items() if value}


def processes_of(worker: Worker) -> Processes:
    """Whether the processes of a run are gone."""
    ended = worker.stints[-1].ended
    if ended.survivors:
        return Processes.ALIVE
    return Processes.GONE if ended.confirmed else Processes.UNCONFIRMED


def _children(worker: Worker) -> Iterable[Child]:
    """All that lived inside of the conversation, each as it was seen last."""
    seen = [child for stint in worker.stints for child in stint.live.children]
    return {(child.kind, child.session): child for child in seen}.values()
