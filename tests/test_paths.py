"""Path containment, compared with what the kernel does with real folders, links and `..`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from truegreen.paths import is_inside, is_named_inside, name_inside

NAMES = ("tree", "out", "a", "b", "l")
WORDS = st.lists(st.sampled_from([*NAMES, "..", ".", ""]), min_size=1, max_size=6).map("/".join)
ENTRIES = st.lists(
    st.tuples(WORDS, st.one_of(st.none(), WORDS, WORDS.map("{top}/".__add__))), max_size=10
)
"""What is made, in order: a folder, or a link with its target, relative or absolute."""


@contextmanager
def made(entries: list[tuple[str, str | None]]) -> Iterator[str]:
    """A folder with `tree` and `out` in it, and as many of the entries as can be made."""
    with tempfile.TemporaryDirectory() as folder:
        top = os.path.realpath(folder)
        for name in ("tree/a", "out/b", "treeless"):
            os.makedirs(os.path.join(top, name))
        for at, target in entries:
            place = os.path.join(top, at)
            # Nothing is made outside of the folder, wherever links lead.
            if not os.path.realpath(os.path.dirname(place.rstrip("/"))).startswith(top + "/"):
                continue
            with suppress(OSError):
                if target is None:
                    os.mkdir(place)
                elif target.replace("{top}", top):
                    os.symlink(target.replace("{top}", top), place)
        yield top


def opened(path: str) -> str:
    """Where the kernel arrives; empty if it does not."""
    try:
        handle = os.open(path, os.O_PATH)
    except OSError:
        return ""
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


def in_parts(path: str, folder: str) -> bool:
    return Path(folder) in (Path(path), *Path(path).parents)


LINK_INTO_THE_TREE_AND_OUT = [("out/l", "../tree"), ("tree/b", "../out/b")]


@given(ENTRIES, WORDS)
@example([], "treeless")
@example([], "tree/../out")
@example([], "out/../tree/a")
@example([("out/l", "../tree/a")], "out/l/..")
@example(LINK_INTO_THE_TREE_AND_OUT, "out/l/b")
def test_a_path_is_inside_if_the_kernel_arrives_there(
    entries: list[tuple[str, str | None]], word: str
) -> None:
    with made(entries) as top:
        path, tree = os.path.join(top, word), os.path.join(top, "tree")
        if real := opened(path):
            assert is_inside(path, tree) == in_parts(real, opened(tree))


@given(ENTRIES, WORDS)
@example([], "tree")
@example([], "tree/.")
@example([], "tree/..")
@example([], "tree/../out")
@example([("out/l", "../tree/a")], "out/l/..")
@example([("l", "tree")], "l/../out")
@example([("out/l", "l")], "out/l")
@example(LINK_INTO_THE_TREE_AND_OUT, "out/l/b")
def test_a_path_has_a_name_inside_if_it_needs_an_entry_of_the_folder(
    entries: list[tuple[str, str | None]], word: str
) -> None:
    """Such a path leads nowhere once the folder is empty."""
    with made(entries) as top:
        path, tree = os.path.join(top, word), os.path.join(top, "tree")
        if os.path.islink(tree) or not (real := opened(path)):
            return
        name = name_inside(path, tree)
        assert opened(name) == (real if name else "")
        assert not name or name == tree or name.startswith(f"{tree}/")
        emptied = os.path.join(top, "emptied")
        os.mkdir(emptied)
        for each in os.listdir(tree):
            os.rename(os.path.join(tree, each), os.path.join(emptied, each))
        if not opened(path):
            assert name
        elif opened(path) == real:
            assert name in {"", tree}


@given(WORDS, WORDS)
@example("treeless", "tree")
@example("tree/../out", "tree")
def test_a_name_is_inside_by_its_components_alone(word: str, folder: str) -> None:
    path, top = f"/nowhere/{word}", f"/nowhere/{folder}"
    assert is_named_inside(path, top) == in_parts(os.path.abspath(path), os.path.abspath(top))


@pytest.mark.parametrize("ask", [is_inside, is_named_inside, name_inside])
def test_the_root_holds_everything_and_relative_paths_start_here(
    ask: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(ask)
    monkeypatch.chdir(tmp_path)
    assert ask("/", "/")
    assert ask("/etc", "/")
    assert ask("a", str(tmp_path))
    assert ask("a/b", "a")
    assert not ask("ab", "a")
    assert not ask("../a", ".")


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert name_inside(str(tmp_path / "a" / "x"), str(tmp_path)) == str(tmp_path / "a" / "x")
    assert name_inside(str(tmp_path / "a" / "x"), str(tmp_path / "else")) == ""
