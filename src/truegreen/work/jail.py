"""Isolation levels: what this machine allows, and the command line that bubblewrap needs for it.

Mostly words in, words out. The one process it starts is bubblewrap itself, to see whether it works.
What runs inside, and how it ends, is the business of others.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from truegreen.contract.terms import Isolation
from truegreen.errors import IsolationUnavailable
from truegreen.paths import is_named_inside
from truegreen.work import become

PROBE_SECONDS = 10
_SHOWN = 400

# Root inside would otherwise lift the masks, read the disk behind them, reach into the guard, or
# shake off the mark of its run.
ROOT_LOSES = (
    *("CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_BOOT"),
    *("CAP_MKNOD", "CAP_DAC_READ_SEARCH", "CAP_BPF", "CAP_PERFMON", "CAP_SYS_TIME"),
    "CAP_SYS_RESOURCE",
)
DEVICES = ("shm", "dri", "kvm", "fuse", "nvidia0", "nvidiactl", "nvidia-uvm", "kfd", "mqueue")
"""What root gets of /dev beyond the harmless: never a disk."""

# Whoever can talk to a service manager can start a process outside of the jail.
MANAGERS = ("/run/user/{uid}/bus", "/run/user/{uid}/systemd", "/run/systemd/private")


class Placed(msgspec.Struct, frozen=True):
    """Something of ours that is seen at another path; what lies there is covered.

    Whoever places it resolves `at`, before an agent could lay a link on the way: here links are
    refused, unless they lead to where the same is placed. What is missing there is made only inside
    of what is ours.
    """

    source: str
    at: str
    writable: bool = False


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What a jailed process may see and change. Without more, what its user may.

    `hidden` folders are empty and files can't be opened; `bound` brings paths inside of them back.
    The working directory always stays visible: a hidden folder around it is emptied around it. A
    hidden file that does not exist yet is not hidden when it comes: hide its folder.
    `writable` makes everything else but the working directory read-only; with `readonly_root` the
    working directory too, unless it is named. `private_home` is laid over the home directory.
    What is `placed` covers all that is hidden or shown there otherwise, but for writable places
    further down; what is hidden of its source stays so. It needs a jail.
    """

    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    bound: tuple[str, ...] = ()
    placed: tuple[Placed, ...] = ()
    network: bool = True
    readonly_root: bool = False
    private_home: str = ""
    tmp: bool = False


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What isolation this machine allows; `why` says what is in the way of a jail.

    `landlock` is the version of the kernel's own fence, 0 where there is none.
    """

    jail: bool
    reaper: bool
    why: str = ""
    bwrap: str | None = None
    landlock: int = 0


def probe() -> Probe:
    """Try it; once per process and place of bubblewrap."""
    program = find_program("bwrap", os.environ.get("PATH", os.defpath))
    reaper = sys.platform == "linux" and os.path.exists("/proc/self/stat")
    fence = landlock()
    if program is None:
        why = "bubblewrap is not installed: install the package `bubblewrap`"
        return Probe(jail=False, reaper=reaper, why=why, landlock=fence)
    trouble = _tried(program)
    why = explained(trouble) if trouble else ""
    return Probe(jail=not trouble, reaper=reaper, why=why, bwrap=program, landlock=fence)


@cache
def landlock() -> int:
    """The version of Landlock that this kernel lets us use; 0 for none."""
    return max(0, become.call("syscall", become.LANDLOCK_CREATE, None, 0, 1))


def choose(isolation: Isolation) -> Isolation:
    """The level that will be in force; a level that was asked for and can't be had is refused."""
    if isolation is Isolation.NONE:
        return isolation
    here = probe() if isolation is not Isolation.REAPER else None
    if here and here.jail:
        return Isolation.JAIL
    if isolation is Isolation.JAIL and here:
        raise IsolationUnavailable(
            f"isolation jail is not available: {here.why}",
            allowed=(Isolation.REAPER, Isolation.NONE),
        )
    if not os.path.exists("/proc/self/stat"):
        raise IsolationUnavailable(
            "isolation reaper needs /proc: mount it", allowed=(Isolation.NONE,)
        )
    return Isolation.REAPER


def find_program(name: str, path: str) -> str | None:
    """Where a program is, as execvp(3) would look."""
    for folder in path.split(os.pathsep):
        place = os.path.join(folder, name)
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.abspath(place)
    return None


@cache
def _tried(program: str) -> str:
    """What bubblewrap complains about when it starts itself in a jail; empty when it works."""
    words = [program, *_namespaces(Profile(network=False)), "--bind", "/", "/", *_proc_and_dev()]
    reads, writes = os.pipe()
    try:
        child = os.posix_spawn(
            program,
            [*words, "--", program, "--version"],
            {},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, writes, 2),
            ],
        )
    except OSError as error:
        os.close(reads)
        return f"{program} does not start: {error.strerror}"
    finally:
        os.close(writes)
    try:
        return _outcome(child, reads)
    finally:
        os.close(reads)


def _outcome(child: int, complaints: int) -> str:
    handle = os.pidfd_open(child)
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        in_time = bool(poller.poll(PROBE_SECONDS * 1000))
    finally:
        os.close(handle)
    if not in_time:
        os.kill(child, 9)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return f"it did not answer within {PROBE_SECONDS} s"
    if status == 0:
        return ""
    os.set_blocking(complaints, False)
    try:
        said = os.read(complaints, _SHOWN)
    except BlockingIOError:
        said = b""
    return said.decode(errors="replace").strip() or f"exit status {status}"


def explained(trouble: str) -> str:
    """One sentence: what is in the way, and what to do about it."""
    said = " ".join(trouble.split())
    if any(word in trouble for word in ("uid map", "new namespace", "CLONE_NEWUSER", "userns")):
        return (
            f"user namespaces are refused here ({said}): allow them (sysctl"
            " kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0,"
            " or an AppArmor profile for bwrap), or let the container have them"
        )
    if "mount proc" in trouble or "/proc" in trouble:
        return (
            f"/proc can't be mounted here ({said}):"
            " in a container, run it with unmasked /proc (--security-opt systempaths=unconfined)"
        )
    return (
        f"bubblewrap does not work here ({said}): run `bwrap --bind / / --unshare-pid true` to see"
    )


# -- the command line -----------------------------------------------------------------------------


def wrap(
    program: str,
    profile: Profile,
    command: Sequence[str],
    *,
    cwd: str,
    home: str,
    needs: Sequence[str],
) -> list[str]:
    """The command in a jail. `needs` are files and folders that it must be able to read."""
    return [
        program,
        *_namespaces(profile),
        *_capabilities(),
        *_root(profile),
        *_proc_and_dev(),
        *_views(profile, cwd, home, needs),
        "--",
        *command,
    ]


def _namespaces(profile: Profile) -> list[str]:
    words = ["--unshare-pid", "--as-pid-1", "--die-with-parent", "--unshare-ipc"]
    return words if profile.network else [*words, "--unshare-net"]


def _capabilities() -> list[str]:
    if os.geteuid():
        return []
    return [word for name in ROOT_LOSES for word in ("--cap-drop", name)]


def _root(profile: Profile) -> list[str]:
    closed = profile.readonly_root or profile.writable
    return ["--ro-bind" if closed else "--bind", "/", "/"]


def _proc_and_dev() -> list[str]:
    if os.geteuid():
        return ["--dev-bind", "/dev", "/dev", "--proc", "/proc"]
    extra = [f"/dev/{name}" for name in DEVICES if os.path.exists(f"/dev/{name}")]
    binds = [word for path in extra for word in ("--dev-bind", path, path)]
    return ["--dev", "/dev", *binds, "--proc", "/proc"]


def _views(profile: Profile, cwd: str, home: str, needs: Sequence[str]) -> list[str]:
    """Masks and binds, the most specific last, so that it wins."""
    laid = _laid(profile)
    cwd = _bare(cwd, laid)
    masks = _masks(profile, cwd, laid)
    covers = {path for path, is_folder in masks.items() if is_folder}
    views = [(path, 0, _mask(path, covers)) for path in masks]
    if profile.tmp:
        covers.add("/tmp")  # noqa: S108 - the one inside
        views.append(("/tmp", 0, ["--perms", "1777", "--tmpfs", "/tmp"]))  # noqa: S108 - as above
    if profile.private_home and home:
        place = os.path.realpath(home)
        covers.add(place)
        views.append((place, 1, ["--bind", os.path.realpath(profile.private_home), place]))
    opened = _open(profile, cwd, covers)
    read = {os.path.realpath(path) for path in (*needs, *filter(None, [cwd]))}
    # What a writable folder already shows would only become read-only by a view of its own, and
    # what is placed is there instead of the original.
    read = {path for path in read if _depth(path, covers) > _depth(path, opened)}
    views += [(path, 2, ["--ro-bind", path, path]) for path in read if not _inside(path, set(laid))]
    views += [(path, 3, ["--bind-try", path, path]) for path in opened]
    views += [(each.at, 4, _placing(each)) for each in profile.placed if each.at in laid]
    views.sort(key=lambda view: (_steps(view[0]), view[1], view[0]))
    closed = sorted((covers & set(masks)) - opened)
    closing = [word for path in closed for word in ("--remount-ro", path)]
    return [word for view in views for word in view[2]] + closing


def _laid(profile: Profile) -> dict[str, str]:
    """Where what is laid. Nothing can lie over a link, and over one that leads there nothing must.

    A link on disk counts only where nothing is laid around it.
    """
    laid = {each.at: os.path.realpath(each.source) for each in profile.placed}
    return {
        at: source
        for at, source in laid.items()
        if laid.get(os.path.realpath(at)) != source
        or os.path.realpath(at) == at
        or _inside(at, set(laid) - {at})
    }


def _bare(cwd: str, laid: Mapping[str, str]) -> str:
    """The working directory, links resolved; empty where something is laid over it.

    What is on disk there is the agent's: a link that it left would bring back what is hidden.
    """
    real = os.path.realpath(cwd)
    return "" if _inside(os.path.abspath(cwd), set(laid)) or _inside(real, set(laid)) else real


def _steps(path: str) -> int:
    return path.count("/") if path != "/" else 0


def _masks(profile: Profile, cwd: str, laid: Mapping[str, str]) -> dict[str, bool]:
    """What is hidden, and whether it is a folder; also where something placed would show it."""
    found = set(hidden_of(profile)) - {cwd}
    masks: dict[str, bool] = {}
    for path in filter(os.path.lexists, found):
        seen = {at for at, source in laid.items() if _inside(path, {source}) and path != source}
        spots = {(at, at + path[len(laid[at]) :]) for at in seen} | {("", path)}
        masks |= {spot: os.path.isdir(path) for at, spot in spots if _top(spot, laid) == at}
    return masks


def _top(path: str, laid: Mapping[str, str]) -> str:
    """The innermost placement that a path lies in; empty for none."""
    return max((at for at in laid if _inside(path, {at})), key=len, default="")


def _placing(placed: Placed) -> list[str]:
    word = "--bind" if placed.writable else "--ro-bind"
    return [word, os.path.realpath(placed.source), placed.at]


def hidden_of(profile: Profile) -> list[str]:
    """What nobody inside may see, all links resolved."""
    uid = os.getuid()
    paths = (*profile.hidden, *(path.format(uid=uid) for path in MANAGERS))
    return [os.path.realpath(path) for path in paths]


def _mask(path: str, folders: set[str]) -> list[str]:
    if path in folders:
        return ["--perms", "0755", "--tmpfs", path]
    # A device on a mount without devices: it can't be opened, whoever tries
    return ["--ro-bind", os.devnull, path]


def _open(profile: Profile, cwd: str, covers: set[str]) -> set[str]:
    """What stays writable, or comes back."""
    paths = {os.path.realpath(path) for path in (*profile.writable, *profile.bound)}
    if cwd and not profile.readonly_root and (profile.writable or _inside(cwd, covers)):
        paths.add(cwd)
    return paths


def _inside(path: str, covers: set[str]) -> bool:
    return any(is_named_inside(path, cover) for cover in covers)


def _depth(path: str, folders: set[str]) -> int:
    """The length of the deepest folder that a path lies in; -1 if it lies in none."""
    return max((len(folder) for folder in folders if _inside(path, {folder})), default=-1)


# -- what is placed --------------------------------------------------------------------------------


def own_package() -> str:
    """Where this program itself lies."""
    return os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def shielded(workspace: str) -> tuple[Placed, ...]:
    """This program, read-only over itself; not where it is what is being worked on."""
    own, place = own_package(), os.path.realpath(workspace)
    at_work = _inside(own, {place}) or _inside(place, {own})
    return () if at_work else (Placed(own, own),)


def misplaced(profile: Profile, cwd: str, home: str) -> str:
    """Why something can't be laid where it is to be seen; empty when everything can.

    An agent may have put a link, a file or nothing where a folder was. A link would carry our mount
    to another place, and on a disk that is not ours nothing is made.
    """
    if not profile.placed:
        return ""
    places = [each.at for each in profile.placed]
    twice = next((at for at in places if places.count(at) > 1), "")
    if twice:
        return f"two things are to be laid over {twice!r}: leave one of them out"
    shown, laid = _shown(profile, cwd, home), _laid(profile)
    placed = [each for each in profile.placed if each.at in laid]
    return next((why for each in placed if (why := _landing(each, shown))), "")


def led_astray(profile: Profile, cwd: str) -> str:
    """Why a working directory is none: its path has become a link into what is hidden.

    The working directory is always shown; an agent could show the next one what it likes.
    """
    hidden = set(hidden_of(profile))
    bare = _bare(cwd, _laid(profile))
    if not bare or not _inside(bare, hidden) or _inside(os.path.abspath(cwd), hidden):
        return ""
    return f"the working directory {cwd!r} leads into a hidden folder: put it back as it was"


def _shown(profile: Profile, cwd: str, home: str) -> dict[str, tuple[str, bool]]:
    """What a jail shows where: the path on disk (empty: a fresh folder), and if it is ours."""
    laid = _laid(profile)
    masks = _masks(profile, _bare(cwd, laid), laid)
    shown = {path: ("", True) for path, is_folder in masks.items() if is_folder}
    if profile.tmp:
        shown["/tmp"] = ("", True)  # noqa: S108 - the one inside
    if profile.private_home and home:
        shown[os.path.realpath(home)] = (os.path.realpath(profile.private_home), True)
    opened = {os.path.realpath(path) for path in (*profile.writable, *profile.bound)}
    shown |= {path: (path, False) for path in opened}
    ours = {each.at: each.writable for each in profile.placed}
    return shown | {at: (source, ours[at]) for at, source in laid.items()}


def _landing(placed: Placed, shown: Mapping[str, tuple[str, bool]]) -> str:
    """Why a placement would not land where it should; follows its path as the jail will see it."""
    at = placed.at
    if not os.path.isabs(at) or os.path.normpath(at) != at or at in ("/", "//"):
        return f"{at!r} is no plain absolute path: nothing can be laid over it"
    source = _kind(os.path.realpath(placed.source))
    if source not in ("a folder", "a file"):
        return f"{placed.source!r}, which is to be seen at {at!r}, is {source}: make it anew"
    disk, ours, path = "/", False, ""
    for name in at[1:].split("/"):
        path = f"{path}/{name}"
        disk = os.path.join(disk, name) if disk else ""
        if path != at:
            disk, ours = shown.get(path, (disk, ours))
        kind = _kind(disk) if disk else "missing"
        if kind == "missing" and ours:
            disk = ""
        elif kind != ("a folder" if path != at else source):
            return f"{path!r} is {kind}, so nothing can be laid over {at!r}: put it back as it was"
    return ""


def _kind(path: str) -> str:
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        return f"out of reach ({error.strerror})"
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFREG: "a file", stat.S_IFLNK: "a link"}
    return kinds.get(stat.S_IFMT(mode), "something else")


def seen(profile: Profile) -> list[tuple[bytes, int, int, bool]]:
    """By what a guard inside knows what is placed: path, device and number, and if it may write."""
    told = []
    for each in profile.placed:
        found = os.stat(each.source)
        told.append((os.fsencode(each.at), found.st_dev, found.st_ino, each.writable))
    return told
