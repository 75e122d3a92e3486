"""What a glob covers."""

from __future__ import annotations

import pytest

from tests.table import each_row
from truegreen import errors
from truegreen.work.workspace.globs import Globs


@each_row(
    ("glob", "covered", "spared"),
    [
        ("tests/**", "tests/a tests/a/b/c tests/.x", "tests src/tests/a testsx/a a/tests/b"),
        ("tests/", "tests tests/a tests/a/b sub/tests/x", "testsx a/testsx/b"),
        ("tests", "tests tests/a sub/tests/x", "testsx mytests/a"),
        ("/tests", "tests/a tests", "sub/tests/a"),
        ("./tests/unit", "tests/unit/a tests/unit", "tests/a sub/tests/unit/a"),
        ("conftest.py", "conftest.py a/b/conftest.py conftest.py/x", "xconftest.py conftest.pyc"),
        ("/conftest.py", "conftest.py", "a/conftest.py"),
        ("*.toml", "a.toml x/y/b.toml", "a.tomlx toml"),
        ("src/*.py", "src/a.py", "src/b/a.py a.py"),
        ("src/**/test_*.py", "src/test_a.py src/x/y/test_b.py", "test_a.py src/x/a.py"),
        ("**/fixtures/*.json", "fixtures/a.json a/b/fixtures/c.json", "fixtures/b/x.txt f/a.json"),
        ("**", "a a/b", ""),
        ("*", "a a/b", ""),
        ("[ab]/?.txt", "a/1.txt b/2.txt", "c/1.txt a/12.txt"),
        ("ci.{yml,yaml}", "ci.{yml,yaml}", "ci.yml"),
    ],
)
def test_a_glob_covers_what_people_expect(glob: str, covered: str, spared: str):
    globs = Globs((glob,))
    assert [path for path in covered.split() if not globs.cover(path)] == []
    assert [path for path in spared.split() if globs.cover(path)] == []


def test_byte_code_counts_as_its_source():
    globs = Globs(("tests/test_*.py", "conftest.py"))
    assert globs.cover("tests/__pycache__/test_a.cpython-311.pyc")
    assert globs.cover("tests/__pycache__/test_a.cpython-311-pytest-9.0.pyc")
    assert globs.cover("__pycache__/conftest.cpython-311.opt-1.pyc")
    assert not globs.cover("tests/__pycache__/other.cpython-311.pyc")


@each_row("glob", ["", "/", "../x", "a/../b", "!a", "[a", "a\\", ".", "x" * 5000])
def test_a_glob_that_can_mean_nothing_is_refused(glob: str):
    with pytest.raises(errors.InvalidInput):
        Globs((glob,))


@each_row(
    ("glob", "link", "reaches"),
    [
        ("tests/**", "tests", True),
        ("a/b/*.py", "a", True),
        ("a/b/*.py", "a/b", True),
        ("a/b/*.py", "b", False),
        ("**/tests/*.py", "x/tests", True),
        ("**/tests/*.py", "x", False),
        ("conftest.py", "x", False),
        ("src/**/t/*.py", "src/x", True),
        ("src/**/t/*.py", "lib/x", False),
    ],
)
def test_a_link_where_a_glob_goes_on_below_is_seen(glob: str, link: str, reaches: bool):
    assert Globs((glob,)).reach_below(link.encode()) is reaches


def test_no_globs_cover_nothing():
    assert not Globs(()).cover("a")
