"""Tools beside our copies of them: what differs is named, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from truegreen.work.toolchain import Pin, Toolchain
from truegreen.work.toolchain.differences import Difference, difference, newest_code
from truegreen.work.toolchain.pinning import Store


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "tools"
    for name in ("bin/run", "lib/a.py", "lib/b.py", "lib/__pycache__/a.cpython-311.pyc"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    (folder / "bin/run").chmod(0o755)
    (folder / "bin/link").symlink_to("run")
    (folder / "test").mkdir()
    (folder / "test/left_out.py").write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/c.py").write_text("c\n")
    (folder / "led").symlink_to(tmp_path / "elsewhere")
    return folder


def pinned(tools: Path, store: Path) -> tuple[Pin, Toolchain]:
    """A pin as it is taken, and some time after it: changes have later times."""
    time.sleep(0.05)
    begun = time.time_ns()
    pin = Store(str(store)).pin(str(tools), lambda _: False, ("test/left_out.py",))
    assert isinstance(pin, Pin)
    return pin, Toolchain(pins=(pin,), taken=begun)


def after(tools: Path, tmp_path: Path, agent: str) -> Difference:
    pin, taken = pinned(tools, tmp_path / "store")
    subprocess.run(["sh", "-ec", agent], cwd=tools, check=True)
    return difference(pin, taken)


@pytest.mark.parametrize(
    "agent",
    [
        "true",
        "touch lib/a.py bin/run lib .",
        "cp lib/a.py x; mv x lib/a.py",
        "mv lib x; mv x lib",
        "cp -r lib x; rm -r lib; mv x lib",
        "cd ..; cp -a tools x; rm -r tools x/test/*; mv x tools",
        "mkdir -p new/empty",
        "touch test",
        "mkfifo lib/pipe",
    ],
)
def test_what_has_the_same_contents_is_the_same(tools, tmp_path, agent):
    assert after(tools, tmp_path, agent) == Difference()


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        ("echo evil > lib/a.py", "lib/a.py"),
        ("printf 'lib/X.py\\n' > lib/a.py; touch -d @1 lib/a.py", "lib/a.py"),
        ("rm lib/b.py", "lib/b.py"),
        ("rm -r lib", "lib"),
        ("echo evil > lib/sitecustomize.py", "lib/sitecustomize.py"),
        ("echo evil > lib/evil.pth; touch -d @1 lib/evil.pth", "lib/evil.pth"),
        ("mkdir new; echo evil > new/a.py; touch -d @1 new/a.py new", "new/a.py"),
        ("chmod -x bin/run", "bin/run"),
        ("rm bin/link; ln -s ../lib/a.py bin/link", "bin/link"),
        ("rm bin/link; cp bin/run bin/link", "bin/link"),
        ("rm lib/a.py; mkdir lib/a.py", "lib/a.py"),
        ("echo evil > led/c.py", "led/c.py"),
        ("echo evil > led/d.py", "led/d.py"),
        ("ln -s a.py lib/d.py", "lib/d.py"),
        ("echo evil > test/new.py", "test/new.py"),
        ("rm -r ../tools", "."),
    ],
)
def test_what_differs_is_named(tools, tmp_path, agent, file):
    found = after(tools, tmp_path, agent)
    assert (os.path.normpath(tools / file), "") == (found.file, found.byte_code)


def test_a_folder_prepared_earlier_and_moved_here_is_read(tools, tmp_path):
    """Its files are older than the task, and look alike."""
    subprocess.run(["cp", "-a", tools / "lib", tmp_path / "prepared"], check=True)
    old = (tools / "lib/a.py").stat()
    forged = tmp_path / "prepared/a.py"
    forged.write_text("evil.py!\n")
    assert forged.stat().st_size == old.st_size
    os.utime(forged, ns=(old.st_atime_ns, old.st_mtime_ns))
    found = after(tools, tmp_path, f"rm -r lib; mv {tmp_path}/prepared lib")
    assert found.file == str(tools / "lib/a.py")


def test_a_folder_above_that_was_prepared_earlier_is_read(tools, tmp_path):
    subprocess.run(["cp", "-a", tools.parent, tmp_path / "prepared"], check=True)
    (tmp_path / "prepared/tools/lib/a.py").write_text("evil.py!\n")
    agent = f"cd {tmp_path}; mv home away; mv prepared home"
    assert after(tools, tmp_path, agent).file == str(tools / "lib/a.py")


@pytest.mark.parametrize("name", ["a", "new"])
def test_byte_code_is_told_apart(tools, tmp_path, name):
    found = after(tools, tmp_path, f"echo x > lib/__pycache__/{name}.cpython-311.pyc")
    assert found == Difference("", str(tools / f"lib/__pycache__/{name}.cpython-311.pyc"))
    found = after(tools, tmp_path, "mkdir bin/__pycache__; echo x > bin/__pycache__/a.pyc")
    assert found == Difference("", str(tools / "bin/__pycache__/a.pyc"))


def test_a_file_alone_is_compared(tools, tmp_path):
    pin, taken = pinned(tools / "bin/run", tmp_path / "store")
    assert difference(pin, taken) == Difference()
    (tools / "bin/run").write_text("evil\n")
    assert difference(pin, taken).file == str(tools / "bin/run")


def test_caches_of_packages_are_no_difference(tmp_path):
    packages = tmp_path / "node_modules"
    packages.mkdir()
    (packages / "a.js").write_text("a\n")
    assert not after(packages, tmp_path, "mkdir .cache; echo x > .cache/a; mkdir .vite").file
    assert after(packages, tmp_path, "mkdir .other; echo x > .other/a").file


def test_the_state_of_cargo_is_no_difference_and_a_changed_crate_is(tmp_path):
    home = tmp_path / "cargo"
    (home / "registry/src/i/a-1").mkdir(parents=True)
    (home / "registry/src/i/a-1/lib.rs").write_text("a\n")
    pin, taken = pinned(home, tmp_path / "store")
    tools = Toolchain(pins=(pin,), taken=taken.taken, homes={"CARGO_HOME": str(home)})
    (home / ".global-cache").write_text("x")
    (home / "registry/src/i/b-1").mkdir()
    (home / "registry/src/i/b-1/lib.rs").write_text("b\n")
    assert not difference(pin, tools).file
    (home / "registry/src/i/a-1/lib.rs").write_text("evil\n")
    assert difference(pin, tools).file.endswith("a-1/lib.rs")


def test_tools_that_were_taken_at_an_unknown_time_differ(tools, tmp_path):
    pin, _ = pinned(tools, tmp_path / "store")
    assert difference(pin, Toolchain(pins=(pin,))).file == pin.path


def test_code_that_was_changed_in_a_folder_is_found(tmp_path):
    (tmp_path / "lib/__pycache__").mkdir(parents=True)
    (tmp_path / "lib/a.py").write_text("")
    time.sleep(0.05)
    since = time.time_ns()
    (tmp_path / "lib/notes.txt").write_text("")
    (tmp_path / "lib/__pycache__/a.pyc").write_text("")
    assert newest_code(str(tmp_path), since) == ""
    new = tmp_path / "lib/evil.pth"
    time.sleep(0.05)  # files bear the time of the last tick of the kernel's clock
    new.write_text("")
    assert newest_code(str(tmp_path), since) == str(new)
    assert newest_code(str(tmp_path), since, {str(new)}) == ""
    assert newest_code(str(tmp_path), since, without=[str(tmp_path / "lib")]) == ""
    assert newest_code(str(tmp_path / "lib"), since, without=[str(tmp_path / "lib")]) == str(new)
