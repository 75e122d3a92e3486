"""Sealed conversations: in each client's own layout, and nowhere else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from truegreen.work.agents import sealing
from truegreen.work.agents.sealing import Kept, Talk, kept_at, seal

SESSION = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
ROLLOUT = "sessions/2026/11/15/rollout-2026-11-15T20-03-59-{}.jsonl"
CHAT = "tmp/my-project/chats/session-2026-11-15T20-03-{}.jsonl"
LAYOUTS: dict[str, tuple[str, str]] = {
    "claude-code": (f"projects/-work/{SESSION}.jsonl", f"projects/-work/{OTHER}.jsonl"),
    "codex": (ROLLOUT.format(SESSION), ROLLOUT.format(OTHER)),
    "gemini": (CHAT.format(SESSION[:8]), CHAT.format(OTHER[:8])),
    "qwen": (f"projects/-work/chats/{SESSION}.jsonl", f"projects/-work/chats/{OTHER}.jsonl"),
}


def laid(folder: Path, name: str, session: str = SESSION) -> Path:
    """A conversation as its client lays it down."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"sessionId":"{session}"}}\n')
    return path


@pytest.mark.criterion("G02", "G28")
@pytest.mark.parametrize("client", LAYOUTS)
def test_a_conversation_is_renamed_and_kept_and_its_neighbour_stays(
    tmp_path: Path, client: str
) -> None:
    mine, other = LAYOUTS[client]
    path, neighbour = laid(tmp_path, mine), laid(tmp_path, other, OTHER)
    text = path.read_text()
    done = seal(Kept(client, str(tmp_path)), [Talk("agent", SESSION)])
    assert done == ((f"{path}.terminated",), ())
    assert not path.exists()
    assert Path(f"{path}.terminated").read_text() == text
    assert neighbour.exists()
    assert seal(Kept(client, str(tmp_path)), [Talk("agent", SESSION)]) == ((), ())


@pytest.mark.criterion("G28")
def test_a_conversation_that_is_older_than_its_agent_is_left_alone_and_said(tmp_path: Path) -> None:
    path = laid(tmp_path, LAYOUTS["claude-code"][0])
    later = time.time() + 5
    for further in (False, True):
        done = seal(
            Kept("claude-code", str(tmp_path)), [Talk("agent", SESSION, later, further=further)]
        )
        assert done.paths == ()
        assert f"{path} is left alone" in done.troubles[0]
    assert path.exists()
    earlier = Talk("agent", SESSION, time.time() - 60, further=True)
    assert seal(Kept("claude-code", str(tmp_path)), [earlier]).paths == (f"{path}.terminated",)


def test_a_further_name_needs_proof_where_births_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = laid(tmp_path, LAYOUTS["qwen"][0])
    monkeypatch.setattr(sealing, "born_at", lambda *_: 0.0)
    kept = Kept("qwen", str(tmp_path))
    assert seal(kept, [Talk("agent", SESSION, 1.0, further=True)]).paths == ()
    assert seal(kept, [Talk("agent", SESSION, 1.0)]).paths == (f"{path}.terminated",)


def test_what_belongs_to_a_claude_session_goes_along(tmp_path: Path) -> None:
    laid(tmp_path, LAYOUTS["claude-code"][0])
    laid(tmp_path, f"projects/-work/{SESSION}/subagents/agent-a1.jsonl")
    done = seal(Kept("claude-code", str(tmp_path)), [Talk("agent", SESSION)])
    assert {os.path.basename(path) for path in done.paths} == {
        f"{SESSION}.terminated",
        f"{SESSION}.jsonl.terminated",
    }


def test_a_subagent_alone_is_sealed_inside_of_its_parents_conversation(tmp_path: Path) -> None:
    parent = laid(tmp_path, LAYOUTS["claude-code"][0])
    child = laid(tmp_path, f"projects/-work/{SESSION}/subagents/agent-a1.jsonl")
    sibling = laid(tmp_path, f"projects/-work/{SESSION}/subagents/agent-a2.jsonl")
    done = seal(Kept("claude-code", str(tmp_path)), [Talk("subagent", "a1")])
    assert done.paths == (f"{child}.terminated",)
    assert parent.exists()
    assert sibling.exists()


def test_a_gemini_chat_with_the_same_short_name_is_another_conversation(tmp_path: Path) -> None:
    path = laid(tmp_path, LAYOUTS["gemini"][0], f"{SESSION[:8]}-not-the-same")
    assert seal(Kept("gemini", str(tmp_path)), [Talk("agent", SESSION)]) == ((), ())
    assert path.exists()


def test_what_was_sealed_before_is_never_overwritten(tmp_path: Path) -> None:
    path = laid(tmp_path, LAYOUTS["codex"][0])
    seal(Kept("codex", str(tmp_path)), [Talk("agent", SESSION)])
    path.write_text("again")
    done = seal(Kept("codex", str(tmp_path)), [Talk("agent", SESSION)])
    assert done.paths == (f"{path}.terminated.1",)
    assert "sessionId" in Path(f"{path}.terminated").read_text()


@pytest.mark.parametrize("at", ["projects", "projects/-work"])
def test_no_link_is_followed(tmp_path: Path, at: str) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "client"
    folder.mkdir()
    victim = laid(outside, LAYOUTS["claude-code"][0])
    (folder / at).parent.mkdir(parents=True, exist_ok=True)
    (folder / at).symlink_to(outside / at)
    assert seal(Kept("claude-code", str(folder)), [Talk("agent", SESSION)]) == ((), ())
    assert victim.exists()


def test_a_client_folder_that_became_a_link_is_refused_and_said(tmp_path: Path) -> None:
    victim = laid(tmp_path / "outside", LAYOUTS["claude-code"][0])
    (tmp_path / "client").symlink_to(tmp_path / "outside")
    done = seal(Kept("claude-code", str(tmp_path / "client")), [Talk("agent", SESSION)])
    assert done.paths == ()
    assert "could not be sealed" in done.troubles[0]
    assert victim.exists()


@pytest.mark.parametrize("session", ["", "..", "*", "../-work/" + SESSION, "-work", "x/y"])
def test_a_session_is_a_name_and_never_a_path(tmp_path: Path, session: str) -> None:
    path = laid(tmp_path, LAYOUTS["claude-code"][0])
    assert seal(Kept("claude-code", str(tmp_path)), [Talk("agent", session)]) == ((), ())
    assert path.exists()


def test_a_folder_without_end_is_given_up_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laid(tmp_path, LAYOUTS["claude-code"][0])
    monkeypatch.setattr(sealing, "PATIENCE_SECONDS", 0.0)
    done = seal(Kept("claude-code", str(tmp_path)), [Talk("agent", SESSION)])
    assert done.paths == ()
    assert "more than can be read" in done.troubles[0]


def test_a_fifo_in_place_of_a_chat_does_not_hold_anybody_up(tmp_path: Path) -> None:
    path = tmp_path / LAYOUTS["gemini"][0]
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    assert seal(Kept("gemini", str(tmp_path)), [Talk("agent", SESSION)]) == ((), ())


def test_a_client_that_never_ran_and_one_that_is_unknown_have_nothing_to_seal(
    tmp_path: Path,
) -> None:
    assert seal(Kept("codex", str(tmp_path / "none")), [Talk("agent", SESSION)]) == ((), ())
    assert seal(Kept("command", str(tmp_path)), [Talk("agent", SESSION)]) == ((), ())


@pytest.mark.parametrize(
    ("client", "given", "folder"),
    [
        ("claude-code", {}, "home/.claude"),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "own"}, "own"),
        ("codex", {"CODEX_HOME": "own"}, "own"),
        ("gemini", {"GEMINI_CLI_HOME": "own"}, "own/.gemini"),
        ("gemini", {}, "home/.gemini"),
        ("qwen", {}, "home/.qwen"),
    ],
)
def test_the_folder_that_counts_is_the_one_that_the_run_had(
    tmp_path: Path, client: str, given: dict[str, str], folder: str
) -> None:
    environ = {"HOME": str(tmp_path / "home")}
    environ |= {name: str(tmp_path / value) for name, value in given.items()}
    assert kept_at(client, environ, private=False) == Kept(client, str(tmp_path / folder))


def test_a_home_of_the_runs_own_is_looked_into_from_outside(tmp_path: Path) -> None:
    kept = kept_at("codex", {"HOME": str(tmp_path)}, private=True)
    assert kept
    assert kept.inside == ".codex"
    assert kept.within("/state/home") == Kept("codex", "/state/home/.codex")
    elsewhere = {"HOME": str(tmp_path / "h"), "CODEX_HOME": str(tmp_path / "c")}
    kept = kept_at("codex", elsewhere, private=True)
    assert kept
    assert kept.within("/state/home").folder == str(tmp_path / "c")


def test_an_unknown_client_or_nobodys_home_has_no_folder(tmp_path: Path) -> None:
    assert kept_at("command", {"HOME": str(tmp_path)}, private=False) is None
    assert kept_at("codex", {}, private=False) is None
