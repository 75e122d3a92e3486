"""Slurm, by its own commands: sbatch, squeue, scancel.

A job gets exactly the environment of its order, by way of sbatch's own: nothing of it stands in an
argument. Jobs are never requeued by our wish; where Slurm does it all the same, the order has been
taken already.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable, Mapping

from truegreen.contract.engines import Engine
from truegreen.engines.seam import Order, Seen
from truegreen.errors import Refused, Unavailable
from truegreen.facts import JobWord
from truegreen.work.process import Done, tool

_PROGRAMS = ("sbatch", "squeue", "scancel")
_SECONDS = 30.0
_FINDS_IT = ("SLURM_CONF", "SLURM_CLUSTERS")
"""What sbatch itself needs, and the job, to find the right Slurm."""
_WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED"})
_UNDER_WAY = frozenset(
    {"RUNNING", "COMPLETING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING"}
)
_ENDED = frozenset(
    {
        *("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "PREEMPTED"),
        *("OUT_OF_MEMORY", "DEADLINE", "REVOKED", "SPECIAL_EXIT"),
    }
)
_OUT_OF_REACH = ("unable to contact", "connection refused", "timed out", "socket", "try again")
_AGAIN = "slurm does not answer: {}"


class Slurm:
    """A Slurm cluster, as this user reaches it from here."""

    def __init__(self, settings: Engine, environ: Mapping[str, str]) -> None:
        self._settings, self._environ = settings, environ

    def check(self) -> None:
        """Its commands have to be here."""
        path = self._environ.get("PATH", os.defpath)
        absent = [name for name in _PROGRAMS if not shutil.which(name, path=path)]
        if absent:
            message = f"slurm: {', '.join(absent)} not found on PATH: install the Slurm client"
            raise Refused(f"{message} (Debian: apt-get install slurm-client)")

    def submit(self, order: Order) -> str:
        """One batch job on one node."""
        script = f"#!/bin/sh\nexec {shlex.join(order.argv)}\n"
        own = {name: self._environ[name] for name in _FINDS_IT if name in self._environ}
        done = self._tool("sbatch", *self._options(order), stdin=script, env={**own, **order.env})
        if done.code != 0:
            raise _problem(done)
        # `42;cluster` where there are several
        return done.stdout.decode().strip().partition(";")[0]

    def _options(self, order: Order) -> list[str]:
        """The user's own first: of two that contradict each other, sbatch takes the last."""
        settings = self._settings
        words = list(settings.options)
        if settings.partition:
            words.append(f"--partition={settings.partition}")
        if order.labels:
            words.append(f"--constraint={'&'.join(order.labels)}")
        if settings.cpus:
            words.append(f"--cpus-per-task={max(1, round(settings.cpus))}")
        minutes = max(1, -(-order.seconds // 60))
        return [
            *words,
            *("--parsable", "--no-requeue", "--export=ALL", "--nodes=1", "--ntasks=1"),
            *(f"--job-name={order.name}", f"--comment={order.job}", f"--time={minutes}"),
            *(f"--output={order.log}", "--open-mode=append", "--chdir=/"),
        ]

    def look(self, handles: Iterable[str]) -> dict[str, Seen]:
        """All jobs of this user in one question; Slurm forgets those that ended a while ago."""
        wanted = list(handles)
        done = self._tool(
            *("squeue", "--noheader", "--states=all", f"--user={os.geteuid()}"),
            "--format=%i|%T|%r|%N",
        )
        if done.code != 0:
            raise Unavailable(_AGAIN.format(_words(done)))
        found = dict(_read(line) for line in done.stdout.decode().splitlines() if "|" in line)
        unheard = Seen(JobWord.GONE, "slurm knows it no more")
        return {handle: found.get(handle, unheard) for handle in wanted}

    def cancel(self, handle: str) -> None:
        """A job that has ended is no error."""
        done = self._tool("scancel", "--quiet", handle)
        if done.code != 0 and "invalid job id" not in _words(done).lower():
            raise _problem(done)

    def _tool(self, *argv: str, stdin: str = "", env: dict[str, str] | None = None) -> Done:
        environ = dict(self._environ) if env is None else env
        path = self._environ.get("PATH", os.defpath)
        program = shutil.which(argv[0], path=path) or argv[0]
        words = [program, *argv[1:]]
        return tool(words, env=environ, stdin=stdin.encode(), timeout=_SECONDS)


def _read(line: str) -> tuple[str, Seen]:
    handle, state, reason, node = (*line.strip().split("|"), "", "", "")[:4]
    words = state.lower() + (f" on {node}" if node else "")
    if reason not in ("", "None"):
        words += f" ({reason})"
    return handle, Seen(_word(state), words)


def _word(state: str) -> JobWord:
    if state in _WAITING:
        return JobWord.QUEUED
    if state in _UNDER_WAY:
        return JobWord.RUNNING
    return JobWord.GONE if state in _ENDED else JobWord.UNKNOWN


def _words(done: Done) -> str:
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
    return said.rpartition("error: ")[2] or ("no answer in time" if done.timed_out else "no word")


def _problem(done: Done) -> Refused | Unavailable:
    """Whether this job is not wanted, or Slurm can't be reached now."""
    said = _words(done)
    if done.timed_out or any(word in said.lower() for word in _OUT_OF_REACH):
        return Unavailable(_AGAIN.format(said))
    return Refused(f"slurm refused it: {said}")
