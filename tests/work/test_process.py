"""How a command ended is a value: codes, signals, caps, and what can go wrong before it runs."""

from __future__ import annotations

import contextlib
import errno
import gc
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.work.running import alive_with, launch, need_jail, until
from truegreen.contract import Isolation
from truegreen.errors import DiskFull, Unavailable
from truegreen.work import process
from truegreen.work.process import Ended, Identity, Launch, Limits, run, tool
from truegreen.work.shim import beneath, table


@pytest.fixture(params=[Isolation.JAIL, Isolation.REAPER, Isolation.NONE])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    level: Isolation = request.param
    if level is Isolation.JAIL:
        need_jail()
    return level


def holdings() -> tuple[int, set[str]]:
    """How many files are open here, and whose parent we are."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), set(children)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """No file stays open and no child unburied."""
    gc.collect()  # what an earlier test left to the collector is not closed during this one
    before = holdings()
    yield
    assert holdings() == before


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_an_exit_code_is_told_as_it_was(tmp_path: Path, isolation: Isolation, code: int):
    ended = run(launch(tmp_path, "sh", "-c", f"exit {code}", isolation=isolation))
    assert (ended.code, ended.signal, ended.stopped, ended.launch_error) == (code, None, "", "")
    assert (ended.isolation, ended.swept, ended.survivors) == (isolation, (), ())
    assert ended.confirmed == (isolation is not Isolation.NONE)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGPIPE])
def test_a_death_by_signal_is_told_as_such(tmp_path: Path, isolation: Isolation, number: int):
    ended = run(launch(tmp_path, "sh", "-c", f"kill -{int(number)} $$", isolation=isolation))
    assert (ended.code, ended.signal, ended.stopped, ended.oom) == (None, number, "", False)


def test_output_and_errors_go_their_own_ways(tmp_path: Path, isolation: Isolation):
    lines: list[bytes] = []
    ended = run(
        launch(
            *(tmp_path, "sh", "-c", "echo one; echo two >&2; printf three"),
            isolation=isolation,
            stdout_path=str(tmp_path / "out"),
            stderr_path=str(tmp_path / "err"),
        ),
        line=lines.append,
    )
    assert lines == [b"one", b"three"]
    assert (tmp_path / "out").read_bytes() == b"one\nthree"
    assert (tmp_path / "err").read_bytes() == ended.stderr.head == ended.stderr.tail == b"two\n"
    assert (tmp_path / "err").stat().st_mode & 0o777 == 0o600
    assert ended.stdout.sha256 == hashlib.sha256(b"one\nthree").hexdigest()
    assert (ended.stdout.size, ended.stdout.stored, ended.stdout.truncated) == (9, 9, False)


def test_errors_are_merged_where_no_place_is_named(tmp_path: Path, isolation: Isolation):
    ended = run(launch(tmp_path, "sh", "-c", "echo one; echo two >&2", isolation=isolation))
    assert ended.stdout.head == b"one\ntwo\n"
    assert (ended.stdout.stored, ended.stdout.truncated, ended.stderr.size) == (0, True, 0)


def test_the_environment_is_what_was_given_and_the_tag(tmp_path: Path, isolation: Isolation):
    os.environ["TRUEGREEN_STAYS_OUT"] = "1"
    tag = f"run_{os.urandom(6).hex()}"  # whatever bears it is ended, on the whole machine
    try:
        ended = run(launch(tmp_path, "env", isolation=isolation, env={"A": "b"}, tag=tag))
    finally:
        del os.environ["TRUEGREEN_STAYS_OUT"]
    assert sorted(ended.stdout.head.split()) == [b"A=b", f"TRUEGREEN_RUN={tag}".encode()]


def test_input_is_empty_or_what_was_given(tmp_path: Path, isolation: Isolation):
    text = b"a\0b" * 100_000
    empty = run(launch(tmp_path, "wc", "-c", isolation=isolation))
    given = run(launch(tmp_path, "wc", "-c", isolation=isolation, stdin_bytes=text))
    assert (empty.stdout.head, given.stdout.head) == (b"0\n", b"300000\n")


def test_a_command_inherits_no_file_and_no_ignored_signal(tmp_path: Path, isolation: Isolation):
    stray = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(stray, True)
    try:
        script = "ls /proc/self/fd | wc -l; grep SigIgn /proc/self/status"
        ended = run(launch(tmp_path, "sh", "-c", script, isolation=isolation))
    finally:
        os.close(stray)
    files, *ignored = ended.stdout.head.split()
    assert int(files) == 4  # 0, 1, 2 and the listing itself
    reserved = 3 << 31  # signals 32 and 33 are the C library's own; nobody else can set them
    assert int(ignored[-1], 16) & ~reserved == 0


def test_a_session_of_its_own_keeps_signals_of_the_terminal_away(
    tmp_path: Path, isolation: Isolation
):
    sessions = {}

    def look(identity: Identity) -> None:
        sessions[identity.pid] = os.getsid(identity.pid)

    # Seen from outside: in a namespace, a session that began elsewhere has no number.
    script = "import os; print(os.getpgid(0) == os.getpid())"
    ended = run(launch(tmp_path, sys.executable, "-c", script, isolation=isolation), started=look)
    assert ended.stdout.head == b"True\n"
    assert [pid == session for pid, session in sessions.items()] == [True]


@pytest.mark.parametrize(
    ("argv", "number", "sentence"),
    [
        (["no-such-program"], "ENOENT", "is not on the PATH"),
        (["/no/such/program"], "ENOENT", "there is no file"),
        (["./plain"], "EACCES", "is not executable"),
        (["./folder"], "EISDIR", "is a directory"),
        (["./wordless"], "ENOEXEC", "#!/bin/sh"),
        (["./orphan"], "ELIBACC", "the interpreter that it names is not"),
        (["sh", "x" * 200_000], "E2BIG", "too long"),
        ([], "EINVAL", "there is no command"),
        (["sh", "a\0b"], "EINVAL", "zero byte"),
    ],
)
def test_a_command_that_cannot_start_says_why_and_what_to_do(
    tmp_path: Path, isolation: Isolation, argv: list[str], number: str, sentence: str
):
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "wordless").write_bytes(b"\x01\x02 no program")
    (tmp_path / "wordless").chmod(0o700)
    (tmp_path / "orphan").write_text("#!/no/such/interpreter\n")
    (tmp_path / "orphan").chmod(0o700)
    began: list[Identity] = []
    ended = run(launch(tmp_path, *argv, isolation=isolation), started=began.append)
    assert (ended.code, ended.signal, began) == (None, None, [])
    assert sentence in ended.launch_error
    assert ended.launch_errno == number


@pytest.mark.criterion("H13")
@pytest.mark.parametrize(("name", "number"), [("gone", "ENOENT"), ("file", "ENOTDIR")])
def test_a_working_directory_that_is_none_fails_with_a_clear_reason(
    tmp_path: Path, isolation: Isolation, name: str, number: str
):
    (tmp_path / "file").touch()
    ended = run(launch(tmp_path / name, "true", isolation=isolation))
    assert (ended.launch_errno, ended.code) == (number, None)
    assert "working directory" in ended.launch_error


@pytest.mark.criterion("H13")
def test_a_command_that_deletes_its_directory_ends_as_it_ends(tmp_path: Path, isolation: Isolation):
    home = tmp_path / "cwd"
    home.mkdir()
    ended = run(launch(home, "sh", "-c", "rmdir ../cwd; ls >&2; exit 4", isolation=isolation))
    assert (ended.code, ended.launch_error) == (4, "")


@pytest.mark.criterion("G16")
def test_the_time_cap_asks_first_and_then_kills(tmp_path: Path, isolation: Isolation):
    work = "while :; do sleep 0.05; done"
    polite = f"trap 'echo asked; exit 5' TERM; {work}"
    ended = run(launch(tmp_path, "sh", "-c", polite, isolation=isolation, time_s=0.4))
    assert (ended.stopped, ended.code) == ("time", 5)
    assert b"asked" in ended.stdout.head
    deaf = f"trap '' TERM; {work}"
    ended = run(launch(tmp_path, "sh", "-c", deaf, isolation=isolation, time_s=0.4, grace_s=0.2))
    assert (ended.stopped, ended.code, ended.signal) == ("time", None, signal.SIGKILL)


def at_once(launches: list[Launch]) -> list[Ended]:
    """How each of several commands ended that ran at the same time."""
    with ThreadPoolExecutor(len(launches)) as threads:
        return list(threads.map(run, launches))


def test_silence_and_rest_together_are_idle(tmp_path: Path) -> None:
    need_jail()
    bounds = (Limits(), Limits(processes=100), Limits(resident=1 << 33))
    given = [
        launch(tmp_path, "sleep", "20", isolation=level, idle_s=2.0, limits=limits)
        for level in (Isolation.JAIL, Isolation.REAPER, Isolation.NONE)
        for limits in bounds
    ]
    for asked, ended in zip(given, at_once(given), strict=True):
        told = (asked.isolation, asked.limits, ended)
        assert (ended.stopped, ended.signal) == ("idle", signal.SIGTERM), told
        assert 2.0 <= ended.seconds < 5, told


def test_the_guard_of_a_sleeping_tree_hardly_computes(tmp_path: Path, isolation: Isolation) -> None:
    spent: list[float] = []

    def tick() -> str | None:
        pids = {entry.pid for entry in beneath({os.getpid()}, table())}
        spent.append(sum(map(computed, pids)))
        return None

    limits = Limits(processes=1000, resident=1 << 35)
    given = launch(tmp_path, "sleep", "4", isolation=isolation, limits=limits)
    assert run(given, tick=tick, tick_s=1.0).code == 0
    _, begun, *_, last = spent  # the first second is that of its start
    assert last - begun <= 0.005 * (len(spent) - 2), "in seconds"


def computed(pid: int) -> float:
    """The seconds that a process was on a processor; its ticks are hundredths of a second."""
    with contextlib.suppress(OSError):  # it ended while it was looked at
        return time.clock_gettime((~pid << 3) | 2)
    return 0.0


@pytest.mark.criterion("H06")
@pytest.mark.parametrize(
    "script",
    [
        "for i in $(seq 14); do echo $i; sleep 0.1; done",
        "for i in $(seq 14); do n=9999; while [ $n -gt 0 ]; do n=$((n - 1)); done; sleep 0.1; done",
    ],
    ids=["writes", "computes"],
)
def test_what_writes_or_computes_is_not_idle(tmp_path: Path, isolation: Isolation, script: str):
    ended = run(launch(tmp_path, "sh", "-c", script, isolation=isolation, idle_s=0.9))
    assert (ended.stopped, ended.code) == ("", 0)
    assert ended.seconds > 1.3


def test_a_word_of_the_tick_stops_it_and_the_tick_goes_on(tmp_path: Path, isolation: Isolation):
    lines: list[bytes] = []
    said: list[str] = []

    def tick() -> str | None:
        if lines:
            said.append("later" if said else "fenced")
        return said[-1] if said else None

    script = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    given = launch(tmp_path, "sh", "-c", script, isolation=isolation, grace_s=0.5)
    ended = run(given, line=lines.append, tick=tick, tick_s=0.05)
    assert (ended.stopped, ended.signal) == ("fenced", signal.SIGKILL)
    assert len(said) > 4


def test_a_word_with_an_exclamation_mark_kills_at_once(tmp_path: Path, isolation: Isolation):
    script = "trap 'echo asked' TERM; echo up; while :; do sleep 0.05; done"
    lines: list[bytes] = []
    ended = run(
        launch(tmp_path, "sh", "-c", script, isolation=isolation, grace_s=20),
        line=lines.append,
        tick=lambda: "!terminated" if lines else None,
        tick_s=0.01,
    )
    assert (ended.stopped, ended.signal, lines) == ("terminated", signal.SIGKILL, [b"up"])
    assert ended.seconds < 10


@pytest.mark.parametrize("where", ["tick", "line", "started"])
def test_an_exception_kills_the_tree_and_goes_on(tmp_path: Path, isolation: Isolation, where: str):
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    word = f"raise-{os.urandom(6).hex()}"
    script = f"echo {word}; while :; do sleep 0.05; done"
    callbacks: dict[str, Any] = {where: fail}
    with pytest.raises(KeyboardInterrupt):
        run(launch(tmp_path, "sh", "-c", script, isolation=isolation), **callbacks)
    if isolation is Isolation.NONE:  # the group was killed, and nobody waits for all of it to die
        until(lambda: alive_with(word) == [])
    assert alive_with(word) == []


def test_the_start_is_told_with_the_identity_of_a_living_process(
    tmp_path: Path, isolation: Isolation
):
    began: list[tuple[Identity, bool]] = []
    ended = run(
        launch(tmp_path, "sleep", "0.3", isolation=isolation),
        started=lambda identity: began.append((identity, identity.alive())),
    )
    ((identity, alive),) = began
    assert (ended.code, alive, identity.alive()) == (0, True, False)


def test_several_runs_in_several_threads_do_not_disturb_each_other(
    tmp_path: Path, isolation: Isolation
):
    ended: dict[int, Ended] = {}

    def one(n: int) -> None:
        script = f"echo {n}; sleep 0.1; exit {n}"
        ended[n] = run(launch(tmp_path, "sh", "-c", script, isolation=isolation))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: (e.code, e.stdout.head) for n, e in ended.items()} == {
        n: (n, b"%d\n" % n) for n in range(8)
    }


def test_an_ignored_sigchld_in_the_host_loses_no_exit_code(tmp_path: Path):
    script = """
import signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from tests.work.running import launch
from pathlib import Path
from truegreen.contract import Isolation
from truegreen.work.process import run, tool
print([run(launch(Path(sys.argv[1]), "sh", "-c", "exit 3", isolation=level)).code
       for level in (Isolation.REAPER, Isolation.NONE)], tool(["false"]).code)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[3, None] None\n", done.stderr


def test_a_host_that_runs_out_of_files_starts_nothing_or_all_of_it(tmp_path: Path):
    script = """
import os, resource, sys
from pathlib import Path
from tests.work.running import launch
from truegreen.contract import Isolation
from truegreen.errors import Unavailable
from truegreen.work.process import run
level = Isolation(sys.argv[2])
log = str(Path(sys.argv[1]) / "log")
given = launch(Path(sys.argv[1]), "echo", "hi", isolation=level, stdout_path=log)
assert run(given).code == 0
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
begin = len(os.listdir("/proc/self/fd"))
seen = set()
for most in range(begin - 1, begin + 25):
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        ended = run(given)
        seen.add(ended.launch_errno or ended.stdout.head.decode())
        assert ended.launch_error or ended.code == 0, ended
    except Unavailable as refusal:
        seen.add(type(refusal).__name__)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    assert len(os.listdir("/proc/self/fd")) == begin, most
    try:
        os.waitpid(-1, os.WNOHANG)
        raise AssertionError("a child is left")
    except ChildProcessError:
        pass
print(*sorted(seen), sep=",")
"""
    for level in (Isolation.REAPER, Isolation.NONE):
        words = [sys.executable, "-c", script, str(tmp_path), level]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["EMFILE,Unavailable,hi"], done.stderr


@pytest.mark.criterion("H11")
def test_a_status_that_is_not_known_is_never_a_success(tmp_path: Path):
    ended = run(launch(tmp_path, "sh", "-c", "kill -9 $PPID; exit 0"))
    assert (ended.code, ended.signal, ended.confirmed) == (None, signal.SIGKILL, False)


def test_a_child_that_holds_the_pipe_does_not_hold_the_run(tmp_path: Path):
    script = """
        exec 4>&1
        read pid < <(setsid sh -c 'echo $$; exec sleep 20 >&4')
        echo $pid
    """
    ended = run(launch(tmp_path, "bash", "-c", script, isolation=Isolation.NONE))
    straggler = int(ended.stdout.head)
    try:
        assert ended.seconds < 5
        assert (ended.code, ended.survivors, ended.confirmed) == (0, (straggler,), False)
    finally:
        os.kill(straggler, signal.SIGKILL)


def test_the_end_of_the_output_is_not_lost_with_a_straggler(tmp_path: Path):
    script = "exec > >(sleep 0.03; cat); echo through a pipe"
    ended = run(launch(tmp_path, "bash", "-c", script))
    assert (ended.stdout.head, ended.swept) == (b"through a pipe\n", ())


@pytest.mark.parametrize("limit", ["memory", "file_bytes", "cpu_s"])
def test_limits_hold_each_process(tmp_path: Path, limit: str):
    scripts = {
        "memory": "bytes(300 << 20)",
        "file_bytes": "open('big', 'wb').write(bytes(1 << 20))",
        "cpu_s": "while True: pass",
    }
    bounds = {"memory": 200 << 20, "file_bytes": 4096, "cpu_s": 1}
    given = Limits(**{limit: bounds[limit]})
    ended = run(launch(tmp_path, sys.executable, "-I", "-S", "-c", scripts[limit], limits=given))
    assert ended.code != 0
    assert ended.stopped == ""


@pytest.mark.parametrize("level", [Isolation.JAIL, Isolation.REAPER])
def test_too_many_processes_are_ended(tmp_path: Path, level: Isolation):
    if level is Isolation.JAIL:
        need_jail()
    script = "for i in $(seq 60); do sleep 20 & done; wait"
    given = launch(tmp_path, "sh", "-c", script, isolation=level, limits=Limits(processes=20))
    ended = run(given)
    assert (ended.stopped, ended.signal, ended.survivors) == ("processes", signal.SIGKILL, ())


@pytest.mark.parametrize("level", [Isolation.JAIL, Isolation.REAPER])
@pytest.mark.parametrize(
    ("limits", "script"),
    [
        (
            Limits(processes=20),
            "subprocess.run('for i in $(seq 60); do sleep 0.5 & done', shell=1)",
        ),
        (Limits(resident=200 << 20), "held = b'x' * (400 << 20)"),
    ],
    ids=["processes", "memory"],
)
def test_what_is_too_much_for_a_second_is_seen(
    tmp_path: Path, level: Isolation, limits: Limits, script: str
):
    """The guard looks at a quiet tree seldom: what it starts late and ends soon must not pass."""
    if level is Isolation.JAIL:
        need_jail()
    script = f"import subprocess, time; time.sleep(0.3); {script}; time.sleep(0.5)"
    command = (sys.executable, "-I", "-S", "-c", script)
    ended = run(launch(tmp_path, *command, isolation=level, limits=limits))
    assert ended.stopped == ("processes" if limits.processes else "memory")


# -- logs ------------------------------------------------------------------------------------------


@pytest.mark.criterion("H15", "N09")
def test_a_log_is_capped_and_marked_with_its_true_size_and_hash(
    tmp_path: Path, isolation: Isolation
):
    script = "import sys\nfor _ in range(300): sys.stdout.write('0123456789abcdef' * 4096)"
    log = tmp_path / "log"
    given = launch(
        *(tmp_path, sys.executable, "-c", script),
        isolation=isolation,
        stdout_path=str(log),
        log_bytes=100_000,
    )
    out = run(given).stdout
    text = b"0123456789abcdef" * 4096 * 300
    assert (out.size, out.stored, out.truncated) == (len(text), 100_000, True)
    assert out.sha256 == hashlib.sha256(text).hexdigest()
    assert log.read_bytes() == text[:100_000]
    assert (out.head, out.tail) == (text[: 256 * 1024], text[-256 * 1024 :])


def test_secrets_are_in_no_part_of_the_output(tmp_path: Path, isolation: Isolation):
    secret = b"correct horse battery staple"
    lines: list[bytes] = []
    given = launch(
        *(tmp_path, "sh", "-c", "printf 'it is correct horse'; sleep 0.05; echo ' battery staple'"),
        isolation=isolation,
        stdout_path=str(tmp_path / "log"),
        secrets=(secret,),
    )
    ended = run(given, line=lines.append)
    assert lines == [b"it is [redacted]"]
    assert ended.stdout.head == (tmp_path / "log").read_bytes() == b"it is [redacted]\n"


def test_a_full_disk_stops_the_run(tmp_path: Path, isolation: Isolation):
    script = "while :; do echo 0123456789; done"
    given = launch(tmp_path, "sh", "-c", script, isolation=isolation, stdout_path="/dev/full")
    ended = run(given)
    assert (ended.disk_full, ended.stopped, ended.signal) == (True, "disk", signal.SIGKILL)
    assert ended.stdout.stored == 0
    assert ended.stdout.size > 0


def test_a_log_that_cannot_be_opened_starts_nothing(tmp_path: Path):
    marker = tmp_path / "ran"
    given = launch(tmp_path, "touch", str(marker), stdout_path=str(tmp_path / "no" / "log"))
    with pytest.raises(Unavailable, match="can't be written"):
        run(given)
    assert not marker.exists()
    assert issubclass(DiskFull, Unavailable)


def test_a_log_is_never_written_through_a_link(tmp_path: Path):
    (tmp_path / "log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable):
        run(launch(tmp_path, "true", stdout_path=str(tmp_path / "log")))


# -- our own programs ------------------------------------------------------------------------------


def test_a_tool_answers():
    done = tool(["sh", "-c", "cat; echo oh >&2; exit 3"], stdin=b"in")
    assert done == (3, b"in", b"oh\n", False, False)


def test_a_tool_that_hangs_dies_with_its_group():
    word = f"hang-{os.urandom(6).hex()}"
    done = tool(["sh", "-c", f"sleep 30 & echo {word}; sleep 30"], timeout=0.3)
    assert (done.code, done.timed_out, done.stdout) == (None, True, word.encode() + b"\n")
    until(lambda: alive_with(word) == [])


def test_a_tool_that_says_too_much_is_cut_and_has_no_code():
    done = tool(["sh", "-c", "yes"], limit=10_000)
    assert (done.code, done.truncated, len(done.stdout)) == (None, True, 10_000)


def test_a_tool_whose_child_keeps_the_pipe_open_still_answers():
    done = tool(["sh", "-c", "sleep 30 & echo done"], timeout=10)
    assert (done.code, done.stdout, done.timed_out) == (0, b"done\n", False)


def test_a_tool_that_is_not_there_is_a_matter_of_the_surroundings(tmp_path: Path):
    with pytest.raises(Unavailable, match="is not on the PATH"):
        tool(["no-such-tool"])
    with pytest.raises(Unavailable, match="working directory"):
        tool(["true"], cwd=str(tmp_path / "gone"))


def test_a_tool_has_the_environment_and_directory_that_it_is_given(tmp_path: Path):
    done = tool(["/bin/sh", "-c", "pwd; echo $A"], cwd=str(tmp_path), env={"A": "b"})
    assert done.stdout == f"{tmp_path}\nb\n".encode()


def test_a_detached_program_outlives_us(tmp_path: Path):
    script = """
import sys
from truegreen.work.process import spawn_detached
print(*spawn_detached(["sh", "-c", "echo up; echo bad >&2; sleep 30"], {}, "/", sys.argv[1])[1:])
"""
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", script, log], capture_output=True, text=True, check=True
    )
    pid, start = map(int, done.stdout.split())
    identity = Identity(process.me().boot, pid, start)
    try:
        until(lambda: log.read_bytes() == b"up\nbad\n")
        assert identity.alive()
        assert os.getsid(pid) == pid
    finally:
        os.killpg(pid, signal.SIGKILL)
    until(lambda: not identity.alive())


def test_a_detached_program_that_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(Unavailable, match="there is no file"):
        process.spawn_detached(["/no/such"], {}, "/", str(tmp_path / "log"))


def test_every_error_of_a_launch_has_a_sentence():
    for number in errno.errorcode:
        name, sentence = process.launch_error("exec", number, launch(Path("/"), "x"))
        assert name
        assert len(sentence) > 10
