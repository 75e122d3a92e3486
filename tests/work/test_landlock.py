"""Where no jail can be had, the kernel's own fence keeps a gate from writing, reading, calling."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.work.running import PATH, launch
from truegreen.contract import Isolation
from truegreen.work import jail, landlock, orders
from truegreen.work.jail import Placed, Profile
from truegreen.work.process import Ended, run

ALL = 6
"""The version that has everything used here."""


@pytest.fixture(autouse=True)
def _kernel_has_it() -> None:
    if jail.landlock() < ALL:
        missing(f"Landlock {ALL} (this kernel: {jail.landlock()})")


class Fenced:
    """A room to write in, and a state folder around it that is hidden."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "state"
        self.room, self.beside = self.state / "room", folder / "beside"
        for place in (self.room, self.beside):
            place.mkdir(parents=True)
        (self.state / "record").write_text("the record")
        (self.beside / "file").write_text("seen")

    def run(self, script: str, **changes: Any) -> Ended:
        rooms = (str(self.room),)
        given: dict[str, Any] = {
            "readonly_root": True,
            "writable": rooms,
            "bound": rooms,
            "hidden": (str(self.state),),
            "network": False,
        }
        return run(
            launch(
                *(self.room, "bash", "-c", script),
                env={"PATH": PATH, "HOME": str(self.room), "PY": sys.executable},
                jail=Profile(**(given | changes)),
            )
        )

    def says(self, script: str, **changes: Any) -> list[str]:
        ended = self.run(script, **changes)
        assert ended.launch_error == ""
        return ended.stdout.head.decode().splitlines()


@pytest.fixture
def fenced(tmp_path: Path) -> Fenced:
    return Fenced(tmp_path / "fenced")


def test_what_held_is_told(fenced: Fenced):
    ended = fenced.run("true")
    version = f"landlock {jail.landlock()}"
    assert ended.fences == (version, "writes", "hidden", "tcp", "signals")
    assert ended.isolation is Isolation.REAPER
    assert fenced.run("true", network=True).fences == (version, "writes", "hidden", "signals")
    assert fenced.run("true", hidden=()).fences == (version, "writes", "tcp", "signals")
    assert jail.probe().landlock == jail.landlock()


@pytest.mark.criterion("E29")
@pytest.mark.parametrize(
    "deed",
    [
        "echo x > {0}/new",
        "echo x >> {0}/file",
        ": > {0}/file",
        "truncate -s 0 {0}/file",
        "rm {0}/file",
        "mkdir {0}/folder",
        "ln -s x {0}/link",
        "ln {0}/file mine && echo x > mine && ! grep -q seen {0}/file",
        "mv {0}/file mine",
        "mv mine-own {0}/given",
        "mkfifo {0}/pipe",
        "$PY -c 'import os; os.truncate(\"{0}/file\", 0)'",
    ],
)
def test_nothing_is_changed_outside_of_the_named_folders(fenced: Fenced, deed: str):
    (fenced.room / "mine-own").touch()
    assert fenced.run(deed.format(fenced.beside)).code != 0
    assert sorted(os.listdir(fenced.beside)) == ["file"]
    assert (fenced.beside / "file").read_text() == "seen"


def test_inside_of_the_named_folders_all_goes_on_as_ever(fenced: Fenced):
    (fenced.state / "second").mkdir()
    rooms = (str(fenced.room), str(fenced.state / "second"))
    script = """
        set -e
        mkdir -p a/b; echo x > a/file; mv a/file a/b/moved; mv a/b/moved ../second/; ln -s x link
        ln ../second/moved hard; mkfifo pipe; rm -r a pipe; truncate -s 0 hard
        echo x > /dev/null; echo y > /dev/stdout; echo z > /dev/shm/tg$$; rm /dev/shm/tg$$
        $PY -c 'import multiprocessing as m; m.Lock(); import tempfile; tempfile.TemporaryFile()'
        cat /etc/passwd > /dev/null; ls / > /dev/null; (sleep 9 & kill $!; wait $! || true)
        echo done
    """
    env = {"TMPDIR": str(fenced.room)}
    assert fenced.says(script.replace("$PY", f"TMPDIR={env['TMPDIR']} $PY"), writable=rooms)[
        -2:
    ] == ["y", "done"]


def test_what_is_hidden_cannot_be_read_by_any_name(fenced: Fenced):
    record = fenced.state / "record"
    (fenced.beside / "link").symlink_to(record)
    (fenced.state / "deep").mkdir()
    (fenced.state / "deep/record").write_text("the record")
    script = f"""
        cat {record}; cat {fenced.beside}/link; cat ../record; cat {fenced.state}/deep/record
        cat /proc/self/cwd/../record; cat /proc/self/root{record}; ln ../record mine && cat mine
        cat {fenced.beside}/file
    """
    told = "\n".join(fenced.says(script))
    assert "the record" not in told
    assert told.endswith("seen")


def test_what_a_jail_would_lay_elsewhere_can_be_read_where_it_lies(fenced: Fenced):
    tools = fenced.state / "tools"
    tools.mkdir()
    (tools / "program").write_text("pinned")
    placed = (Placed(str(tools), str(fenced.beside)),)
    script = f"cat {tools}/program; echo x 2>/dev/null > {tools}/program || echo no"
    assert fenced.says(script, placed=placed) == ["pinnedno"]
    assert fenced.says(f"cat {fenced.state}/record 2>/dev/null || echo no", placed=placed) == ["no"]


def test_a_hidden_file_beside_others_is_hidden_alone(fenced: Fenced):
    (fenced.beside / "key").write_text("the key")
    told = fenced.says(
        f"cat {fenced.beside}/key; cat {fenced.beside}/file", hidden=(f"{fenced.beside}/key",)
    )
    assert "the key" not in "".join(told)
    assert told[-1] == "seen"


def test_a_working_directory_in_a_hidden_folder_can_still_be_read(fenced: Fenced):
    (fenced.room / "file").write_text("mine\n")
    given = {"writable": (str(fenced.beside),), "bound": ()}
    told = fenced.says("cat file; echo x > new || echo shut; cat ../record", **given)
    assert told[0] == "mine"
    assert "shut" in told
    assert "the record" not in "".join(told)


def test_too_many_neighbours_leave_the_rest_of_the_fence_and_say_so(
    fenced: Fenced, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(landlock, "MOST_PATHS", 3)
    ended = fenced.run(f"cat ../record; echo x > {fenced.beside}/new")
    assert b"the record" in ended.stdout.head
    assert "hidden" not in ended.fences
    assert "writes" in ended.fences
    assert os.listdir(fenced.beside) == ["file"]


CALL = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"


def test_without_network_no_tcp_is_opened_or_offered(fenced: Fenced):
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        call = f'$PY -c "{CALL}" {port}'
        assert fenced.run(call).code == 1
        assert fenced.run(call, network=True).code == 0
    offer = "$PY -c 'import socket; socket.create_server((\"127.0.0.1\", 0))'"
    assert fenced.run(offer).code == 1
    assert fenced.run(offer, network=True).code == 0


def test_nobody_outside_is_signalled_not_even_the_guard(fenced: Fenced):
    ended = fenced.run(f"kill -9 $PPID; kill -0 {os.getpid()} || echo nobody; exit 3")
    assert (ended.code, ended.confirmed) == (3, True)
    assert ended.stdout.head.endswith(b"nobody\n")


def test_nobody_outside_shows_his_memory_or_environment(fenced: Fenced):
    pid = os.getpid()
    script = f"cat /proc/{pid}/environ | wc -c; ls /proc/{pid}/root/ | wc -l; cat /proc/$PPID/mem"
    assert [line for line in fenced.says(script) if line.isdigit()] == ["0", "0"]


def test_an_abstract_socket_of_the_machine_is_out_of_reach(fenced: Fenced):
    name = f"truegreen-{os.urandom(6).hex()}"
    script = f"$PY -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{name}\")'"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"\0{name}")
        door.listen()
        ended = fenced.run(script)
    assert ended.code == 1
    assert b"PermissionError" in ended.stdout.head


def test_the_fence_holds_for_children_and_strangers_to_the_tree(fenced: Fenced):
    script = f"setsid sh -c 'echo x > {fenced.beside}/new'; env -i /bin/touch {fenced.beside}/new"
    assert fenced.run(script).code != 0
    assert os.listdir(fenced.beside) == ["file"]


def test_no_privilege_is_gained_behind_the_fence(fenced: Fenced):
    told = fenced.says("grep -E 'NoNewPrivs|CapBnd|CapEff' /proc/self/status")
    _, effective, _, bounding, _, privileges = " ".join(told).split()
    assert privileges == "1"
    lost = sum(1 << number for number in landlock.CAPABILITIES.values())
    assert int(effective, 16) & lost == 0
    assert os.geteuid() or int(bounding, 16) & lost == 0


def test_root_loses_the_same_behind_a_fence_as_in_a_jail():
    assert set(landlock.CAPABILITIES) == set(jail.ROOT_LOSES)


def test_a_fence_that_cannot_be_put_up_starts_nothing(
    fenced: Fenced, monkeypatch: pytest.MonkeyPatch
):
    ended = fenced.run("echo ran", writable=(str(fenced.room / "gone"),))
    assert (ended.code, ended.stdout.size, ended.launch_errno) == (None, 0, "ENOENT")
    assert "the fence (Landlock)" in ended.launch_error
    real = orders.fence

    def absurd(*given: Any) -> landlock.Fence | None:
        fence = real(*given)
        return fence and fence._replace(told=(1 << 63, *fence.told[1:]))

    monkeypatch.setattr(orders, "fence", absurd)
    ended = fenced.run("echo ran")
    assert (ended.code, ended.stdout.size, ended.launch_errno) == (None, 0, "EACCES")


def test_who_may_write_everywhere_and_use_the_network_is_not_fenced(tmp_path: Path):
    """An agent with no more than a hidden store keeps sudo and its own sandbox."""
    for profile in (Profile(), Profile(hidden=(str(tmp_path),))):
        ended = run(launch(tmp_path, "grep", "NoNewPrivs", "/proc/self/status", jail=profile))
        assert (ended.fences, ended.stdout.head) == ((), b"NoNewPrivs:\t0\n")
    closed = run(launch(tmp_path, "true", jail=Profile(writable=(str(tmp_path / "x"),))))
    assert "the fence" in closed.launch_error


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (0, None),
        (1, None),
        (2, ("landlock 2", "writes")),
        (3, ("landlock 3", "writes")),
        (4, ("landlock 4", "writes", "tcp")),
        (6, ("landlock 6", "writes", "tcp", "signals")),
        (9, ("landlock 9", "writes", "tcp", "signals")),
    ],
)
def test_each_kernel_gets_what_it_knows(
    tmp_path: Path, version: int, words: tuple[str, ...] | None
):
    profile = Profile(readonly_root=True, network=False)
    fence = landlock.fence(profile, str(tmp_path), version)
    assert (fence and fence.words) == words
    if fence:
        files, network, scope, *_ = fence.told
        assert bool(files & landlock.TRUNCATE) == (version >= 3)
        assert (bool(network), bool(scope)) == (version >= 4, version >= 6)


def test_the_neighbours_of_hidden_folders_are_all_but_the_ways_there(tmp_path: Path):
    for name in ("a/b/c", "a/b/d", "a/e", "f"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("f")
    hidden = {str(tmp_path / "a/b"), str(tmp_path / "a/b/c"), str(tmp_path / "none")}
    found = landlock.besides(hidden)
    assert found is not None
    ours = {path for path in found if path.startswith(f"{tmp_path}/")}
    assert ours == {str(tmp_path / name) for name in ("a/e", "f", "home")}
    assert "/" not in found
    assert landlock.besides(set()) is None
    assert landlock.besides({str(tmp_path / "none")}) is None


def test_jails_and_bare_groups_have_no_fence_of_that_kind(tmp_path: Path):
    profile = Profile(readonly_root=True)
    for level in (Isolation.JAIL, Isolation.NONE):
        assert orders.fence(launch(tmp_path, "true", jail=profile), level) is None


def test_a_guard_that_is_asked_to_end_still_ends_the_fenced(fenced: Fenced):
    script = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    lines: list[bytes] = []
    profile = Profile(readonly_root=True, writable=(str(fenced.room),))
    given = launch(fenced.room, "sh", "-c", script, jail=profile, grace_s=0.1)
    ended = run(given, line=lines.append, tick=lambda: "stop" if lines else None, tick_s=0.05)
    assert (ended.stopped, ended.signal, ended.survivors) == ("stop", signal.SIGKILL, ())
