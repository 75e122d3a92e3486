"""What goes into a run of a child tree and what comes out of it. Plain values."""

from __future__ import annotations

import errno
import os

import msgspec

from truegreen.contract.terms import Isolation
from truegreen.work.jail import Profile
from truegreen.work.pump import Output
from truegreen.work.tree import Swept

LOG_BYTES = 64 * 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What each process and all of them together are held to. 0 sets no limit.

    The kernel holds each process to `memory` (address space), `file_bytes` (the size of a file) and
    `cpu_s`. The guard counts `processes` and the `resident` memory of all: without isolation nobody
    does. `room_bytes` is what all may add to their writable folders, `spare_bytes` what the file
    systems of these must keep free, whoever fills them.
    """

    memory: int = 0
    processes: int = 0
    file_bytes: int = 0
    cpu_s: int = 0
    resident: int = 0
    room_bytes: int = 0
    spare_bytes: int = 0

    def exceeded(self, stopped: str) -> str:
        """What went beyond these limits, for people; empty where a stop was for another reason."""
        words = {
            "processes": f"more than {self.processes} processes at once",
            "memory": f"used more than {_size(self.resident)} of memory",
            "room": f"wrote more than {_size(self.room_bytes)}",
            "disk": f"less than {_size(self.spare_bytes)} are left on the disk",
        }
        return words.get(stopped, "") if stopped != "disk" or self.spare_bytes else ""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A command, its surroundings and its bounds.

    The environment is complete: nothing is inherited, and only the tag is added. Without a
    `stderr_path`, errors go where the output goes; without a `stdout_path`, nothing is stored.
    """

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    isolation: Isolation = Isolation.AUTO
    jail: Profile = Profile()
    tag: str = ""
    stdout_path: str = ""
    stderr_path: str = ""
    append: bool = False
    """Whether the output goes behind what the files hold already."""
    log_bytes: int = LOG_BYTES
    secrets: tuple[bytes, ...] = ()
    time_s: float = 0
    idle_s: float = 0
    grace_s: float = 5.0
    limits: Limits = Limits()
    stdin_bytes: bytes = b""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a child tree ended.

    `stopped` is empty when it ended by itself; else «time», «idle», «processes», «memory», «room»,
    «disk», or the word that `tick` gave. `swept` was alive when it should not have been.
    `confirmed` says that the tree is known to be empty; `survivors` are those known to live on.
    `fences` says what the kernel kept it from where there was no jail.
    """

    code: int | None = None
    signal: int | None = None
    stopped: str = ""
    launch_error: str = ""
    launch_errno: str = ""
    oom: bool = False
    disk_full: bool = False
    swept: tuple[Swept, ...] = ()
    survivors: tuple[int, ...] = ()
    confirmed: bool = True
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    stdout: Output = Output()
    stderr: Output = Output()
    isolation: Isolation
    fences: tuple[str, ...] = ()


def _size(number: int) -> str:
    step = next((step for step in (30, 20, 10) if number >= 1 << step), 0)
    unit = {30: "GiB", 20: "MiB", 10: "KiB", 0: "bytes"}[step]
    return f"{number / (1 << step):.1f}".removesuffix(".0") + f" {unit}"


def launch_error(step: str, number: int, launch: Launch) -> tuple[str, str]:
    """The errno's name, and a sentence with what to do next."""
    program = launch.argv[0]
    if step == "exec" and "/" in program:
        number = _closer(number, os.path.join(launch.cwd, program))
    name = errno.errorcode.get(number, str(number))
    if step == "cwd":
        return name, _about_cwd(number, launch.cwd)
    if step == "fence":
        sentence = "the kernel refused the fence (Landlock) around the command"
        return name, f"{sentence}: check that its writable folders exist, or ask for a jail"
    if step == "limits":
        return name, f"a limit can't be set ({os.strerror(number)}): ask for less"
    if number == errno.ENOENT and "/" not in program:
        return name, f"{program!r} is not on the PATH: install it, or give its full path"
    sentence = {
        errno.ENOENT: f"there is no file {program!r}: check the path",
        errno.ELIBACC: f"{program!r} is there, but the interpreter that it names is not:"
        " mend its first line, or install what it was built for",
        errno.EACCES: f"{program!r} is not executable: chmod +x it, or name its interpreter first",
        errno.EISDIR: f"{program!r} is a directory: name a program",
        errno.ENOEXEC: f"{program!r} is no program for this machine:"
        " give a script a first line such as #!/bin/sh, or name its interpreter first",
        errno.E2BIG: "arguments and environment are too long: pass long text in a file",
        errno.EMFILE: "this process has too many files open: run fewer at once, or raise ulimit -n",
        errno.ENFILE: "this machine has too many files open: run fewer at once",
        errno.EAGAIN: "no more processes can be started: run fewer at once, or raise ulimit -u",
        errno.ENOMEM: "there is no memory left to start it: run fewer at once",
        errno.ETXTBSY: f"{program!r} is open for writing: try again when it is written",
    }.get(number, f"{program!r} can't be started: {os.strerror(number)}")
    return name, sentence


def _closer(number: int, place: str) -> int:
    """The kernel says the same of a missing program and of a missing interpreter."""
    if number == errno.EACCES and os.path.isdir(place):
        return errno.EISDIR
    if number == errno.ENOENT and os.path.lexists(place):
        return errno.ELIBACC
    return number


def _about_cwd(number: int, cwd: str) -> str:
    if number == errno.ENOENT:
        return f"the working directory {cwd!r} does not exist: create it, or choose another"
    if number == errno.ENOTDIR:
        return f"the working directory {cwd!r} is a file: choose a directory"
    return f"the working directory {cwd!r} can't be entered ({os.strerror(number)})"
