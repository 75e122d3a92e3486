"""Hooks in the settings of clients: put in beside what is there, found again, taken out."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.table import each_row
from truegreen.errors import InvalidInput, Stale, Unavailable
from truegreen.work.agents import hooks, installing
from truegreen.work.agents.installing import CLIENTS, Place, Scope, kept, merging, place_of
from truegreen.work.agents.installing.jsontext import DEEPEST, Malformed, parsed

CLAUDE = hooks.CLAUDE_CODE
FILE = "/opt/truegreen/doors/hook.py"
OTHER: dict[str, Any] = {"hooks": [{"type": "command", "command": "mine.sh"}]}


def wanted(client: str = CLAUDE, state: str = "/var/state", file: str = FILE) -> dict[str, Any]:
    def call(event: str) -> list[str]:
        return hooks.hook_command("/usr/bin/python3", file, client, event, state)

    return hooks.settings(client, call, 60)


STYLES = {
    "two spaces": json.dumps({"model": "opus", "hooks": {"Stop": [OTHER]}}, indent=2) + "\n",
    "four spaces": json.dumps({"hooks": {"Stop": [OTHER]}, "n": 1.50}, indent=4),
    "tabs": json.dumps({"a": [1, 2], "hooks": {"PreToolUse": [OTHER, OTHER]}}, indent="\t"),
    "one line": '{"model":"opus","hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}',
    "carriage returns": '{\r\n  "model": 1,\r\n  "hooks": {\r\n    "Other": []\r\n  }\r\n}\r\n',
    "numbers as written": '{\n  "a": 1.0e+05,\n  "b": 12345678901234567890123,\n  "c": -0\n}',
    "escapes": '{\n  "\\u0041\\/b": "\\u00e9\\"",\n  "ü": "ß"\n}\n',
    "blanks": '  {\n\n  "a" :  1 ,\n\n\n  "b":[ ]\n }  \n\n',
}


@each_row("client", CLIENTS)
def test_a_file_that_was_not_there_holds_our_settings_and_nothing_else(client: str):
    for text in ("", " \n"):
        assert json.loads(merging.installed(text, wanted(client), client)) == wanted(client)


@each_row("style", STYLES)
def test_put_in_and_taken_out_leaves_every_byte_as_it_was(style: str):
    text = STYLES[style]
    with_ours = merging.installed(text, wanted(), CLAUDE)
    assert merging.stands(with_ours, wanted())
    assert merging.uninstalled(with_ours) == text


@each_row("style", STYLES)
def test_what_others_wrote_means_the_same_beside_ours(style: str):
    before = json.loads(STYLES[style])
    after = json.loads(merging.installed(STYLES[style], wanted(), CLAUDE))
    ours = after.pop("hooks")
    theirs = before.pop("hooks", {})
    assert after == before
    assert list(after) == list(before)
    for event, groups in theirs.items():
        assert ours[event][: len(groups)] == groups


def test_the_second_time_changes_nothing():
    once = merging.installed(STYLES["two spaces"], wanted(), CLAUDE)
    assert merging.installed(once, wanted(), CLAUDE) == once


def test_another_place_of_the_hook_updates_instead_of_doubling():
    old = merging.installed(STYLES["tabs"], wanted(file="/old/truegreen/doors/hook.py"), CLAUDE)
    new = merging.installed(old, wanted(state="/elsewhere"), CLAUDE)
    assert merging.stands(new, wanted(state="/elsewhere"))
    assert "/old/" not in new
    assert merging.uninstalled(new) == STYLES["tabs"]


def test_a_hook_of_ours_in_a_group_with_another_goes_alone():
    ours = wanted()["hooks"]["Stop"][0]["hooks"][0]
    mixed = {"hooks": {"Stop": [{"hooks": [OTHER["hooks"][0], ours]}]}}
    text = json.dumps(mixed, indent=2)
    assert json.loads(merging.uninstalled(text)) == {"hooks": {"Stop": [OTHER]}}


@each_row(
    "command", ["hook.py", "/x/hook.py", "echo truegreen/doors/hook.py", "'truegreen/doors/hook.py"]
)
def test_a_hook_of_somebody_else_is_not_taken_for_ours(command: str):
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
    assert merging.found(text) == []
    assert merging.uninstalled(text) == text


plain = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=8),
    lambda inner: (
        some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)
groups = some.lists(
    some.fixed_dictionaries({"hooks": some.just(OTHER["hooks"])}), min_size=1, max_size=2
)
documents = some.fixed_dictionaries(
    {},
    optional={
        "a": plain,
        "hooks": some.dictionaries(
            some.sampled_from([*hooks.EVENTS[CLAUDE], "Notification"]), groups, min_size=1
        ),
        "b": plain,
    },
).filter(bool)


@settings(max_examples=40)
@given(documents, some.sampled_from([None, 1, 2, "\t"]), some.booleans())
def test_any_settings_come_back_to_the_byte(
    document: dict[str, Any], indent: int | str | None, ascii_only: bool
):
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    with_ours = merging.installed(text, wanted(), CLAUDE)
    assert merging.stands(with_ours, wanted())
    assert merging.uninstalled(with_ours) == text


@settings(max_examples=40)
@given(plain)
def test_what_is_read_is_what_json_says(value: Any):
    for indent in (None, 2):
        assert parsed(json.dumps(value, indent=indent)).plain == value


@given(some.text(alphabet='{}[]",:/*01.-+eEtrufalsn \n\\u', max_size=20))
def test_no_text_is_json_that_the_standard_library_refuses(text: str):
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(Malformed):
            parsed(text)
    else:
        assert parsed(text).plain == expected


# --- what the client would not read


@each_row(
    ("text", "line", "column", "words"),
    [
        ('{\n  "a": 1,\n}', 3, 1, "key in double quotes"),
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3, "expected"),
        ('{"a": tru}', 1, 7, "value is expected"),
        ('{"a": "x\ty"}', 1, 7, "escaped"),
        ('{"a": 1} x', 1, 10, "behind the end"),
        ('{\n  // mine\n  "a": 1}', 2, 3, "comment"),
        ('{"a": 1 /* mine */}', 1, 9, "comment"),
        ('{"a": ', 1, 7, "the text ends"),
        ("\ufeff{}", 1, 1, "value is expected"),
        ("[" * (DEEPEST + 2), 1, DEEPEST + 2, "nested deeper"),
        ("[]", 1, 1, "must be an object and is a list"),
        ('{"hooks": []}', 1, 11, "hooks must be an object"),
        ('{"hooks": {"Stop": {}}}', 1, 20, "hooks.Stop must be a list"),
        ('{"hooks": {"Stop": ["x"]}}', 1, 21, "must be an object and is a text"),
        ('{"hooks": {"Stop": [{}]}}', 1, 21, "has no «hooks»"),
        ('{"hooks": {"Stop": [{"hooks": {}}]}}', 1, 31, "must be a list"),
        ('{"hooks": {"Stop": [{"hooks": [7]}]}}', 1, 32, "a hook of hooks.Stop"),
        ('{"hooks": {"Stop": [{"hooks": [{"type": 7}]}]}}', 1, 41, "«type»"),
        ('{"hooks": {"Stop": [{"matcher": 7, "hooks": [{}]}]}}', 1, 33, "«matcher»"),
        ('{"hooks": {}, "hooks": {}}', 1, 15, "twice"),
        ('{"hooks": {"Stop": [], "Stop": []}}', 1, 24, "twice"),
    ],
)
def test_settings_that_a_client_would_ignore_are_refused_with_their_place(
    text: str, line: int, column: int, words: str
):
    with pytest.raises(Malformed, match=words) as error:
        merging.installed(text, wanted(), CLAUDE)
    assert (error.value.line, error.value.column) == (line, column)


def test_codex_refuses_every_other_key_and_so_do_we():
    assert merging.installed('{"description": "mine"}', wanted("codex"), "codex")
    with pytest.raises(Malformed, match="no «model»"):
        merging.installed('{"model": "x"}', wanted("codex"), "codex")
    assert merging.installed('{"model": "x"}', wanted(), CLAUDE)


@each_row(
    ("text", "switch"),
    [
        ("", ""),
        ("[]", ""),
        ('{"disableAllHooks": true}', "disableAllHooks"),
        ('{"disableAllHooks": false}', ""),
        ('{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled"),
        ('{"hooks": {"enabled": false}}', "hooks.enabled"),
    ],
)
def test_a_switch_that_turns_all_hooks_off_is_named(text: str, switch: str):
    assert merging.switched_off(text) == switch


# --- where


@each_row(
    ("client", "scope", "environ", "path"),
    [
        (CLAUDE, Scope.USER, {"HOME": "/h"}, "/h/.claude/settings.json"),
        (CLAUDE, Scope.USER, {"CLAUDE_CONFIG_DIR": "/c"}, "/c/settings.json"),
        (CLAUDE, Scope.USER, {"CLAUDE_CONFIG_DIR": "c"}, "/p/c/settings.json"),
        (CLAUDE, Scope.PROJECT, {}, "/p/.claude/settings.json"),
        (CLAUDE, Scope.MANAGED, {}, "/etc/claude-code/managed-settings.json"),
        ("codex", Scope.USER, {"HOME": "/h"}, "/h/.codex/hooks.json"),
        ("codex", Scope.USER, {"CODEX_HOME": "/c"}, "/c/hooks.json"),
        ("codex", Scope.PROJECT, {}, "/p/.codex/hooks.json"),
        ("gemini", Scope.USER, {"HOME": "/h"}, "/h/.gemini/settings.json"),
        ("gemini", Scope.USER, {"HOME": "/h", "GEMINI_CLI_HOME": "/g"}, "/g/.gemini/settings.json"),
        ("gemini", Scope.PROJECT, {}, "/p/.gemini/settings.json"),
        ("qwen", Scope.USER, {"HOME": "/h"}, "/h/.qwen/settings.json"),
    ],
)
def test_each_client_keeps_its_settings_in_its_own_place(
    client: str, scope: Scope, environ: dict[str, str], path: str
):
    assert place_of(client, scope, environ, "/p").path == path


def test_without_a_home_nobody_guesses_one():
    with pytest.raises(InvalidInput, match="HOME"):
        place_of(CLAUDE, Scope.USER, {}, "/p")


def test_only_claude_code_has_settings_for_a_whole_machine():
    with pytest.raises(InvalidInput, match="claude-code alone"):
        place_of("codex", Scope.MANAGED, {}, "/p")


# --- files


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(CLAUDE, Scope.USER, str(tmp_path / "config"), "settings.json")


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


def put_in(place: Place, state: str) -> installing.Plan:
    plan = installing.to_install(place, wanted(state=state), state)
    installing.install(plan, state, cwd="/p", version="1", at="now")
    return plan


def taken_out(place: Place, state: str) -> installing.Plan:
    plan = installing.to_uninstall(place, state)
    installing.uninstall(plan, state)
    return plan


def settings_file(place: Place, text: str, mode: int = 0o640) -> Path:
    path = Path(place.path)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_new_file_is_for_its_owner_alone_and_goes_again(place: Place, state: str):
    put_in(place, state)
    assert stat.S_IMODE(os.stat(place.path).st_mode) == 0o600
    assert merging.stands(Path(place.path).read_text(), wanted(state=state))
    taken_out(place, state)
    assert os.listdir(place.folder) == []
    assert [*kept.every(state)] == []


def test_the_mode_stays_and_the_bytes_come_back_after_several_installs(place: Place, state: str):
    original = "{ }\n"
    path = settings_file(place, original)
    put_in(place, state)
    installing.install(
        installing.to_install(place, wanted(state="/other"), state),
        state,
        cwd="/p",
        version="2",
        at="later",
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    (known,) = kept.every(state)
    assert (known.original, known.existed) == (original, True)
    assert known.original_sha256 == kept.digest(original)
    assert os.listdir(place.folder) == ["settings.json"]
    taken_out(place, state)
    assert path.read_text() == original


def test_what_others_changed_since_stays(place: Place, state: str):
    path = settings_file(place, '{\n  "model": "opus"\n}\n')
    put_in(place, state)
    path.write_text(path.read_text().replace("opus", "sonnet"))
    taken_out(place, state)
    assert path.read_text() == '{\n  "model": "sonnet"\n}\n'


def test_what_others_changed_between_two_installs_is_part_of_the_original(place: Place, state: str):
    path = settings_file(place, '{\n  "model": "opus"\n}\n')
    put_in(place, state)
    path.write_text(path.read_text().replace("opus", "sonnet"))
    put_in(place, state)
    taken_out(place, state)
    assert path.read_text() == '{\n  "model": "sonnet"\n}\n'


def test_a_file_of_ours_to_which_others_added_is_not_removed(place: Place, state: str):
    put_in(place, state)
    path = Path(place.path)
    path.write_text(path.read_text().replace("{", '{"model": "opus", ', 1))
    taken_out(place, state)
    assert json.loads(path.read_text()) == {"model": "opus"}


def test_without_a_record_only_our_entries_are_taken_out(place: Place, state: str):
    path = settings_file(place, merging.installed(STYLES["tabs"], wanted(), CLAUDE))
    taken_out(place, state)
    assert path.read_text() == STYLES["tabs"]


def test_nothing_installed_changes_nothing(place: Place, state: str):
    path = settings_file(place, STYLES["blanks"])
    assert not taken_out(place, state).changes
    assert path.read_text() == STYLES["blanks"]


def test_a_change_between_the_plan_and_the_deed_is_not_overwritten(place: Place, state: str):
    path = settings_file(place, "{}")
    plan = installing.to_install(place, wanted(), state)
    path.write_text('{"model": "opus"}')
    with pytest.raises(Stale, match="meanwhile"):
        installing.install(plan, state, cwd="/p", version="1", at="now")
    assert path.read_text() == '{"model": "opus"}'


def test_a_link_out_of_the_folder_is_followed_and_said(place: Place, state: str, tmp_path: Path):
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    Path(place.folder).mkdir()
    Path(place.path).symlink_to(real)
    plan = put_in(place, state)
    assert str(real) in plan.found.note
    assert Path(place.path).is_symlink()
    assert merging.stands(real.read_text(), wanted(state=state))
    taken_out(place, state)
    assert real.read_text() == "{}"


def test_a_link_inside_of_the_folder_needs_no_word(place: Place, state: str):
    path = settings_file(place, "{}")
    path.rename(path.with_name("real.json"))
    path.symlink_to("real.json")
    assert put_in(place, state).found.note == ""


@pytest.mark.parametrize("kind", ["dangling", "folder", "fifo", "latin", "huge"])
def test_what_is_no_settings_file_is_refused_and_left_alone(
    kind: str, place: Place, state: str, tmp_path: Path
):
    path = Path(place.path)
    path.parent.mkdir()
    if kind == "dangling":
        path.symlink_to(tmp_path / "nowhere")
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b'{"a": "\xe4"}' if kind == "latin" else b" " * (kept.LARGEST + 1))
    with pytest.raises((InvalidInput, Unavailable)) as error:
        installing.to_install(place, wanted(), state)
    assert str(path) in error.value.message
    assert os.listdir(place.folder) == ["settings.json"]


def test_malformed_settings_are_named_by_file_line_and_column(place: Place, state: str):
    path = settings_file(place, '{\n  "a": 1,\n}')
    for planned in (
        lambda: installing.to_install(place, wanted(), state),
        lambda: installing.to_uninstall(place, state),
    ):
        with pytest.raises(InvalidInput, match=f"^{path}:3:1: .*Nothing was written"):
            planned()
    assert not os.path.exists(state)


def test_the_diff_shows_what_changes_and_no_key(place: Place, state: str):
    settings_file(place, '{\n  "env": {"MY_API_KEY": "sk-\\"123"},\n  "a": 1\n}')
    diff = installing.to_install(place, wanted(), state).diff
    assert diff.startswith(f"--- {place.path}\n+++ {place.path}\n")
    assert '+    "SessionStart": ' in diff
    assert '"MY_API_KEY": "…"' in diff
    assert "sk-" not in diff
    assert "123" not in diff


def test_a_wrecked_record_is_named(place: Place, state: str):
    put_in(place, state)
    (name,) = os.listdir(f"{state}/installs")
    Path(f"{state}/installs/{name}").write_text("{}")
    with pytest.raises(InvalidInput, match=name):
        [*kept.every(state)]
