"""A clean copy is the snapshot to the byte, and what is protected is the base's."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.table import each_row
from tests.work.workspace.scenes import contents, fast_folder, git, repository, workspace, write
from tests.work.workspace.test_snapshots import build
from truegreen import errors
from truegreen.work.workspace import Change, Globs, Snapshot, Workspace, laying
from truegreen.work.workspace.names import is_git, wrong_link, wrong_name
from truegreen.work.workspace.objects import BLOB, FILE, LINK, TREE, Entry, name_of, tree_body

LEFT_OUT = {b"__pycache__", b".gitmodules"}  # byte code, and what git allows no link for
ODD = st.binary(min_size=1, max_size=12).filter(
    lambda name: not wrong_name(name) and name not in LEFT_OUT
)
NAMES = st.one_of(
    ODD,
    st.sampled_from([b"a", b"b", b"new\nline", b"\xff\xfe", b"x" * 255, b"\xc3\xa9", b" ", b"-"]),
)
PATHS = st.lists(NAMES, min_size=1, max_size=6).map(b"/".join)
LEAVES = st.one_of(
    st.tuples(st.sampled_from(["file", "program"]), st.binary(max_size=200)),
    st.tuples(st.just("link"), st.sampled_from([b"a", b"./b", b"x/y", b"a/"])),
)


@settings(max_examples=80)
@given(tree=st.dictionaries(PATHS, LEAVES, max_size=15))
def test_a_snapshot_comes_back_to_the_byte(tree):
    with fast_folder() as folder:
        root = Path(folder) / "work"
        root.mkdir()
        build(root, tree)
        taken = workspace(root)
        base = taken.base("t")
        laid = taken.lay(base, str(Path(folder) / "copy"))
        assert contents(root) == contents(laid.root)
        assert laid.files == base.files == len(contents(root))
        again = Workspace(laid.root, str(Path(folder) / "other")).base("t")
        assert again.digest == base.digest


@pytest.mark.criterion("E06")
def test_deep_long_and_big_files_come_back(tmp_path: Path):
    root = write(tmp_path / "work", {"a": "1"})
    deep = root.joinpath(*["d" * 14] * 200)
    deep.mkdir(parents=True)
    (deep / "leaf").write_text("deep")
    big = os.urandom(1 << 20) * 20 + b"end"
    (root / "big").write_bytes(big)
    (root / "zeros").write_bytes(bytes(30 << 20))
    (root / "empty").write_bytes(b"")
    taken = workspace(root)
    base = taken.base("t")
    copy = Path(taken.lay(base, str(tmp_path / "copy")).root)
    assert contents(copy) == contents(root)
    packs = Path(taken.mirror.path) / "objects" / "pack"
    before = sorted(os.listdir(packs))
    (root / "a").write_text("2")
    taken.left("r")
    new = [pack for pack in os.listdir(packs) if pack not in before and pack.endswith(".pack")]
    assert len(new) == 1
    assert (packs / new[0]).stat().st_size < 2000  # what the mirror had was not written again


def test_a_folder_deeper_than_we_go_is_refused_and_named(tmp_path: Path):
    root = write(tmp_path / "work", {"a": "1"})
    root.joinpath(*["d"] * 300).mkdir(parents=True)
    root.joinpath(*["d"] * 300, "leaf").write_text("x")
    base = workspace(root).base("t")
    assert base.files == 1
    assert "folders deep" in base.refused[0]


FIRST = {
    "tests/test_a.py": "assert f()",
    "tests/data/in.txt": "1",
    "conftest.py": "",
    "pyproject.toml": "[x]",
    "src/a.py": "1",
}


def compose(tmp_path: Path, change, protect=("tests/**", "conftest.py", "*.toml")):
    """Let an agent change the scene; gives the clean copy and what was tampered with."""
    root = repository(tmp_path / "work", FIRST)
    taken = workspace(root)
    base = taken.base("t")
    change(root)
    left = taken.left("r")
    laid = taken.lay(left, str(tmp_path / "copy"), protect=protect, base=base)
    return contents(laid.root), laid.tampered


def text(found: dict[bytes, tuple[str, bytes]]) -> dict[str, str]:
    return {path.decode(): data.decode() for path, (_, data) in found.items()}


@pytest.mark.criterion("E07")
def test_protected_paths_come_whole_from_the_base_and_changes_are_named(tmp_path: Path):
    def tamper(root: Path) -> None:
        write(root, {"tests/test_a.py": "pass", "tests/new.py": "", "src/conftest.py": "evil"})
        write(root, {"src/a.py": "2", "src/b.py": "3"})
        (root / "tests/data/in.txt").unlink()
        (root / "pyproject.toml").chmod(0o755)

    found, tampered = compose(tmp_path, tamper)
    assert text(found) == {**FIRST, "src/a.py": "2", "src/b.py": "3"}
    assert found[b"pyproject.toml"][0] == "file"
    assert set(tampered) == {
        Change("tests/test_a.py", "changed"),
        Change("tests/new.py", "added"),
        Change("tests/data/in.txt", "deleted"),
        Change("src/conftest.py", "added"),
        Change("pyproject.toml", "changed"),
    }


@pytest.mark.criterion("E07")
def test_honest_work_beside_protected_paths_is_no_tampering(tmp_path: Path):
    found, tampered = compose(tmp_path, lambda root: write(root, {"src/a.py": "2"}))
    assert text(found) == {**FIRST, "src/a.py": "2"}
    assert tampered == ()


def folder_to_link(root: Path) -> None:
    os.rename(root / "tests", root / "gone")
    write(root, {"fake/test_a.py": "pass"})
    os.symlink("fake", root / "tests")


def folder_to_file(root: Path) -> None:
    os.rename(root / "tests", root / "gone")
    write(root, {"tests": "x"})


def file_to_folder(root: Path) -> None:
    (root / "conftest.py").unlink()
    write(root, {"conftest.py/__init__.py": "x"})


def byte_code(root: Path) -> None:
    write(root, {"tests/__pycache__/test_a.cpython-311.pyc": "poison"})


@pytest.mark.criterion("E07")
@pytest.mark.parametrize("trick", [folder_to_link, folder_to_file, file_to_folder, byte_code])
@pytest.mark.parametrize("protect", [("tests/**", "conftest.py"), ("tests/*.py", "/conftest.py")])
def test_no_trick_takes_the_place_of_what_is_protected(tmp_path: Path, trick, protect):
    found, tampered = compose(tmp_path, trick, protect)
    assert found[b"tests/test_a.py"] == ("file", b"assert f()")
    assert found[b"conftest.py"] == ("file", b"")
    assert b"conftest.py/__init__.py" not in found
    assert not any(b"pyc" in path for path in found)
    assert tampered


def test_a_folder_in_the_place_of_protected_byte_code_is_removed(tmp_path: Path):
    compiled = "tests/__pycache__/test_a.cpython-311.pyc"
    root = repository(tmp_path / "work", {"tests/test_a.py": "1", compiled: "kept"})
    taken = workspace(root)
    base = taken.base("t")
    (root / compiled).unlink()
    write(root, {f"{compiled}/evil": "x"})
    laid = taken.lay(taken.left("r"), str(tmp_path / "c"), protect=("tests/*.py",), base=base)
    assert contents(laid.root)[compiled.encode()] == ("file", b"kept")
    assert Change(f"{compiled}/evil", "added") in laid.tampered


@pytest.mark.criterion("E07")
def test_a_link_brings_nothing_in_under_a_protected_name(tmp_path: Path):
    def tamper(root: Path) -> None:
        write(root, {"evil/more/p.py": "x"})
        os.symlink("evil", root / "later")

    found, tampered = compose(tmp_path, tamper, protect=("later/more/*.py",))
    assert b"later" not in found
    assert tampered == (Change("later", "added"),)


@pytest.mark.criterion("E07")
def test_what_a_protected_link_of_the_base_points_to_is_protected(tmp_path: Path):
    root = repository(tmp_path / "work", {"spec/test_a.py": "assert f()", "other": "1"})
    os.symlink("spec", root / "tests")
    taken = workspace(root)
    base = taken.base("t")
    write(root, {"spec/test_a.py": "pass", "other": "2"})
    laid = taken.lay(taken.left("r"), str(tmp_path / "copy"), protect=("tests/**",), base=base)
    assert contents(laid.root)[b"spec/test_a.py"] == ("file", b"assert f()")
    assert laid.tampered == (Change("spec/test_a.py", "changed"),)


@settings(max_examples=100)
@given(
    left=st.dictionaries(PATHS, st.booleans(), max_size=8),
    base=st.dictionaries(PATHS, st.booleans(), max_size=8),
    protect=st.lists(st.sampled_from(["a", "b/**", "a/*", "/b", "**/b", "x*"]), min_size=1),
)
def test_a_composed_tree_has_every_protected_file_and_no_two_in_one_place(left, base, protect):
    def entries(paths):
        proper: dict[bytes, Entry] = {}
        for path, is_link in sorted(paths.items()):
            if not any(other.startswith(path + b"/") or path.startswith(other + b"/")
                       for other in proper):  # fmt: skip
                proper[path] = Entry(LINK if is_link else FILE, b"i" * 20)
        return proper

    before, after = entries(base), entries(left)
    tree, _ = laying.composed(after, before, tuple(protect), lambda _: b"nowhere")
    globs = Globs(protect)
    assert {p: e for p, e in tree.items() if globs.cover(p)} == {
        p: e for p, e in before.items() if globs.cover(p)
    }
    for path in tree:
        assert not any(other.startswith(path + b"/") for other in tree)


def test_protected_paths_need_a_base(tmp_path: Path):
    taken = workspace(write(tmp_path / "work", {"a": "1"}))
    with pytest.raises(errors.InvalidInput, match="base"):
        taken.lay(taken.base("t"), str(tmp_path / "copy"), protect=("a",))


def test_a_clean_copy_needs_an_empty_folder(tmp_path: Path):
    taken = workspace(write(tmp_path / "work", {"a": "1"}))
    base = taken.base("t")
    (tmp_path / "copy").mkdir()
    taken.lay(base, str(tmp_path / "copy"))
    with pytest.raises(errors.InvalidInput, match="not empty"):
        taken.lay(base, str(tmp_path / "copy"))


ESCAPES = [
    (b"..", FILE), (b".", FILE), (b"", FILE), (b"a/../../x", FILE), (b"/etc/x", FILE),
    (b".git", FILE), (b".GIT", FILE), (b"git~1", FILE), (b"GIT~1", FILE), (b".git ", FILE),
    (b".git...", FILE), (b".git:x", FILE), (b".git\\x", FILE), (b".g\xe2\x80\x8cit", FILE),
    (b"\xef\xbb\xbf.git", FILE), (b"sub/.git/config", FILE), (b"a\0b", FILE), (b"n" * 256, FILE),
]  # fmt: skip
TARGETS = [
    b"/etc/passwd", b"..", b"../x", b"a/../../x", b"./../x", b"a/../b", b"", b"a\0b", b"x" * 5000,
    b"//x", b".//..", b"a/./../..",
]  # fmt: skip


@pytest.mark.criterion("O08")
@pytest.mark.parametrize(("path", "mode"), ESCAPES)
def test_a_name_that_leaves_the_tree_is_never_laid(tmp_path: Path, path: bytes, mode: bytes):
    into = tmp_path / "deep" / "copy"
    with pytest.raises((errors.Broken, ValueError)):
        laying.lay({path: Entry(mode, b"")}, str(into), lambda _: b"x", lambda _: iter([b"x"]))
    assert set(os.listdir(tmp_path)) == {"home", "deep"}
    assert contents(tmp_path) == {}


@pytest.mark.criterion("O08")
@pytest.mark.parametrize("target", TARGETS)
def test_a_link_that_leaves_the_tree_is_neither_taken_nor_laid(tmp_path: Path, target: bytes):
    assert wrong_link(b"link", target)
    with pytest.raises(errors.Broken):
        laying.lay(
            {b"link": Entry(LINK, b"")}, str(tmp_path / "c"), lambda _: target, lambda _: iter([])
        )
    assert not os.path.lexists(tmp_path / "c" / "link")


@settings(max_examples=200)
@given(
    links=st.dictionaries(
        st.sampled_from([b"a", b"d/b", b"d/e/c", b"d/e/f/g", b"z"]),
        st.lists(st.sampled_from([b"..", b".", b"d", b"e", b"f", b"a", b"b", b"c", b"z"]),
                 min_size=1, max_size=6).map(b"/".join),
        min_size=1,
    )
)  # fmt: skip
def test_no_chain_of_links_that_we_allow_leads_out(links):
    with fast_folder() as folder:
        top = os.path.realpath(os.fsencode(folder)) + b"/up/up/top"
        os.makedirs(top + b"/d/e/f")
        for path, target in links.items():
            if not wrong_link(path, target):
                os.symlink(target, os.path.join(top, path))
        for path in links:
            real = os.path.realpath(os.path.join(top, path))
            assert real == top or real.startswith(top + b"/")


@each_row("name", [b"git", b".gitx", b"xgit~1", b".gi", b"git~2", b"agit", b".github"])
def test_names_that_only_look_like_git_are_taken(name: bytes):
    assert not is_git(name)
    assert wrong_name(name) == ""


def test_two_entries_for_one_place_are_refused(tmp_path: Path):
    tree = {b"a": Entry(FILE, b""), b"a/b": Entry(FILE, b"")}
    with pytest.raises(errors.Broken, match="same place"):
        laying.lay(tree, str(tmp_path / "c"), lambda _: b"x", lambda _: iter([b"x"]))


def test_nothing_is_written_through_a_link(tmp_path: Path):
    tree = {b"a": Entry(LINK, b""), b"a/b": Entry(FILE, b""), b"d/x": Entry(FILE, b"")}
    with pytest.raises(errors.Broken):
        laying.lay(tree, str(tmp_path / "c"), lambda _: b"d", lambda _: iter([b"x"]))
    assert set(contents(tmp_path / "c")) == {b"a/b", b"d/x"}  # the link came last, and too late


@pytest.mark.criterion("E06")
@pytest.mark.parametrize("size", [5000, 9 << 20])
def test_an_object_that_is_not_what_its_name_says_is_never_laid(tmp_path: Path, size: int):
    root = write(tmp_path / "work", {"a": "1"})
    (root / "noise").write_bytes(os.urandom(size))
    taken = workspace(root)
    base = taken.base("t")
    oid = name_of(BLOB, (root / "noise").read_bytes())
    found = taken.mirror._find(oid)
    assert found
    pack = next((Path(taken.mirror.path) / "objects" / "pack").glob("*.pack"))
    data = bytearray(pack.read_bytes())
    unpressed = zlib.decompressobj()
    unpressed.decompress(data[found.start :])
    end = len(data) - len(unpressed.unused_data)
    data[found.start + size // 2] ^= 1  # noise is stored as it is
    other = zlib.decompress(data[found.start + 2 : end - 4], wbits=-15)
    data[end - 4 : end] = zlib.adler32(other).to_bytes(4)  # pressed as well as it was before
    pack.write_bytes(data)
    with pytest.raises(errors.Broken, match="damaged"):
        workspace(root).lay(base, str(tmp_path / "copy"))


def test_a_loose_object_under_another_s_name_is_never_laid(tmp_path: Path):
    taken = workspace(write(tmp_path / "work", {"a": "1"}))
    with taken.mirror.packer() as packer:
        tree = packer.add(TREE, tree_body([(b"t.py", FILE, name_of(BLOB, b"assert f()"))]))
        packer.finish()
    name = name_of(BLOB, b"assert f()").hex()
    place = Path(taken.mirror.path) / "objects" / name[:2] / name[2:]
    place.parent.mkdir()
    only = Snapshot(digest=f"tree:{tree.hex()}", kind="git", ref="", id="", files=1, bytes=1)
    place.write_bytes(zlib.compress(b"blob 4\0pass"))
    with pytest.raises(errors.Broken, match="damaged"):
        taken.lay(only, str(tmp_path / "bad"))
    place.write_bytes(zlib.compress(b"blob 10\0assert f()"))
    assert contents(taken.lay(only, str(tmp_path / "c")).root)[b"t.py"][1] == b"assert f()"


def test_a_tree_that_we_never_write_is_refused(tmp_path: Path):
    root = write(tmp_path / "work", {"a": "1"})
    taken = workspace(root)
    base = taken.base("t")
    with taken.mirror.packer() as packer:
        blob = packer.add(b"blob", b"x")
        trees = [
            packer.add(b"tree", tree_body([(name, mode, blob)]))
            for name, mode in ((b"..", FILE), (b".git", FILE), (b"s", b"160000"), (b"x", b"100666"))
        ]
        packer.finish()
    for number, tree in enumerate(trees):
        bad = type(base)(digest=f"tree:{tree.hex()}", kind="git", ref="", id="", files=1, bytes=1)
        with pytest.raises(errors.Broken, match="never write"):
            taken.lay(bad, str(tmp_path / f"c{number}"))
    missing = type(base)(digest="tree:" + "0" * 40, kind="git", ref="", id="", files=0, bytes=0)
    with pytest.raises(errors.Broken, match="missing"):
        taken.lay(missing, str(tmp_path / "c"))
    assert name_of(b"tree", b"").hex().startswith("4b825dc")


def test_attributes_of_the_agent_change_nothing(tmp_path: Path):
    rules = "* text eol=crlf\n*.py export-ignore\n*.txt export-subst ident filter=x\n"
    root = repository(tmp_path / "work", {"a.py": "1\n"})
    taken = workspace(root)
    base = taken.base("t")
    write(root, {".gitattributes": rules, "b.txt": "$Id$ $Format:%H$\n", "a.py": "2\n"})
    (root / ".git" / "info" / "attributes").write_text("* -diff\n")
    left = taken.left("r")
    assert contents(taken.lay(left, str(tmp_path / "copy")).root) == contents(root)
    patch = taken.diff(base, left)
    assert "-1\n+2\n" in patch
    assert "+$Id$ $Format:%H$" in patch


def test_a_diff_is_bounded_and_can_be_of_some_paths(tmp_path: Path):
    root = repository(tmp_path / "work", {"a.txt": "1\n", "b/c.txt": "1\n", "b*": "1\n"})
    taken = workspace(root)
    base = taken.base("t")
    write(root, {"a.txt": "2\n" * 100_000, "b/c.txt": "2\n", "b*": "2\n"})
    left = taken.left("r")
    whole = taken.diff(base, left, limit=1000)
    assert "… cut" in whole
    assert len(whole) < 1100
    assert "b/c.txt" in taken.diff(base, left, paths=("b",))
    assert "b/c.txt" not in taken.diff(base, left, paths=("b*",))
    assert taken.diff(base, base) == ""


@settings(max_examples=25)
@given(
    before=st.dictionaries(PATHS, LEAVES, max_size=8),
    after=st.dictionaries(PATHS, LEAVES, max_size=8),
)
def test_changes_are_those_that_git_sees(before, after):
    with fast_folder() as folder:
        first, second = Path(folder) / "one" / "work", Path(folder) / "two" / "work"
        first.mkdir(parents=True)
        second.mkdir(parents=True)
        build(first, before)
        build(second, after)
        mirrors = str(Path(folder) / "m")
        taken = Workspace(str(first), mirrors)
        base = taken.base("t")
        os.rename(first, Path(folder) / "away")
        os.rename(second, first)
        left = taken.left("r")
        seen = git(taken.mirror.path, "diff-tree", "-r", "-z", "--no-renames", "--name-status",
                   base.digest[5:], left.digest[5:])  # fmt: skip
        fields = seen.encode("utf-8", "surrogateescape").split(b"\0")[:-1]
        words = {b"A": "added", b"D": "deleted", b"M": "changed", b"T": "changed"}
        expected = {
            Change(path.decode("utf-8", "backslashreplace"), words[how])
            for how, path in zip(fields[::2], fields[1::2], strict=True)
        }
        assert set(taken.changes(base, left)) == expected
