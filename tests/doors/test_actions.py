"""Which actions need a person: what a pattern means, and what a command line hides from it."""

from __future__ import annotations

import pytest

from truegreen.doors.actions import Action, needs_person

PUSH = ("git push",)


def command(line: str) -> Action:
    return Action("Bash", line, True)


@pytest.mark.parametrize(
    "line",
    [
        "git push",
        "git push origin main",
        "  git   push --force",
        "cd lib && git push",
        "make test; git push",
        "make test || git push",
        "git push &",
        "true | git push",
        "true\ngit push",
        "git \\\n push",
        "git -C lib push",
        "git -c user.name=x --no-pager push",
        "/usr/bin/git push",
        "GIT_TRACE=1 git push",
        "sudo -n git push",
        "env A=1 git push",
        "timeout 60 git push",
        "nohup git push >log 2>&1",
        "bash -c 'git push'",
        "bash -lc 'make && git push'",
        "eval 'git push'",
        "echo $(git push)",
        'echo "$(git push)"',
        "echo `git push`",
        "(git push)",
        "if true; then git push; fi",
        "git 'push'",
        "git pu''sh",
        "truegreen guard -- git push",
        'echo "never closed; git push',
    ],
)
def test_a_command_is_found_wherever_it_stands_in_a_line(line: str):
    assert needs_person(PUSH, command(line)) == "git push"


@pytest.mark.parametrize(
    "line",
    [
        "git pushx",
        "git pull",
        "echo 'git push'",
        "git commit -m 'then; git push'",
        "grep -r 'git push' docs",
        "gitpush",
        "ls",
        "",
    ],
)
def test_a_command_that_is_only_spoken_of_needs_nobody(line: str):
    assert needs_person(PUSH, command(line)) == ""


@pytest.mark.parametrize(
    ("pattern", "action", "found"),
    [
        ("WebFetch", Action("WebFetch", "https://example.org", False), True),
        ("WebFetch", Action("WebSearch", "x", False), False),
        ("mcp__github__merge*", Action("mcp__github__merge_pull_request", "{}", False), True),
        ("Write(*.env)", Action("Write", "/work/.env", False), True),
        ("Write(*.env)", Action("Write", "/work/env.py", False), False),
        ("Bash(rm -rf *)", command("cd / && rm -rf *"), True),
        ("Bash(rm -rf *)", Action("Write", "rm -rf x", False), False),
        ("git push", Action("Write", "git push", False), False),
        ("npm publish*", command("npm publish --tag next"), True),
        ("*", Action("Read", "x", False), True),
    ],
)
def test_a_pattern_is_a_tool_a_tools_argument_or_a_command(
    pattern: str, action: Action, found: bool
):
    assert bool(needs_person((pattern,), action)) is found


def test_a_person_is_asked_about_the_command_itself_on_one_line():
    assert str(command("git\n  push")) == "git push"
    assert str(Action("Write", "/work/.env", False)) == "Write(/work/.env)"
    assert len(str(command("x" * 5000))) == 501
