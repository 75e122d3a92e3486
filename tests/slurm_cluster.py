"""A real Slurm for the tests: munge, a controller and two nodes, all on loopback, none as a daemon.

Every process is a child of the test run and dies with it; files lie in a folder of their own. The
ports are free ones, so that several can run at once. Nothing of the machine's own Slurm is touched.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PARTS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
START_SECONDS = 30.0
KILL_SECONDS = 2
PR_SET_PDEATHSIG = 1
FEATURES = {"n1": "one,linux", "n2": "two,linux"}
CONFIG = """
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool-%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,requeue_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdTimeout={patience}
KillWait={kill}
MinJobAge=20
InactiveLimit=0
FirstJobId=1
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4 Features=one,linux
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=4 Features=two,linux
PartitionName=all Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
"""


def missing_part() -> str:
    """The first program of Slurm that is not here, or nothing."""
    return next((part for part in PARTS if not _found(part)), "")


def _found(part: str) -> str | None:
    return shutil.which(part, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as closing:
        doors = [closing.enter_context(socket.socket()) for _ in range(number)]
        for door in doors:
            door.bind(("127.0.0.1", 0))
        return [door.getsockname()[1] for door in doors]


class Slurm:
    """Two nodes, n1 and n2, with the features `one` and `two`."""

    def __init__(self, home: Path, *, patience: int = 5) -> None:
        self.home, self.config = home, home / "slurm.conf"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        controller, first, second = _free_ports(3)
        self.config.write_text(
            CONFIG.format(
                home=home,
                host=os.uname().nodename,
                user=pwd.getpwuid(os.geteuid()).pw_name,
                port=controller,
                first=first,
                second=second,
                patience=patience,
                kill=KILL_SECONDS,
            )
        )

    @property
    def environ(self) -> dict[str, str]:
        """What a client needs to find this Slurm and no other."""
        return {"SLURM_CONF": str(self.config)}

    def start(self) -> None:
        """Start everything, and wait until both nodes are idle."""
        (self.home / "state").mkdir()
        key = self.home / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        own = ["key-file=munge.key", "socket=munge.socket", "pid-file=munge.pid"]
        own += ["log-file=munge.log", "seed-file=munge.seed"]
        options = [f"--{name}={self.home}/{file}" for name, file in (o.split("=") for o in own)]
        self._run("munged", "--foreground", "--force", *options)
        self._until((self.home / "munge.socket").exists, "munged listens")
        self._run("slurmctld", "-D", "-i", "-f", str(self.config))
        for node in FEATURES:
            self.start_node(node)
        self._until(lambda: self.ask("sinfo", "-h", "-o", "%T").split() == ["idle"], "idle nodes")

    def start_node(self, node: str) -> None:
        """Start the daemon of a node."""
        self._run(f"slurmd-{node}", "-D", "-N", node, "-f", str(self.config))

    def kill(self, name: str) -> None:
        """End one daemon as a crash does; what it started lives on."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def declare_down(self, node: str) -> None:
        """What Slurm does by itself when a node has not answered for a while, now."""
        self.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")

    def mend(self) -> None:
        """Both nodes as they were at first."""
        for node in FEATURES:
            if f"slurmd-{node}" not in self._processes:
                self.start_node(node)
            self.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self._until(lambda: self.ask("sinfo", "-h", "-o", "%T").split() == ["idle"], "idle nodes")

    def clear(self) -> None:
        """No job is left."""
        self.ask("scancel", f"--user={os.geteuid()}")

    def stop(self) -> None:
        """End everything that was started here, and what jobs of this Slurm left behind."""
        self.clear()
        deadline = time.monotonic() + 2 * KILL_SECONDS
        while self.ask("squeue", "-h") and time.monotonic() < deadline:
            time.sleep(0.1)
        for name in reversed(tuple(self._processes)):
            self.kill(name)
        mark = f"SLURM_CONF={self.config}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)

    def ask(self, *words: str) -> str:
        """What one of Slurm's own programs says."""
        done = subprocess.run(
            words, env={**os.environ, **self.environ}, capture_output=True, check=False, text=True
        )
        return done.stdout

    def _run(self, name: str, *options: str) -> None:
        program = _found(name.partition("-")[0])
        assert program, name
        with (self.home / f"{name}.out").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [program, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                preexec_fn=_die_with_parent,
            )

    def _until(self, true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not true():
            if time.monotonic() > deadline:
                raise TimeoutError(f"Slurm: waited in vain for {what}: see {self.home}")
            time.sleep(0.1)


@contextlib.contextmanager
def slurm(home: Path) -> Iterator[Slurm]:
    """A Slurm until the end of the block."""
    home.chmod(0o755)
    made = Slurm(home)
    try:
        made.start()
        yield made
    finally:
        made.stop()
