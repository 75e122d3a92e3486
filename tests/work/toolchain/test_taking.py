"""What is taken before an agent starts: what the gates need, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.work.gates.trees import SYSTEM_PATH, Tree, run_gate
from tests.work.toolchain.kit import environment, pinned_paths, pretend, pytest_gate, taken
from truegreen.contract import Gate, GateKind
from truegreen.work.toolchain import Toolchain, pinning, taking
from truegreen.work.toolchain import python as interpreters
from truegreen.work.toolchain.differences import newest_code
from truegreen.work.toolchain.keeping import changed
from truegreen.work.toolchain.scanning import Bounds

IGNORED = ".venv/\nvenv/\nnode_modules/\nbuild/\nlinked\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path, {".gitignore": IGNORED, "src/app.py": "", "check.sh": "#!/bin/sh\n"})
    environment(made.root / ".venv", tmp_path / "base")
    return made.write({
        "node_modules/jest/cli.js": "x",
        "node_modules/.bin/jest": "#!/usr/bin/env node\n",
        "build/tests": "#!/bin/sh\necho built\n",
        "build/other": "x",
    })  # fmt: skip


def test_without_gates_that_run_something_nothing_is_looked_at(tree, monkeypatch):
    def never(*_: object, **__: object) -> None:
        pytest.fail("something was looked at")

    for room, name in ((pinning, "scan"), (interpreters, "ask"), (taking, "chain_of")):
        monkeypatch.setattr(room, name, never)
    gate = Gate(name="there", kind=GateKind.EXISTS, paths=("a",))
    assert taken(tree) == taken(tree, gate) == Toolchain()
    assert not (tree.home / "state").exists()


def test_a_pytest_gate_gets_its_environment_and_what_that_stands_on(tree):
    tools = taken(tree, pytest_gate())
    python = tools.pythons[""]
    assert python.program == f"{tree.root}/.venv/bin/python"
    assert (python.version, python.pytest) == ("3.12.1", "9.0.0")
    assert pinned_paths(tools, tree.root) == [".venv"]
    assert pinned_paths(tools, tree.home / "base") == ["lib/python3.12"]
    assert Path(tools.copy_of(python.program)).read_bytes() == Path(python.program).read_bytes()


def test_a_pytest_gate_without_pytest_says_what_to_do(tmp_path):
    tools = taken(Tree(tmp_path, {"a": ""}), pytest_gate("no/python"), path="/nonexistent")
    assert not tools.pythons
    assert "no such interpreter" in tools.missing["no/python"]
    assert tools.notes == (tools.missing["no/python"],)


def test_packages_of_the_base_are_not_taken_for_an_environment_that_does_not_use_them(tree):
    library = tree.home / "base" / "lib" / "python3.12"
    (library / "site-packages" / "huge").mkdir(parents=True)
    (library / "os.py").write_text("")
    tools = taken(tree, pytest_gate())
    copy = Path(tools.copy_of(str(library)))
    assert (copy / "os.py").exists()
    assert not list((copy / "site-packages").iterdir())


def test_packages_of_the_base_are_taken_where_they_are_used(tree):
    sites = tree.home / "base" / "lib" / "python3.12" / "site-packages"
    (sites / "used").mkdir(parents=True)
    pretend(
        tree.home / "bin" / "python3",
        prefix=tree.home / "base",
        base=tree.home / "base",
        path=[str(sites.parent), str(sites)],
    )
    path = f"{tree.home}/bin:{SYSTEM_PATH}"
    tools = taken(tree, run_gate("python3", "-c", ""), path=path)
    assert Path(tools.copy_of(str(sites / "used"))).is_dir()
    both = taken(tree, pytest_gate(), run_gate("python3", "-c", ""), path=path)
    assert Path(both.copy_of(str(sites / "used"))).is_dir()


def test_folders_that_an_environment_is_led_to_are_taken_unless_they_are_the_work(tree):
    (tree.home / "shared").mkdir()
    library = tree.home / "base" / "lib" / "python3.12"
    path = [str(library), f"{tree.root}/src", str(tree.root), f"{tree.home}/shared"]
    environment(tree.root / ".venv", tree.home / "base", path=path)
    tools = taken(tree, pytest_gate())
    assert pinned_paths(tools, tree.root) == [".venv"]
    assert f"{tree.home}/shared" in [pin.path for pin in tools.pins]
    assert tools.pythons[""].sites == tuple(path[1:])


def test_a_command_gets_what_projects_depend_on(tree):
    tools = taken(tree, run_gate("make", "test"))
    assert pinned_paths(tools, tree.root) == [".venv", "node_modules"]
    assert pinned_paths(tools, tree.home / "base") == ["lib/python3.12"]


def test_a_command_that_only_reads_gets_nothing_of_the_workspace(tree):
    for words in (("test", "-s", "build/tests"), ("grep", "-q", "x", "a")):
        assert not pinned_paths(taken(tree, run_gate(*words)), tree.root)


def test_dependencies_in_the_folder_of_the_task_and_at_the_top_are_taken(tree):
    tree.write({"sub/a": "", "sub/node_modules/x/i.js": ""})
    environment(tree.root / "sub" / "venv", tree.home / "base")
    tools = taken(tree, run_gate("make"), folder="sub")
    assert pinned_paths(tools, tree.root) == [
        ".venv",
        "node_modules",
        "sub/node_modules",
        "sub/venv",
    ]


def test_packages_that_the_repository_has_are_part_of_the_work(tmp_path):
    tree = Tree(tmp_path, {"node_modules/x/index.js": ""})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npm").write_text("#!/bin/sh\n")  # a real one comes with many packages
    (tmp_path / "bin" / "npm").chmod(0o755)
    tools = taken(tree, run_gate("npm", "test"), path=f"{tmp_path}/bin")
    assert f"{tmp_path}/bin/npm" in tools.programs
    assert not pinned_paths(tools, tree.root)


def test_without_a_repository_dependencies_are_taken_all_the_same(tmp_path):
    tree = Tree(tmp_path, {"node_modules/x/index.js": "", "a": ""}, git=False)
    assert pinned_paths(taken(tree, run_gate("make")), tree.root) == ["node_modules"]


def test_links_from_packages_into_the_work_stay(tree):
    (tree.root / "node_modules" / "mine").symlink_to("../src")
    (tree.root / "node_modules" / "built").symlink_to("../build")
    copy = Path(taken(tree, run_gate("make")).copy_of(f"{tree.root}/node_modules"))
    assert os.readlink(copy / "mine") == "../src"
    assert (copy / "built" / "other").read_text() == "x"
    assert not (copy / "built").is_symlink()


def test_an_environment_behind_a_link_is_pinned_at_both_ends(tree):
    (tree.root / ".venv").rename(tree.home / "envs")
    (tree.root / ".venv").symlink_to(tree.home / "envs")
    tools = taken(tree, run_gate(".venv/bin/python"))
    paths = [pin.path for pin in tools.pins]
    assert {f"{tree.root}/.venv", f"{tree.home}/envs"} <= set(paths)
    assert len({pin.copy for pin in tools.pins if pin.path.endswith(("venv", "envs"))}) == 1


@pytest.mark.parametrize(
    ("words", "pinned"),
    [
        (("tools/env/bin/lint",), ["tools/env"]),
        (("sh", "-c", "tools/env/bin/lint && true"), ["tools/env"]),
        (("pkg/node_modules/.bin/jest",), ["pkg/node_modules"]),
        (("build/tests", "-v"), ["build/tests"]),
        (("sh", "build/tests"), ["build/tests"]),
        (("./check.sh",), []),
    ],
)
def test_what_a_command_names_in_the_workspace_is_taken(tmp_path, words, pinned):
    tree = Tree(
        tmp_path, {".gitignore": "env/\nnode_modules/\nbuild/\n", "check.sh": "#!/bin/sh\n"}
    )
    environment(tree.root / "tools" / "env", tmp_path / "base")
    tree.write({
        "tools/env/bin/lint": "#!/bin/sh\n",
        "pkg/node_modules/.bin/jest": "#!/bin/sh\n",
        "build/tests": "#!/bin/sh\n",
    })  # fmt: skip
    tools = taken(tree, run_gate(*words))
    assert pinned_paths(tools, tree.root) == pinned
    assert [pin.product for pin in tools.pins if pin.file] == [True] * pinned.count("build/tests")


def test_programs_elsewhere_are_known_again(tree):
    program = tree.home / "bin" / "lint"
    program.parent.mkdir()
    program.write_text("#!/usr/bin/env helper\n")
    (program.parent / "helper").write_text("#!/bin/sh\n")
    for each in (program, program.parent / "helper"):
        each.chmod(0o755)
    gate = run_gate("sh", "-c", "lint . || exit 1")
    tools = taken(tree, gate, path=f"{program.parent}:{SYSTEM_PATH}")
    assert {str(program), f"{program.parent}/helper"} <= set(tools.programs)
    assert not changed(tools)
    (program.parent / "helper").write_text("#!/bin/sh\nexit 0\n")
    assert changed(tools) == [f"{program.parent}/helper"]
    assert not changed(tools, [str(program)])


def test_a_program_that_was_only_touched_is_the_same(tree):
    program = tree.home / "bin" / "lint"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    tools = taken(tree, run_gate("lint"), path=f"{program.parent}:{SYSTEM_PATH}")
    os.utime(program)
    assert not changed(tools)
    program.unlink()
    assert changed(tools) == [str(program)]


def test_a_package_that_a_program_on_the_path_came_with_is_taken(tree):
    library = tree.home / "lib" / "node_modules" / "@scope" / "tool"
    (library / "bin").mkdir(parents=True)
    (library / "bin" / "cli.js").write_text("#!/usr/bin/env node\n")
    (library / "bin" / "cli.js").chmod(0o755)
    (tree.home / "bin").mkdir()
    (tree.home / "bin" / "tool").symlink_to(library / "bin" / "cli.js")
    tools = taken(tree, run_gate("tool"), path=f"{tree.home}/bin:{SYSTEM_PATH}")
    assert str(library) in [pin.path for pin in tools.pins]


def test_the_interpreter_of_a_script_on_the_path_is_taken(tree):
    program = environment(tree.home / "tools", tree.home / "base")
    (program.parent / "lint").write_text(f"#!{program}\n")
    (program.parent / "lint").chmod(0o755)
    tools = taken(tree, run_gate("lint"), path=f"{program.parent}:{SYSTEM_PATH}")
    assert {f"{tree.home}/tools", f"{tree.home}/base/lib/python3.12"} <= {
        pin.path for pin in tools.pins
    }


def test_compilers_that_rustup_leads_to_are_taken_and_found_in_the_home(tree, tmp_path):
    home = tmp_path / "person"
    for name in ("stable/bin/rustc", "stable/share/doc", "nightly/bin/rustc"):
        (home / ".rustup/toolchains" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / ".rustup/toolchains" / name).write_text(name)
    (home / ".rustup/settings.toml").write_text('version = "12"\ndefault_toolchain = "stable"\n')
    (home / ".cargo/bin").mkdir(parents=True)
    (home / ".cargo/bin/rustup").write_text("#!/bin/sh\n")
    (home / ".cargo/bin/rustup").chmod(0o755)
    (home / ".cargo/bin/cargo").symlink_to("rustup")
    more = {"path": f"{home}/.cargo/bin:{SYSTEM_PATH}", "environ": {"HOME": str(home)}}
    tools = taken(tree, run_gate("cargo", "test"), **more)
    assert tools.homes == {"RUSTUP_HOME": f"{home}/.rustup", "CARGO_HOME": f"{home}/.cargo"}
    copy = Path(tools.copy_of(f"{home}/.rustup/toolchains"))
    assert (copy / "stable/bin/rustc").exists()
    assert not (copy / "stable/share/doc").exists()
    assert not (copy / "nightly/bin/rustc").exists()
    assert tools.pin_of(f"{home}/.cargo/config.toml")
    tree.write({"rust-toolchain.toml": '[toolchain]\nchannel = "nightly"\n'})
    tools = taken(tree, run_gate("cargo", "test"), **more)
    assert Path(tools.copy_of(f"{home}/.rustup/toolchains/nightly/bin/rustc")).exists()
    assert not taken(tree, run_gate("make", "test"), **more).homes


@pytest.mark.parametrize("prefix", ["{root}", "{home}", "{home}/state", "/usr", "/"])
def test_whole_parts_of_a_machine_are_never_taken(tree, prefix):
    place = Path(prefix.format(root=tree.root, home=tree.home))
    program = tree.home / "odd" / "python"
    pretend(program, prefix=tree.home / "odd", base=tree.home / "base")
    text = program.read_text().replace(f'"prefix": "{tree.home}/odd"', f'"prefix": "{place}"')
    program.write_text(text)
    tools = taken(tree, pytest_gate(str(program)), environ={"HOME": str(tree.home)})
    assert tools.pythons
    assert str(place) not in [pin.path for pin in tools.pins]


def test_what_is_too_much_is_said_and_not_pinned(tree, monkeypatch):
    monkeypatch.setattr(Bounds, "__new__", lambda cls: tuple.__new__(cls, (2, 1 << 30)))
    tools = taken(tree, run_gate("make"))
    assert f"{tree.root}/.venv has more than 2 files: it is not pinned" in tools.notes


def test_the_digest_is_by_contents(tree, tmp_path):
    gates = (run_gate("make"), pytest_gate())
    first = taken(tree, *gates)
    assert first.digest.startswith("blake2b:")
    assert taken(tree, *gates, store=str(tmp_path / "other")).digest == first.digest
    os.utime(tree.root / "node_modules" / "jest" / "cli.js")
    assert taken(tree, *gates).digest == first.digest
    tree.write({"node_modules/jest/cli.js": "y"})
    assert taken(tree, *gates).digest != first.digest


def test_an_environment_around_a_link_to_the_systems_interpreter_is_taken(
    tree, tmp_path, monkeypatch
):
    system = pretend(tmp_path / "usr/python3", prefix=tmp_path / "env", base=tmp_path / "usr")
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python3").symlink_to(system)
    reach = "truegreen.work.toolchain.taking.within_reach"
    monkeypatch.setattr(reach, lambda path: os.path.realpath(path).startswith(f"{tmp_path}/env"))
    tools = taken(tree, run_gate("python3", "-m", "x"), path=f"{tmp_path}/env/bin:{SYSTEM_PATH}")
    assert pinned_paths(tools, tmp_path) == ["env"]


@pytest.mark.parametrize("ahead", [300_000_000, 3600 * 10**9], ids=["stamps lag", "clock set back"])
def test_what_changes_right_after_tools_were_taken_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    project = Tree(tmp_path, {"run.sh": "true\n"})
    begun = time.time_ns() + ahead
    monkeypatch.setattr("truegreen.work.toolchain.taking.time.time_ns", lambda: begun)
    tools = taken(project, run_gate("sh", "run.sh"))
    (tmp_path / "evil.pth").write_text("import evil\n")
    assert newest_code(str(tmp_path), tools.taken) == str(tmp_path / "evil.pth")
    assert newest_code(str(project.root), tools.taken) == ""
