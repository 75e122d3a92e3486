"""Which files a check consists of, and what happens when the agent had them in hand."""

from __future__ import annotations

import os
import shutil
import sys

import pytest
from msgspec.structs import replace

from tests.conftest import missing
from tests.table import each_row
from tests.work.gates.trees import SYSTEM_PATH, Tree, run_gate
from truegreen.contract import Isolation
from truegreen.model import FindingOutcome, Level
from truegreen.work.gates.own import own_of
from truegreen.work.gates.spoken import gate_of
from truegreen.work.gates.test_files import is_doctest, runs_tests

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE
HONEST = "#!/bin/sh\necho honest; exit 1\n"
FORGED = "#!/bin/sh\necho forged\n"
WORK = {"notes.txt": "something that belongs to no check\n"}


@pytest.fixture(scope="session")
def mypy_cache(tmp_path_factory):
    """What mypy knows about Python's own modules; to find it out takes five times as long."""
    return str(tmp_path_factory.mktemp("mypy"))


@each_row(
    ("words", "files"),
    [
        (("./check.sh", "x"), ["check.sh"]),
        (("scripts/check",), ["scripts/check"]),
        (("python3", "-I", "-W", "error", "tools/check.py", "d.json"), ["tools/check.py"]),
        (("sh", "check.sh"), ["check.sh"]),
        (("sh", "-c", "set -e; ./a.sh | node b.js > c.js"), ["a.sh", "b.js"]),
        (("sh", "-c", "bash < check.sh"), ["check.sh"]),
        (("sh", "-c", ". ./env.sh; eval './check.sh x'"), ["env.sh", "check.sh"]),
        (("sh", "-c", 'cd "$X" && ./check.sh'), ["check.sh", "**/check.sh"]),
        (("sh", "-c", '"$PWD/a/check.sh"'), ["**/a/check.sh"]),
        (("node", "-r", "./setup.js", "check.js"), ["setup.js", "check.js"]),
        (("uv", "run", "--with", "x", "check.py"), ["check.py"]),
        (("coverage", "run", "check.py"), ["check.py"]),
        (("python", "-c", "pass", "x.py"), []),
        (("pytest", "tests/test_x.py"), []),
        (("grep", "-q", "x", "out.txt"), []),
        (("diff", "a/b.sh", "c"), []),
        (("/bin/sh", "/outside/check.sh"), []),
        (("../outside.sh",), []),
        (("node", "--test", "x.js"), []),
        (("python", "-m", "pytest", "tests/x.py"), []),
        (("make", "-f", "other.mk"), ["GNUmakefile", "makefile", "Makefile", "other.mk"]),
        (("python3", "-O", "check.py"), ["check.py"]),
        (("php", "-d", "memory_limit=1G", "check.php"), ["check.php"]),
        (("ruby", "-C", "sub", "check.rb"), ["check.rb"]),
        (("node", "-C", "test", "check.js"), ["check.js"]),
        (("deno", "run", "--config", "deno.json", "check.ts"), ["check.ts"]),
        (("coverage", "run", "--source", "src", "check.py"), ["check.py"]),
    ],
)
def test_the_own_files_of_a_check_are_found_in_its_words(words, files):
    assert list(own_of(words, "").files) == files


CHECK_ONLY = [
    *("sh -n page.sh", "bash -n page.sh", "dash -n page.sh", "zsh -n page.sh", "ksh -n page.sh"),
    *("sh -en page.sh", "bash -nv page.sh", "bash -euo pipefail -n page.sh", "bash -o noexec p.sh"),
    *("env sh -n page.sh", "timeout 9 sh -n page.sh", "true && sh -n page.sh"),
    *("perl -c page.pl", "perl -wc page.pl", "perl -cw page.pl", "perl -Ilib -c page.pl"),
    *("ruby -c page.rb", "ruby -wc page.rb", "php -l page.php", "php --syntax-check page.php"),
    *("php -d display_errors=1 -l page.php", "node --check page.js", "node -c page.js"),
    *("luac -p page.lua", "deno check page.ts", "python3 -m py_compile page.py"),
    *("python3 -m compileall page.py", "sh -c 'sh -n page.sh'", "for f in a; do sh -n p.sh; done"),
]


def test_a_file_whose_syntax_is_checked_is_the_work():
    for line in CHECK_ONLY:
        own = own_of(gate_of(line).command, "")
        assert not [path for path in (*own.files, *own.suspects) if "." in path], line
        assert not runs_tests(gate_of(line)), line


def test_a_script_that_is_checked_and_run_is_the_check():
    for line in (
        *("sh -n page.sh && sh page.sh", "sh -e page.sh -n", "node app.js --check"),
        *("bash -n +n page.sh", "bash -o noexec +o noexec page.sh", "bash -n -i page.sh"),
    ):
        assert [path for path in own_of(gate_of(line).command, "").files if "." in path], line


@pytest.mark.parametrize(
    ("line", "name", "good", "bad"),
    [
        ("sh -n page.sh", "page.sh", "echo x\n", "if true; then\n"),
        ("bash -n page.sh", "page.sh", "#!/bin/bash\necho x\n", "#!/bin/bash\nfor i in\n"),
        ("dash -en page.sh", "page.sh", "echo x\n", "case x in\n"),
        ("perl -wc page.pl", "page.pl", "my $x = 1;\n", "my $x = ;\n"),
        ("node --check page.js", "page.js", "let x = 1;\n", "let x = ;\n"),
        ("python3 -m py_compile page.py", "page.py", "#!/usr/bin/python3\nx = 1\n", "#!x\nx =\n"),
        ("bash -n tests/page_test.sh", "tests/page_test.sh", "echo x\n", "if true; then\n"),
    ],
)
def test_broken_work_does_not_pass_a_check_of_its_syntax(tmp_path, line, name, good, bad):
    if shutil.which(line.split()[0]) is None:
        missing(line.split()[0])
    broken = Tree(tmp_path, {name: good}).write({name: bad})
    found = broken.ask(gate_of(line), path=SYSTEM_PATH)
    assert (found.outcome, found.level) == (FAILED, Level.A2), found.reason
    mended = broken.write({name: good, **WORK})
    found = mended.ask(gate_of(line), path=SYSTEM_PATH)
    assert (found.outcome, found.level) == (PASSED, Level.A2), found.reason


def test_a_script_behind_options_with_values_comes_from_the_base(tmp_path):
    tree = Tree(tmp_path, {"verify.py": "raise SystemExit('honest')\n", "verify.js": "throw 1\n"})
    tree.write({"verify.py": "print('forged')\n", "verify.js": "\n"})
    for line in ("python3 -O verify.py", "python3 -X dev verify.py", "node -C x verify.js"):
        if shutil.which(line.split()[0]) is None:
            missing(line.split()[0])
        assert tree.ask(gate_of(line), path=SYSTEM_PATH).outcome is FAILED, line


# --- a program that is the check and the work at once


def test_a_mended_program_that_the_gate_runs_is_left_to_a_person(tmp_path):
    tree = Tree(
        tmp_path, {"main.py": "import sys\nsys.exit('wrong')\n", "app/__main__.py": "1/0\n"}
    )
    tree.write({"main.py": "print('right')\n", "app/__main__.py": "print('right')\n"})
    for line, name in (("python3 main.py", "main.py"), ("python3 -m app", "app/__main__.py")):
        found = tree.ask(gate_of(line), path=SYSTEM_PATH)
        assert found.outcome is ERROR, found.reason
        assert f"fails with {name} from before the agent" in found.reason
        assert f"--may-edit {name} --require A1" in found.reason
        found = tree.ask(replace(gate_of(line), may_edit=(name,)), path=SYSTEM_PATH)
        assert (found.outcome, found.level) == (PASSED, Level.A1)


@pytest.mark.parametrize(
    "name", ["verify.py", "tests/run.py", "ci/all.py", "run_checks.py", "smokeTest.py"]
)
def test_an_edited_program_that_is_named_like_a_check_fails(tmp_path, name):
    tree = Tree(tmp_path, {name: "raise SystemExit('honest')\n"}).write({name: "print('forged')\n"})
    found = tree.ask(gate_of(f"python3 {name}"), path=SYSTEM_PATH)
    assert found.outcome is FAILED


def test_an_edited_program_that_the_task_protects_fails(tmp_path):
    tree = Tree(tmp_path, {"main.py": "raise SystemExit('honest')\n"}).write({"main.py": "\n"})
    found = tree.ask(gate_of("python3 main.py"), path=SYSTEM_PATH, protect=("main.py",))
    assert found.outcome is FAILED


# --- a copy from which all work was removed


def test_a_pass_without_any_of_the_work_is_no_pass(tmp_path):
    tree = Tree(tmp_path, {"main.py": "print('fine')\n", "check.sh": "#!/bin/sh\ntrue\n"})
    tree.write({"main.py": "raise SystemExit('broken')\n"})
    found = tree.ask(gate_of("python3 main.py"), path=SYSTEM_PATH)
    assert found.outcome is FAILED
    assert "with the agent's version: broken" in found.reason
    tree.write({"main.py": "print('other')\n"})
    found = tree.ask(gate_of("python3 main.py"), path=SYSTEM_PATH)
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert "main.py" in found.evidence["doubt"]
    tree.write({"main.py": "print('fine')\n", "check.sh": "#!/bin/sh\nexit 1\n"})
    found = tree.ask(gate_of("./check.sh"), path=SYSTEM_PATH)
    assert found.outcome is ERROR
    assert "passes only without the work" in found.reason
    tree.write(WORK)
    assert tree.ask(gate_of("./check.sh"), path=SYSTEM_PATH).outcome is PASSED


def test_edited_tests_alone_pass_only_if_they_pass_in_both_forms(tmp_path):
    test = "def test_a():\n    assert True\n"
    tree = Tree(tmp_path, {"tests/test_a.py": test})
    tree.write({"tests/test_a.py": test + "\n\ndef test_b():\n    assert True\n"})
    found = tree.ask(PYTEST)
    assert (found.outcome, found.level) == (PASSED, Level.A2)
    tree.write({"tests/test_a.py": test + "\n\ndef test_b():\n    assert False\n"})
    found = tree.ask(PYTEST)
    assert found.outcome is ERROR
    assert "1 failed of 2" in found.reason


@pytest.mark.parametrize(
    "line",
    [
        "bash -e check.sh",
        "bash -euo pipefail check.sh",
        "cd sub && ../check.sh",
        "(cd sub && true) && ./check.sh",
        "for i in 1; do ./check.sh; done",
        "if ./check.sh; then true; else exit 1; fi",
        "timeout -k 5 60 ./check.sh",
        "sh < check.sh",
        "bash -ec 'true && ./check.sh'",
    ],
)
def test_however_a_script_is_called_it_comes_from_the_base(tmp_path, line):
    tree = Tree(tmp_path, {"check.sh": HONEST, "sub/x": ""}).write({"check.sh": FORGED})
    found = tree.ask(gate_of(line), path=SYSTEM_PATH)
    assert found.outcome is FAILED
    assert "passes only with the agent's edits to check.sh" in found.reason


def test_a_script_above_the_folder_of_the_task_comes_from_the_base(tmp_path):
    tree = Tree(tmp_path, {"top.sh": HONEST, "sub/check.sh": HONEST})
    tree.write({"top.sh": FORGED, "sub/check.sh": FORGED})
    for line, folder in (("../top.sh", "sub"), ("cd sub && ./check.sh", "")):
        assert tree.ask(gate_of(line), folder=folder).outcome is FAILED, line


def test_a_module_of_the_tree_comes_from_the_base_and_an_added_one_is_worth_a1(tmp_path):
    tree = Tree(tmp_path, {"checks/run.py": "raise SystemExit('honest')\n"})
    tree.write({"checks/run.py": "print('forged')\n"})
    assert tree.ask(run_gate("python3", "-m", "checks.run"), path=SYSTEM_PATH).outcome is FAILED
    tree.write({"other/__main__.py": "print('forged')\n"})
    found = tree.ask(run_gate("python3", "-m", "other"), path=SYSTEM_PATH)
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert "other/__main__.py is its own file" in found.evidence["doubt"]


def test_a_module_that_stands_in_for_a_test_runner_is_worth_a1(tmp_path):
    tree = Tree(tmp_path, {"a": ""}).write({"pytest.py": "print('3 passed in 0.1s')\n"})
    found = tree.ask(run_gate("python3", "-m", "pytest"), path=SYSTEM_PATH)
    assert (found.outcome, found.level) == (PASSED, Level.A1)


@pytest.mark.criterion("E05")
def test_a_makefile_is_restored_and_one_that_stands_in_for_it_is_taken_away(tmp_path):
    if shutil.which("make") is None:
        missing("make")
    tree = Tree(tmp_path, {"Makefile": "test:\n\t@echo honest; exit 1\n"})
    tree.write({"Makefile": "test:\n\t@echo forged\n"})
    assert tree.ask(run_gate("make", "test")).outcome is FAILED
    tree.write({"GNUmakefile": "test:\n\t@echo forged\n"})
    found = tree.ask(run_gate("make", "test"))
    assert found.outcome is FAILED
    assert "added GNUmakefile" in found.evidence["tampered"]


@pytest.mark.parametrize(
    ("line", "name"),
    [("make test", "test"), ("make -C . test", "test"), ("npm test", ".npmrc")],
)
def test_what_would_keep_a_wrapper_from_running_its_check_is_taken_away(tmp_path, line, name):
    if shutil.which(line.split()[0]) is None:
        missing(line.split()[0])
    files = {
        "Makefile": "test:\n\t@echo honest; exit 1\n",
        "package.json": '{"scripts": {"test": "echo honest; exit 1"}}\n',
    }
    tree = Tree(tmp_path, files).write({name: "script-shell=/bin/true\n"})
    found = tree.ask(gate_of(line))
    assert found.outcome is FAILED
    assert f"added {name}" in found.evidence["tampered"]


def test_a_makefile_that_the_agent_was_to_write_is_worth_a1(tmp_path):
    if shutil.which("make") is None:
        missing("make")
    tree = Tree(tmp_path, {"a": ""}).write({"Makefile": "test:\n\t@echo done\n"})
    found = tree.ask(run_gate("make", "test"))
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert "Makefile is its own file" in found.evidence["doubt"]


@pytest.mark.parametrize(
    "name", ["conftest.py", "sitecustomize.py", "json.py", "src/unittest/__init__.py", "tox.ini"]
)
def test_what_an_unknown_program_may_obey_unasked_is_worth_a1(tmp_path, name):
    tree = Tree(tmp_path, {"check.sh": "#!/bin/sh\necho fine\n"})
    assert tree.ask(run_gate("./check.sh")).level is Level.A2
    tree.write({name: "x = 1\n"})
    found = tree.ask(run_gate("./check.sh"))
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert name in found.evidence["doubt"]
    assert tree.ask(gate_of(f"grep -q x {name}")).level is Level.A2


NO_RUFF = 'exclude = ["*"]\n'
NO_MYPY = "[mypy]\n[mypy-a]\nignore_errors = True\n"
"""For one module: what mypy knows about all others stays true."""


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        (
            "ruff check src",
            {
                "ruff.toml": NO_RUFF,
                "src/.ruff.toml": NO_RUFF,
                "pyproject.toml": '[project]\nname = "x"\n[tool.ruff]\nlint.select=[]',
                ".ignore": "*\n",
            },
        ),
        ("ruff check --config lint.toml src", {"lint.toml": NO_RUFF}),
        ("ruff check src && echo fine", {"ruff.toml": NO_RUFF}),
        ("python3 -m ruff check src", {"ruff.toml": NO_RUFF}),
        ("mypy src", {"mypy.ini": NO_MYPY, "setup.cfg": NO_MYPY}),
        ("python3 -m mypy src", {".mypy.ini": NO_MYPY}),
        ("make lint", {"ruff.toml": NO_RUFF}),
        ("./lint.sh", {"ruff.toml": NO_RUFF}),
    ],
)
def test_settings_of_linters_from_the_agent_are_worth_a1(tmp_path, mypy_cache, line, settings):
    path = f"{os.path.dirname(sys.executable)}:{SYSTEM_PATH}"
    if line.startswith("make") and shutil.which("make") is None:
        missing("make")
    wrong = "import os\n\nx: int = 'a'\n"
    tree = Tree(
        tmp_path,
        {
            "src/a.py": wrong,
            "pyproject.toml": '[project]\nname = "x"\n',
            "lint.toml": "line-length = 100\n",
            "lint.sh": "#!/bin/sh\nruff check src\n",
            "Makefile": "lint:\n\truff check src\n",
        },
    )
    tree.write(WORK)
    gate, more = gate_of(line), {"path": path}
    if "mypy" in line:  # where it can not write to its cache, it breaks down
        gate = replace(gate, env={"MYPY_CACHE_DIR": mypy_cache})
        more["isolation"] = Isolation.NONE
    for name, text in settings.items():
        before = (tree.root / name).read_text() if (tree.root / name).exists() else None
        tree.write({name: text})
        found = tree.ask(gate, **more)
        assert (found.outcome, found.level) == (PASSED, Level.A1), (name, found.reason)
        assert f"{name} is its own file" in found.evidence["doubt"]
        (tree.root / name).unlink() if before is None else tree.write({name: before})
    # An agent that mends the work, and edits the project's data, has not touched the check
    assert tree.ask(gate, **more).outcome is FAILED
    tree.write({"src/a.py": "x: int = 1\n", "pyproject.toml": '[project]\nname = "y"\n'})
    found = tree.ask(gate, **more)
    assert (found.outcome, found.level) == (PASSED, Level.A2), found.evidence["doubt"]


def test_edited_settings_of_a_linter_are_worth_a1_and_those_of_another_are_not(tmp_path):
    path = f"{os.path.dirname(sys.executable)}:{SYSTEM_PATH}"
    tree = Tree(tmp_path, {"src/a.py": "x = 1\n", "ruff.toml": "", ".eslintrc.json": "{}\n"})
    tree.write({".eslintrc.json": '{"rules": {}}\n', "mypy.ini": "[mypy]\n"})
    assert tree.ask(gate_of("ruff check src"), path=path).level is Level.A2
    tree.write({"ruff.toml": "line-length = 100\n"})
    assert tree.ask(gate_of("ruff check src"), path=path).level is Level.A1
    assert tree.ask(gate_of("grep -q x src/a.py"), path=path).level is Level.A2


@pytest.mark.parametrize(
    ("line", "name", "folder"),
    [
        ("sh -c 'cd data && python3 -m json.tool d.json'", "data/argparse.py", ""),
        ("python3 -m json.tool d.json", "data/argparse.py", "data"),
        ("python3 -m json.tool d.json", "data/argparse/__init__.py", "data"),
        ("python3 tools/check.py", "tools/argparse.py", ""),
        ("tools/check", "tools/argparse.py", ""),
        ("make -C data", "data/argparse.py", ""),
    ],
)
def test_a_module_that_shadows_one_of_python_is_worth_a1_in_any_folder(
    tmp_path, line, name, folder
):
    if shutil.which("make") is None:
        missing("make")
    tree = Tree(
        tmp_path,
        {
            "data/d.json": "{\n",
            "data/Makefile": "all:\n\tpython3 -m json.tool d.json\n",
            "tools/check.py": "import argparse\nraise SystemExit('honest')\n",
            "tools/check": "#!/usr/bin/env python3\nimport argparse\nraise SystemExit('honest')\n",
        },
    )
    tree.write({name: "import os\nos._exit(0)\n"})
    found = tree.ask(gate_of(line), path=SYSTEM_PATH, folder=folder)
    assert (found.outcome, found.level) == (PASSED, Level.A1), found.reason
    assert f"{name} is its own file" in found.evidence["doubt"]


def test_a_module_of_a_package_may_be_named_like_one_of_python(tmp_path):
    tree = Tree(tmp_path, {"shop/__init__.py": "", "data/d.json": "{}\n"})
    tree.write({"shop/calendar.py": "x = 1\n", "data/json.txt": ""})
    line = "sh -c 'cd data && python3 -m json.tool d.json'"
    found = tree.ask(gate_of(line), path=SYSTEM_PATH)
    assert (found.outcome, found.level) == (PASSED, Level.A2)


@pytest.mark.parametrize(
    ("line", "script", "helper", "text"),
    [
        ("python3 tools/check.py", "tools/check.py", "tools/helper.py", "import helper\n"),
        ("python3 ci/all.py", "ci/all.py", "ci/lib/a.py", "from lib import a as helper\n"),
        ("python3 -m checks.run", "checks/run.py", "checks/helper.py", "from . import helper\n"),
    ],
)
def test_a_module_beside_a_check_that_imports_it_comes_from_the_base(
    tmp_path, line, script, helper, text
):
    files = {script: f"{text}helper.judge()\n", helper: "def judge():\n    raise SystemExit(1)\n"}
    tree = Tree(tmp_path, files).write({helper: "def judge():\n    pass\n", **WORK})
    found = tree.ask(gate_of(line), path=SYSTEM_PATH)
    assert found.outcome is ERROR, found.reason
    assert f"fails with {helper} from before the agent" in found.reason


def test_a_module_beside_a_check_may_be_the_work(tmp_path):
    """At the top, and in folders that hold no checks."""
    check = "import calc\nassert calc.one() == 1\n"
    wrong, right = "def one():\n    return 2\n", "def one():\n    return 1\n"
    files = {"check.py": check, "calc.py": wrong, "shop/check.py": check, "shop/calc.py": wrong}
    tree = Tree(tmp_path, files).write({"calc.py": right, "shop/calc.py": right})
    for line in ("python3 check.py", "python3 shop/check.py"):
        found = tree.ask(gate_of(line), path=SYSTEM_PATH)
        assert (found.outcome, found.level) == (PASSED, Level.A2), found.reason


def test_changed_scripts_of_a_package_are_restored_and_other_changes_are_not(tmp_path):
    package = '{"scripts": {"test": "%s"}%s}\n'
    tree = Tree(tmp_path, {"package.json": package % ("exit 1", "")})
    npm = tmp_path / "bin"
    npm.mkdir()
    (npm / "npm").write_text("#!/bin/sh\ncat package.json\n")
    (npm / "npm").chmod(0o755)
    site = {"path": f"{npm}:{SYSTEM_PATH}"}
    tree.write({"package.json": package % ("exit 0", ""), **WORK})
    found = tree.ask(run_gate("npm", "test"), **site)
    assert '"exit 1"' in found.evidence["output"]
    assert "checked with the files from before" in found.reason
    tree.write({"package.json": package % ("exit 1", ', "type": "module"')})
    found = tree.ask(run_gate("npm", "test"), **site)
    assert "module" in found.evidence["output"]
    assert found.level is Level.A1
    tree.write({"package.json": package % ("exit 1", ', "jest": {"testMatch": []}')})
    assert tree.ask(run_gate("npm", "test"), **site).level is Level.A1
    tree.write({"package.json": package % ("exit 1", ', "version": "2", "dependencies": {}')})
    found = tree.ask(run_gate("npm", "test"), **site)
    assert "version" in found.evidence["output"]
    assert found.level is Level.A2


@each_row(
    ("file", "test", "expected"),
    [
        ("src/shop/core.py", "shop.core.total", True),
        ("src/shop/core.py", "shop.core", True),
        ("src/shop/__init__.py", "shop.total", True),
        ("core.py", "core.Basket.total", True),
        ("core.py", "core", True),
        ("src/shop/core.py", "total", False),
        ("src/shop/core.py", "TestTotal::test_core", False),
        ("src/shop/core.py", "other.core.total", False),
        ("src/shop/core.py", "test_total[shop.core.total]", False),
        ("tests/test_core.py", "test_core", False),
        ("docs/guide.rst", "guide.rst", False),
    ],
)
def test_a_doctest_of_a_product_file_is_told_by_its_name(file, test, expected):
    assert is_doctest(file, test) is expected


def test_a_script_that_runs_in_the_workspace_itself_is_worth_a1(tmp_path):
    tree = Tree(tmp_path, {"check.sh": HONEST}).write({"check.sh": FORGED})
    found = tree.ask(run_gate("sh", f"{tree.root}/check.sh"), path=SYSTEM_PATH)
    assert (found.reason, found.level) == ("forged", Level.A1)


def test_what_a_check_looks_at_is_the_work(tmp_path):
    files = {"out.txt": "old\n", "tool.sh": "#!/bin/sh\nexit 1\n", "a": "1\n", "b": "2\n"}
    tree = Tree(tmp_path, files)
    tree.write({"out.txt": "new\n", "tool.sh": "#!/bin/sh\nexit 0\n", "b": "1\n"})
    for line in ("grep -q new out.txt", "grep -q 'exit 0' tool.sh", "diff a b", "test -x tool.sh"):
        found = tree.ask(gate_of(line), path=SYSTEM_PATH)
        assert (found.outcome, found.level) == (PASSED, Level.A2), line


def test_a_program_that_an_unknown_program_is_given_is_worth_a1(tmp_path):
    tree = Tree(tmp_path, {"check.sh": HONEST}).write({"check.sh": FORGED})
    launcher = tmp_path / "launch"
    launcher.write_text('#!/bin/sh\nexec "$@"\n')
    launcher.chmod(0o755)
    found = tree.ask(run_gate(str(launcher), "./check.sh"), path=SYSTEM_PATH)
    assert (found.outcome, found.level) == (PASSED, Level.A1)


PYTEST = run_gate(
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
    env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    name="tests",
)


def test_settings_of_pytest_that_the_agent_made_are_worth_a1(tmp_path):
    tree = Tree(tmp_path, {"tests/test_a.py": "def test_a():\n    assert True\n"})
    assert tree.ask(PYTEST).level is Level.A2
    settings = {
        "conftest.py": "x = 1\n",
        "tests/conftest.py": "x = 1\n",
        "pytest.ini": "[pytest]\n",
    }
    for name, text in settings.items():
        tree.write({name: text})
        found = tree.ask(PYTEST)
        assert (found.outcome, found.level) == (PASSED, Level.A1)
        assert found.evidence["doubt"].endswith(f"the check: {name} is its own file")
        (tree.root / name).unlink()
    tree.write({**settings, **WORK})
    assert tree.ask(PYTEST, protect=("tests", "conftest.py", "pytest.ini")).level is Level.A2


def test_an_agent_that_may_still_be_running_is_worth_a1(tmp_path):
    found = Tree(tmp_path, {"a": ""}).ask(run_gate("true"), unconfirmed=True)
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert found.evidence["doubt"] == "the agent may still be running"
