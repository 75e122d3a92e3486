"""What a jailed command sees, what it can't, and what happens where there is no jail."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import truegreen
from tests.conftest import missing
from tests.work.running import PATH, launch, need_jail
from truegreen.contract import Isolation
from truegreen.errors import IsolationUnavailable, Refused
from truegreen.work import jail
from truegreen.work.jail import Profile
from truegreen.work.process import Ended, run


@pytest.fixture(autouse=True)
def _probed_anew() -> Iterator[None]:
    yield
    jail._tried.cache_clear()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder that nobody inside may see."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / "truegreen.db").write_text("the record")
    return folder


def inside(folder: Path, script: str, home: str = "", **profile: Any) -> Ended:
    need_jail()
    cwd = folder / "cwd"
    cwd.mkdir(exist_ok=True)
    return run(
        launch(
            *(cwd, "bash", "-c", script),
            isolation=Isolation.JAIL,
            env={"PATH": PATH, "HOME": home or str(folder)},
            jail=Profile(**profile),
        )
    )


def said(ended: Ended) -> str:
    assert ended.launch_error == ""
    return ended.stdout.head.decode()


def test_a_hidden_folder_is_empty_and_cannot_be_written(tmp_path: Path, store: Path):
    script = (
        f"ls -A {store}; touch {store}/x || echo refused; cat {store}/truegreen.db || echo none"
    )
    told = said(inside(tmp_path, script, hidden=(str(store),)))
    assert "the record" not in told
    assert told.splitlines()[-1] == "none"
    assert "refused" in told
    assert os.listdir(store) == ["truegreen.db"]


def test_a_file_that_comes_later_into_a_hidden_folder_is_hidden_too(tmp_path: Path, store: Path):
    script = f"echo up; sleep 0.3; ls -A {store}"
    lines: list[bytes] = []

    def tick() -> None:
        if lines:
            (store / "truegreen.db-wal").write_text("later")

    need_jail()
    profile = Profile(hidden=(str(store),))
    given = launch(tmp_path, "sh", "-c", script, isolation=Isolation.JAIL, jail=profile)
    run(given, line=lines.append, tick=tick, tick_s=0.02)
    assert (store / "truegreen.db-wal").exists()
    assert lines == [b"up"]


def test_a_hidden_file_cannot_be_opened_by_anybody(tmp_path: Path, store: Path):
    path = store / "truegreen.db"
    script = f"cat {path}; echo x > {path}; ls {store}"
    told = said(inside(tmp_path, script, hidden=(str(path),)))
    assert "the record" not in told
    assert told.count("Permission denied") == 2
    assert path.read_text() == "the record"


def test_masks_cannot_be_lifted(tmp_path: Path, store: Path):
    script = f"""
        umount {store}; umount -l {store}; mount --bind / /mnt
        unshare -Urm sh -c 'umount {store}; cat {store}/truegreen.db'
        nsenter -t 1 -m cat {store}/truegreen.db
        cat /proc/1/root{store}/truegreen.db /proc/*/root{store}/truegreen.db
        cat {store}/truegreen.db || echo none
    """
    told = said(inside(tmp_path, script, hidden=(str(store),)))
    assert "the record" not in told
    assert told.splitlines()[-1] == "none"


def test_a_link_into_the_store_leads_nowhere(tmp_path: Path, store: Path):
    (tmp_path / "link").symlink_to(store)
    told = said(inside(tmp_path, f"ls -A {tmp_path}/link/", hidden=(str(tmp_path / "link"),)))
    assert told == ""


def test_bound_paths_come_back(tmp_path: Path, store: Path):
    (store / "inbox").mkdir()
    script = f"ls -A {store}; echo written > {store}/inbox/file"
    told = said(inside(tmp_path, script, hidden=(str(store),), bound=(str(store / "inbox"),)))
    assert told == "inbox\n"
    assert (store / "inbox" / "file").read_text() == "written\n"


def test_the_workspace_inside_a_hidden_folder_stays(tmp_path: Path):
    (tmp_path / "secret").write_text("the record")
    told = said(inside(tmp_path, f"ls -A {tmp_path}; touch made", hidden=(str(tmp_path),)))
    assert told == "cwd\n"
    assert (tmp_path / "cwd" / "made").exists()


def test_the_workspace_itself_is_never_hidden(tmp_path: Path):
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "file").touch()
    assert said(inside(tmp_path, "ls", hidden=(str(tmp_path / "cwd"),))) == "file\n"


def test_what_is_hidden_inside_the_workspace_is_hidden(tmp_path: Path):
    (tmp_path / "cwd" / ".truegreen").mkdir(parents=True)
    (tmp_path / "cwd" / ".truegreen" / "db").touch()
    assert said(inside(tmp_path, "ls .truegreen", hidden=(f"{tmp_path}/cwd/.truegreen",))) == ""


@pytest.mark.criterion("O04")
def test_nobody_outside_can_be_seen_or_signalled(tmp_path: Path):
    script = f"ls -d /proc/[0-9]* | wc -l; kill -0 {os.getpid()} || echo nobody; cat /proc/1/comm"
    told = said(inside(tmp_path, script)).splitlines()
    assert int(told[0]) < 8
    assert "nobody" in told
    assert "bwrap" not in told


def test_the_guard_shows_neither_its_memory_nor_its_pipes(tmp_path: Path):
    script = """
        for n in 2 3 4 5 6 7 8 9; do echo "ended exit 0" > /proc/1/fd/$n && echo forged; done
        cat /proc/1/environ || echo denied; dd if=/proc/1/mem count=1 || echo denied; exit 3
    """
    ended = inside(tmp_path, script)
    assert "forged" not in said(ended)
    assert said(ended).count("denied\n") >= 2
    assert ended.code == 3


def test_the_doors_of_service_managers_are_shut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    door = tmp_path / "bus"
    monkeypatch.setattr(jail, "MANAGERS", (str(door),))
    script = (
        f"{sys.executable} -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{door}\")'"
    )
    with socket.socket(socket.AF_UNIX) as manager:
        manager.bind(str(door))
        manager.listen()
        ended = inside(tmp_path, script)
    assert ended.code == 1
    assert "ConnectionRefusedError" in said(ended)


def test_the_disk_behind_the_masks_cannot_be_read(tmp_path: Path):
    script = "for f in /dev/*; do [ -b $f ] && head -c 1 $f && echo read $f; done; mknod d b 254 0"
    told = said(inside(tmp_path, script))
    assert "read" not in told
    assert not (tmp_path / "cwd" / "d").exists()


def test_the_rest_of_the_machine_is_as_its_user_has_it(tmp_path: Path):
    script = f"""
        touch {tmp_path}/beside && echo > /dev/null && head -c 4 /dev/urandom > /dev/shm/tg$$ &&
        rm /dev/shm/tg$$ && mktemp /tmp/tgXXXX | xargs rm && id -u && readlink /proc/self/ns/net
    """
    told = said(inside(tmp_path, script)).split()
    assert told == [str(os.getuid()), os.readlink("/proc/self/ns/net")]


def test_without_network_only_the_loopback_is_there(tmp_path: Path):
    script = """
        cat /proc/net/dev | tail -n +3 | cut -d: -f1
        python3 -c '
import socket, threading
door = socket.create_server(("127.0.0.1", 0))
socket.create_connection(door.getsockname()); print("loopback works")'
    """
    told = said(inside(tmp_path, script.replace("python3", sys.executable), network=False)).split()
    assert told == ["lo", "loopback", "works"]


def test_a_read_only_root_can_be_written_in_the_named_places_alone(tmp_path: Path):
    for name in ("open", "shut"):
        (tmp_path / name).mkdir()
    script = (
        f"touch {tmp_path}/open/x && echo a; touch {tmp_path}/shut/x || echo b; touch y || echo c"
    )
    ended = inside(tmp_path, script, readonly_root=True, writable=(str(tmp_path / "open"),))
    assert [line for line in said(ended).splitlines() if len(line) == 1] == ["a", "b", "c"]


def test_writable_places_leave_the_workspace_open_and_shut_the_rest(tmp_path: Path):
    for name in ("open", "shut"):
        (tmp_path / name).mkdir()
    script = (
        f"touch {tmp_path}/open/x && echo a; touch {tmp_path}/shut/x || echo b; touch y && echo c"
    )
    ended = inside(tmp_path, script, writable=(str(tmp_path / "open"),))
    assert [line for line in said(ended).splitlines() if len(line) == 1] == ["a", "b", "c"]


def test_a_private_home_lies_over_the_real_one(tmp_path: Path):
    real, private = tmp_path / "real", tmp_path / "private"
    for folder in (real, private):
        folder.mkdir()
        (folder / folder.name).touch()
    told = said(inside(tmp_path, "ls ~; touch ~/made", home=str(real), private_home=str(private)))
    assert told == "private\n"
    assert sorted(os.listdir(private)) == ["made", "private"]
    assert os.listdir(real) == ["real"]


def test_a_private_home_over_interpreter_and_workspace_still_works(tmp_path: Path):
    private = tmp_path / "private"
    private.mkdir()
    above = os.path.dirname(sys.base_prefix)
    home = sys.base_prefix if above == "/" else above
    ended = inside(tmp_path, "pwd", home=home, private_home=str(private), tmp=True)
    assert said(ended) == f"{tmp_path}/cwd\n"


def test_an_own_tmp_is_empty_but_for_the_workspace(tmp_path: Path):
    here = f"/tmp/truegreen-{os.urandom(4).hex()}"  # noqa: S108 - must not be there inside
    Path(here).touch()
    try:
        told = said(inside(tmp_path, f"ls {here}; touch /tmp/x && ls -A /tmp; pwd", tmp=True))
    finally:
        os.unlink(here)
    assert "No such file" in told
    assert told.splitlines()[-1] == f"{tmp_path}/cwd"


# -- where there is none ---------------------------------------------------------------------------


def broken_bwrap(folder: Path, monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    program = folder / "bin" / "bwrap"
    program.parent.mkdir()
    (folder / "says").write_text(says)
    program.write_text(f"#!/bin/sh\n/bin/cat {folder}/says >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


@pytest.mark.parametrize(
    ("says", "way"),
    [
        ("bwrap: setting up uid map: Permission denied", "kernel.unprivileged_userns_clone=1"),
        ("bwrap: No permissions to create new namespace", "AppArmor"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "unmasked /proc"),
        ("bwrap: something new", "to see"),
    ],
)
def test_a_bubblewrap_that_does_not_work_says_why_and_how_to_mend_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, way: str
):
    broken_bwrap(tmp_path, monkeypatch, says)
    here = jail.probe()
    assert (here.jail, here.reaper) == (False, True)
    assert says in here.why
    assert way in here.why


def test_without_a_jail_auto_falls_to_the_reaper_and_a_forced_jail_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert jail.choose(Isolation.AUTO) is Isolation.REAPER
    assert jail.choose(Isolation.REAPER) is Isolation.REAPER
    assert jail.choose(Isolation.NONE) is Isolation.NONE
    with pytest.raises(IsolationUnavailable, match="install the package `bubblewrap`") as refusal:
        jail.choose(Isolation.JAIL)
    assert isinstance(refusal.value, Refused)
    assert refusal.value.allowed == ("reaper", "none")
    marker = tmp_path / "ran"
    with pytest.raises(IsolationUnavailable):
        run(launch(tmp_path, "/usr/bin/touch", str(marker), isolation=Isolation.JAIL))
    assert not marker.exists()


def test_where_a_jail_works_auto_takes_it(tmp_path: Path):
    need_jail()
    assert jail.choose(Isolation.AUTO) is Isolation.JAIL
    assert run(launch(tmp_path, "true", isolation=Isolation.AUTO)).isolation is Isolation.JAIL


def test_a_jail_that_fails_for_one_command_is_a_launch_error(tmp_path: Path):
    need_jail()
    ended = inside(tmp_path, "true", private_home=str(tmp_path / "no" / "such"))
    assert (ended.code, ended.signal) == (None, None)
    assert "the jail can't be set up (bwrap: " in ended.launch_error


def for_everybody(path: str) -> bool:
    """Whether any user may go there."""
    real = Path(path).resolve()
    return all(place.stat().st_mode & 0o005 == 0o005 for place in (real, *real.parents))


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder with what the child imports that any user may read, wherever our own lies."""
    folder = Path(tempfile.mkdtemp(prefix="truegreen-test-"))
    try:
        folder.chmod(0o755)
        for module in (truegreen, msgspec):
            shutil.copytree(Path(str(module.__file__)).parent, folder / module.__name__)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("isolation", [Isolation.JAIL, Isolation.REAPER])
def test_an_ordinary_user_is_guarded_too(everybodys: Path, isolation: Isolation):
    need_jail()
    if os.getuid():
        missing("root, who alone can become somebody else")
    twin = f"/usr/bin/python3.{sys.version_info.minor}"
    python = sys.executable if for_everybody(sys.executable) else twin
    if not os.path.exists(python):
        missing("an interpreter that other users may run")
    words = [python, "-S", "-c", UNPRIVILEGED, isolation]
    env = {"PATH": PATH, "PYTHONPATH": str(everybodys)}
    ended = run(launch(Path("/"), *words, env=env))
    assert ended.stdout.head.decode() == f"{isolation} 0 65534 ['sleep'] True \n"


UNPRIVILEGED = """
import os, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
from truegreen.contract import Isolation
from truegreen.work.process import Launch, run
script = "setsid env -i /bin/sleep 20 & sleep 0.1; id -u"
ended = run(Launch(argv=("sh", "-c", script), cwd="/", env={"PATH": "/usr/bin:/bin"},
                   isolation=Isolation(sys.argv[1])))
print(ended.isolation.value, ended.code, ended.stdout.head.decode().strip(),
      [one.name for one in ended.swept], ended.confirmed, ended.launch_error)
"""


def test_a_folder_within_a_writable_one_is_writable(tmp_path: Path, store: Path):
    need_jail()
    room = store / "room"
    (room / "sub").mkdir(parents=True)
    profile = Profile(
        readonly_root=True, writable=(str(room),), bound=(str(room),), hidden=(str(store),)
    )
    script = f"touch here ../above && ! touch {tmp_path}/x && ! cat {store}/truegreen.db"
    given = launch(room / "sub", "sh", "-c", script, isolation=Isolation.JAIL, jail=profile)
    assert run(given).code == 0
    assert (room / "sub/here").exists()


def test_a_working_directory_that_is_hidden_within_a_writable_folder_comes_back(tmp_path: Path):
    need_jail()
    cwd = tmp_path / "mask/cwd"
    cwd.mkdir(parents=True)
    (cwd / "a").touch()
    (tmp_path / "mask/secret").touch()
    hidden = (str(tmp_path / "mask"),)
    profile = Profile(readonly_root=True, writable=(str(tmp_path),), hidden=hidden)
    given = launch(cwd, "sh", "-c", "ls; ls ..", isolation=Isolation.JAIL, jail=profile)
    assert said(run(given)).split() == ["a", "cwd"]
