"""Ray: every job is an actor of its own, detached, that starts one process and tells facts of it.

The extra `ray` is loaded when it is first needed. Ray forgets an actor that it kills while the
process of that actor still goes on, and ends it without a word a moment later; so a job is asked to
end first, by a signal to its process, and the actor is removed then.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from truegreen.contract.engines import Engine
from truegreen.engines.seam import Order, Seen
from truegreen.errors import Refused, TruegreenError, Unavailable, install_command
from truegreen.facts import JobWord
from truegreen.tuples import NamedTuple
from truegreen.work.process import spawn_detached
from truegreen.work.silencing import ask_to_end

if TYPE_CHECKING:
    from types import ModuleType

    from truegreen.work.tree import Identity

NAMESPACE = "truegreen"
_SECONDS = 5.0
_GRACE_SECONDS = 4.0
_SHARE = 0.001
"""Of a node's custom resource: a label is something to have, and not to use up."""


class Fact(NamedTuple):
    """What an actor knows of its process."""

    pid: int
    alive: bool
    why: str


class Starter:
    """Lives on a node of Ray, one for each job."""

    def __init__(self) -> None:
        self._process: Identity | None = None
        self._why = ""

    def start(self, argv: tuple[str, ...], env: dict[str, str], log: str) -> Fact:
        """Start the process of the job, in a session of its own."""
        try:
            self._process = spawn_detached(argv, env, "/", log)
        except TruegreenError as error:
            self._why = error.message
        return self.fact()

    def fact(self) -> Fact:
        """Whether its process acts now."""
        process = self._process
        if process is None:
            return Fact(0, False, self._why or "not started")
        alive = process.alive()
        return Fact(process.pid, alive, "running" if alive else "its process has ended")

    def end(self) -> Fact:
        """Ask the process to end, and give it a moment to write down that it did."""
        if self._process is not None:
            ask_to_end(self._process)
            deadline = time.monotonic() + _GRACE_SECONDS
            while self._process.alive() and time.monotonic() < deadline:
                time.sleep(0.05)
        return self.fact()


class Ray:
    """A Ray cluster, as this machine reaches it."""

    def __init__(self, settings: Engine, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def check(self) -> None:
        """The package has to be here, and a Ray to be reached."""
        if find_spec("ray") is None:
            raise Refused(f"ray: the package is not installed: {install_command('ray')}")
        self._ray()

    def submit(self, order: Order) -> str:
        """An actor that is never started again; its name is the order's."""
        ray = self._ray()
        settings = self._settings
        kind = ray.remote(num_cpus=settings.cpus, max_restarts=0, max_task_retries=0)(Starter)
        wanted = dict.fromkeys(order.labels, _SHARE)
        made = kind.options(name=order.job, lifetime="detached", resources=wanted)
        try:
            # As arguments: a runtime environment would be shown to everybody who sees the cluster.
            made.remote().start.remote(order.argv, order.env, order.log)
        except ValueError as error:
            raise Refused(f"ray refused it: {error}") from None
        except _faults(ray) as error:
            raise _unavailable(error) from error
        return order.job

    def look(self, handles: Iterable[str]) -> dict[str, Seen]:
        """What the actors say; one that does not answer may not be placed, or be out of reach."""
        ray = self._ray()
        seen: dict[str, Seen] = {}
        asked: dict[Any, str] = {}
        try:
            for handle in handles:
                actor = _actor(ray, handle)
                if actor is None:
                    seen[handle] = Seen(JobWord.GONE, "ray knows it no more")
                else:
                    asked[actor.fact.remote()] = handle
            ready = ray.wait([*asked], num_returns=len(asked), timeout=_SECONDS)[0] if asked else []
        except _faults(ray) as error:
            raise _unavailable(error) from error
        for reference, handle in asked.items():
            seen[handle] = _heard(ray, reference, handle) if reference in ready else _SILENT
        return seen

    def cancel(self, handle: str) -> None:
        """Ask its process to end, then remove the actor: alone, that may leave the process."""
        ray = self._ray()
        try:
            actor = _actor(ray, handle)
            if actor is not None:
                ray.wait([actor.end.remote()], timeout=_SECONDS)
                ray.kill(actor)
        except _faults(ray) as error:
            raise _unavailable(error) from error

    def _ray(self) -> ModuleType:
        import ray  # noqa: PLC0415 - an extra, and slow to load

        if not ray.is_initialized():
            _connect(ray, self._settings.address or "auto")
        return ray


_SILENT = Seen(JobWord.UNKNOWN, "waits for a node, or is out of reach")


def _connect(ray: ModuleType, address: str) -> None:
    """Ray takes SIGTERM for itself; whoever had it before gets it back."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        message = f"ray can't be reached at {address}: {_first_line(error)}"
        raise Unavailable(f"{message}: ray start, or [engine] address") from None
    finally:
        if signal.getsignal(signal.SIGTERM) is not before:
            signal.signal(signal.SIGTERM, before)


def _actor(ray: ModuleType, handle: str) -> Any:
    try:
        return ray.get_actor(handle)
    except ValueError:
        return None


def _heard(ray: ModuleType, reference: Any, handle: str) -> Seen:
    try:
        fact = Fact(*ray.get(reference, timeout=_SECONDS))
    except ray.exceptions.GetTimeoutError:
        return _SILENT
    except ray.exceptions.RayError as error:
        return Seen(JobWord.GONE, type(error).__name__)
    if fact.alive:
        return Seen(JobWord.RUNNING, f"running as process {fact.pid}")
    actor = _actor(ray, handle)  # it has nothing more to say
    if actor is not None:
        ray.kill(actor)
    return Seen(JobWord.GONE, fact.why)


def _faults(ray: ModuleType) -> tuple[type[Exception], ...]:
    return ray.exceptions.RayError, ConnectionError, RuntimeError, TimeoutError


def _unavailable(error: Exception) -> Unavailable:
    return Unavailable(f"ray does not answer: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
