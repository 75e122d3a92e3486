"""Our reading of ignore rules, against git's own."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.table import each_row
from tests.work.workspace.scenes import GIT_ENVIRONMENT, fast_folder, git
from truegreen.work.workspace.ignoring import Ignoring, Rules, ignoring
from truegreen.work.workspace.wildcards import Malformed, part_expression

PATHS = [
    "a", "a.b", "b", "foo", "foo.py", "bar/foo", "bar/foo.py", "bar/a/b", "a/b/c", "a/b", "a/c/b",
    "a-b", "[x]", "a]b", "x!y", "#a", "!a", "sp\\ace", "deep/er/and/deeper", "a/foo/b",
    "foo/bar/baz.py", "Aa0", "_", "abc", "aXbXc", "tail ", "sp ace", "a\tb", "\u00e9", "x/\u00e9",
]  # fmt: skip

PIECES = [
    *"ab/*?.#!\\- ]",
    "**",
    "**/",
    "/**",
    "/**/",
    "[a-c]",
    "[!a]",
    "[^b]",
    "[]a]",
    "[a-]",
    "[[:alpha:]]",
    "[[:space:]x]",
    "[[:nope:]]",
    "[\\]]",
    "[/]",
    "[a",
    "foo",
    "bar",
    "*.py",
    "\\ ",
    "\u00e9",
    "\r",
]
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


def ask_git(root: Path, rules: str) -> list[bool]:
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text(rules)
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "-v", "-n", "-z", "--stdin"],
        cwd=root,
        env=GIT_ENVIRONMENT,
        input="".join(path + "\0" for path in PATHS).encode(),
        capture_output=True,
        check=False,
    )
    fields = asked.stdout.split(b"\0")[:-1]
    patterns = fields[2::4]
    assert len(patterns) == len(PATHS)
    return [bool(pattern) and not pattern.startswith(b"!") for pattern in patterns]


def ask_ourselves(rules: str) -> list[bool]:
    """Go down to each path as a walk does: what lies in an ignored folder is ignored."""
    top = ignoring(rules.encode())
    answers = []
    for path in PATHS:
        parts = path.encode().split(b"/")
        folders = [b"/".join(parts[:n]) for n in range(1, len(parts))]
        within = any(top.ignored(folder, folder=True) for folder in folders)
        answers.append(within or top.ignored(path.encode(), folder=False))
    return answers


@pytest.fixture(scope="module")
def bare_root():
    with fast_folder() as folder:
        git(folder, "init", "-q")
        yield Path(folder)


@settings(max_examples=300)
@given(rules=st.lists(PATTERNS, min_size=1, max_size=4).map("\n".join))
@example(rules="*\n!a\n")
@example(rules="a/**/b\n")
@example(rules="**/foo\n!bar/foo\n")
@example(rules="/a\nfoo/\n")
@example(rules="tail\\ \n")
@example(rules="\ufeffa\n")
@example(rules="***/b\n")
@example(rules="a/***/b")
@example(rules="a\\\n")
@example(rules="\u00e9***/**")
def test_we_ignore_exactly_what_git_ignores(bare_root: Path, rules: str):
    assume("*\\/" not in rules)  # git wants a folder between `**` and an escaped slash; we don't
    assert ask_ourselves(rules) == ask_git(bare_root, rules)


def test_the_nearest_file_decides_and_a_taken_back_file_is_taken():
    top = Ignoring().within(b"", b"*.log\n/build\n")
    inner = top.within(b"keep/", b"!*.log\n")
    assert top.ignored(b"a.log", folder=False)
    assert not inner.ignored(b"keep/a.log", folder=False)
    assert top.ignored(b"build", folder=True)
    assert not inner.ignored(b"keep/build", folder=True)


@each_row(
    "pattern",
    ["*a" * 60 + "b", "**/a/" * 40 + "b", "*?" * 60 + "b", ("*" + "a*" * 30 + "/") * 5 + "b"],
)
def test_a_pattern_made_to_hang_us_does_not(pattern: str):
    rules = Rules(pattern.encode())
    begun = time.process_time()
    rules.say(b"a" * 255, folder=False)
    rules.say(b"a/" * 200 + b"c", folder=False)
    rules.say(b"/".join([b"a" * 200] * 6), folder=False)
    assert time.process_time() - begun < 2


@each_row("pattern", [b"[", b"[a", b"a\\", b"[[:nope:]]", b"[a-"])
def test_a_pattern_that_is_cut_off_matches_nothing(pattern: bytes):
    with pytest.raises(Malformed):
        part_expression(pattern)
    assert Rules(pattern).say(pattern, folder=False) is None
