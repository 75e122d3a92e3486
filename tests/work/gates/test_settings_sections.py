"""Settings files beside what they were: only the parts that steer test runs count."""

from __future__ import annotations

from tests.table import each_row
from truegreen.work.gates.settings_sections import same_test_settings

PYPROJECT = """\
[project]
name = "x"
version = "1"
dependencies = ["a"]
[project.scripts]
x = "x:main"
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[tool.pytest.ini_options]
addopts = "-q"
[tool.hatch.envs.default]
dependencies = ["pytest"]
[tool.hatch.envs.default.scripts]
test = "pytest"
[tool.poetry.dependencies]
a = "1"
"""
SETUP_CFG = """\
[metadata]
name = x
[options]
install_requires = a
[options.entry_points]
console_scripts = x = x:main
[tool:pytest]
addopts = -q
"""
TOX = "[tox]\nenvlist = py\n[testenv]\ncommands = pytest\n[gh-actions]\npython = 3.11: py\n"
PACKAGE = (
    '{"name": "x", "version": "1.0.0", "scripts": {"test": "jest"}, "type": "module",'
    ' "dependencies": {"a": "1"}, "jest": {"bail": 0}, "main": "index.js"}'
)
CARGO = """\
[package]
name = "x"
version = "0.1.0"
[dependencies]
a = "1"
[lib]
crate-type = ["rlib"]
[[test]]
name = "it"
path = "tests/it.rs"
[workspace]
members = ["a"]
[workspace.dependencies]
b = "1"
"""
TEXTS = {
    "pyproject.toml": PYPROJECT,
    "setup.cfg": SETUP_CFG,
    "tox.ini": TOX,
    "package.json": PACKAGE,
    "Cargo.toml": CARGO,
}


def same(name: str, before: str, after: str) -> bool:
    return same_test_settings(f"sub/{name}", before.encode(), after.encode())


@each_row(
    ("name", "old", "new"),
    [
        ("pyproject.toml", '["a"]', '["a", "b>=2"]'),
        ("pyproject.toml", 'version = "1"', 'version = "2"\ndescription = "d"'),
        ("pyproject.toml", "x:main", "x:other"),
        ("pyproject.toml", '["setuptools"]', '["setuptools", "wheel"]'),
        ("pyproject.toml", '["pytest"]', '["pytest", "hypothesis"]'),
        ("pyproject.toml", 'a = "1"\n', 'a = "2"\n[tool.setuptools]\npackages = ["x"]\n'),
        ("setup.cfg", "install_requires = a", "install_requires =\n    a\n    b"),
        ("setup.cfg", "x = x:main", "x = x:other"),
        ("setup.cfg", "[metadata]", "# a comment\n[metadata]"),
        ("setup.cfg", "\n", "\r\n"),
        ("tox.ini", "3.11: py", "3.12: py"),
        ("package.json", '{"a": "1"}', '{"a": "2", "b": "1"}'),
        ("package.json", "1.0.0", "1.0.1"),
        ("package.json", "index.js", "lib/index.js"),
        ("Cargo.toml", 'a = "1"', 'a = "1"\nserde = { version = "1", features = ["derive"] }'),
        ("Cargo.toml", '["rlib"]', '["rlib", "cdylib"]'),
        ("Cargo.toml", 'b = "1"', 'b = "2"'),
        ("Cargo.toml", "0.1.0", "0.2.0"),
    ],
)
def test_project_data_may_change(name, old, new):
    text = TEXTS[name]
    assert old in text
    assert text.replace(old, new) != text
    assert same(name, text, text.replace(old, new))


@each_row(
    ("name", "old", "new"),
    [
        ("pyproject.toml", '"-q"', '"-q --collect-only"'),
        ("pyproject.toml", '[project]\nname = "x"', '[tool.pytest]\nx = 1\n[project]\nname = "x"'),
        ("pyproject.toml", "[project.scripts]", "[tool.coverage]\nx = 1\n[project.scripts]"),
        ("pyproject.toml", "[project.scripts]", "[tool.tox]\nx = 1\n[project.scripts]"),
        ("pyproject.toml", "[project.scripts]", "[tool.ruff]\n[project.scripts]"),
        ("pyproject.toml", 'test = "pytest"', 'test = "true"'),
        (
            "pyproject.toml",
            "[project.scripts]",
            '[project.entry-points]\npytest11.e = "e"\n[project.scripts]',
        ),
        ("pyproject.toml", "setuptools.build_meta", "evil"),
        ("setup.cfg", "addopts = -q", "addopts = -q --collect-only"),
        ("setup.cfg", "[metadata]", "[coverage:report]\nfail_under = 0\n[metadata]"),
        ("setup.cfg", "console_scripts = x = x:main", "pytest11 = e = e"),
        ("setup.cfg", "[metadata]", "[DEFAULT]\naddopts = --collect-only\n[metadata]"),
        ("tox.ini", "commands = pytest", "commands = true"),
        ("tox.ini", "envlist = py", "envlist = other"),
        ("tox.ini", "[gh-actions]", "[testenv:py]\ncommands = true\n[gh-actions]"),
        ("tox.ini", "[gh-actions]", "[pytest]\naddopts = --co\n[gh-actions]"),
        ("package.json", '"test": "jest"', '"test": "true"'),
        ("package.json", '"test": "jest"', '"test": "jest", "pretest": "x"'),
        ("package.json", '"bail": 0', '"bail": 0, "testMatch": []'),
        ("package.json", '"module"', '"commonjs"'),
        ("package.json", '"main"', '"mocha": {}, "main"'),
        ("package.json", '"main"', '"ava": {}, "main"'),
        ("package.json", '"main"', '"vitest": {}, "main"'),
        ("Cargo.toml", '"tests/it.rs"', '"tests/it.rs"\nharness = false'),
        ("Cargo.toml", '["rlib"]', '["rlib"]\ntest = false'),
        ("Cargo.toml", "[lib]", "[profile.test]\nopt-level = 3\n[lib]"),
        ("Cargo.toml", "[lib]", '[patch.crates-io]\na = { path = "a" }\n[lib]'),
        ("Cargo.toml", 'version = "0.1.0"', 'version = "0.1.0"\nautotests = false'),
        ("Cargo.toml", 'members = ["a"]', "members = []"),
    ],
)
def test_settings_of_test_runs_may_not(name, old, new):
    text = TEXTS[name]
    assert old in text
    assert not same(name, text, text.replace(old, new))


@each_row(
    ("name", "text"),
    [
        ("pyproject.toml", "[project\n"),
        ("pyproject.toml", 'tool = "x"\n'),
        ("setup.cfg", "no header\n"),
        ("setup.cfg", "[metadata]\nname = x\n[metadata]\nname = y\n"),
        ("package.json", "{"),
        ("package.json", "[]"),
        ("package.json", '{"scripts": {"test": "jest"}, "scripts": {"test": "true"}}'),
        ("Cargo.toml", "= 1"),
        ("package.json", "\ufeff{}"),
        ("package.json", "[" * 100_000),
    ],
)
def test_what_can_not_be_read_is_not_the_same(name, text):
    assert not same(name, TEXTS[name], text)
    assert not same(name, text, TEXTS[name])
    assert same(name, text, text)


@each_row(
    "hidden",
    [
        "[pytest] # ]\naddopts = --collect-only\n",
        "[metadata]\nname = x\x0c[tool:pytest]\x0caddopts = --collect-only\n",
        "[metadata]\nname = x\r[tool:pytest]\raddopts = --collect-only\n",
        "[metadata]\nname = x\u2028[tool:pytest]\u2028addopts = --collect-only\n",
    ],
)
def test_a_section_that_other_readers_would_see_is_not_overlooked(hidden):
    assert not same("setup.cfg", "[metadata]\nname = y\n", hidden)


def test_other_files_are_not_settings_of_this_kind():
    assert not same("conftest.py", "a = 1\n", "a = 2\n")
    assert not same_test_settings("setup.cfg", b"[a]\n", b"\xff\xfe")
    big = b"[metadata]\nname = x\n#" + b"x" * (1 << 20)
    assert not same_test_settings("setup.cfg", b"[metadata]\n", big)
