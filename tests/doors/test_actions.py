"""Which actions need a person: what a pattern means, and what a command line hides from it."""

from __future__ import annotations

import time

from tests.table import each_row
from truegreen.doors.actions import Action, needs_person

PUSH = ("git push",)


def command(line: str) -> Action:
    return Action("Bash", line, True)


@each_row(
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
        "gi\\\nt push",
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
        "sudo -u root git push",
        "timeout -s KILL 5 git push",
        "env -u X git push",
        "env -S 'git push'",
        "xargs -I {} git push {}",
        "stdbuf -o L git push",
        "nice -n 5 sudo -u root /usr/bin/git push",
        "time -p git push",
        "exec -a x git push",
        "coproc P { git push; }",
        "{ git push; }",
        "f() { git push; }; f",
        "function f { git push; }",
        "while git push; do :; done",
        "until git push; do sleep 1; done",
        "if false; then :; elif git push; then :; fi",
        "case x in x) git push;; esac",
        'echo "$(case x in x) git push;; esac)"',
        "! git push",
        "git 2>/dev/null push",
        "git 2> /dev/null push",
        "git &>/dev/null push",
        ">/dev/null git push",
        "<in >out git push",
        "git {log}>x push",
        "true # don't\ngit push # it isn't",
        "true # (\ngit push",
        "cat <<EOF\ndon't\nEOF\ngit push\ncat <<EOF\nisn't\nEOF",
        "cat <<EOF\ndon't\n$(git push)\nisn't\nEOF",
        "bash <<'EOF'\ngit push\nEOF",
        "cat <<-EOF\n\tdon't $(git push)\n\tEOF",
        "bash <<< 'git push'",
        'x="$(git push origin "$(git branch --show-current)")"',
        'echo "$(echo ")"; git push)"',
        "diff <(git push) x",
        "echo `echo \\`git push\\``",
        "bash -c -e 'git push'",
        "bash -e -c 'git push' x y",
        "bash -c 'bash -c \"git push\"'",
        "su -c 'git push'",
        "su root -c 'git push'",
        "sudo su - root -c 'cd x && git push'",
        "find . -exec git push \\;",
        "find . -exec sh -c 'git push' \\;",
        "watch 'git push'",
        "echo 'git push' | sh",
        "echo git push | sudo bash",
        "printf 'cd x\\ngit push\\n' | sh -s",
        "source <(echo git push)",
        "git --attr-source HEAD push",
        "git --some-day value push",
        "git --git-dir=x push",
        "/usr/lib/git-core/git-push origin",
        "$'g\\x69t' push",
        '$"git" push',
        "g\\it push",
        "A[0]=1 git push",
        "git" + " -P" * 200 + " push",
        "sudo" + " -E" * 200 + " git push",
        "$(" * 60 + "git push" + ")" * 60,
    ],
)
def test_a_command_is_found_wherever_it_stands_in_a_line(line: str):
    assert needs_person(PUSH, command(line)) == "git push"


@each_row(
    "line",
    [
        "git pushx",
        "git pull",
        "echo 'git push'",
        "git commit -m 'then; git push'",
        "grep -r 'git push' docs",
        "gitpush",
        "git log --grep 'git push' && find . -name x",
        "git --no-pager log push",
        "git -C push status",
        "make 2>&1 | tee log # git push",
        "git log > git push",
        'x=$(git branch) && echo "$x; git push"',
        "bash run.sh && echo done",
        "echo $((1 + 2)) ${x:-git} push",
        "ls",
        "",
    ],
)
def test_a_command_that_is_only_spoken_of_needs_nobody(line: str):
    assert needs_person(PUSH, command(line)) == ""


@each_row(
    ("pattern", "action", "found"),
    [
        ("WebFetch", Action("WebFetch", "https://example.org", False), True),
        ("WebFetch", Action("WebSearch", "x", False), False),
        ("mcp__github__merge*", Action("mcp__github__merge_pull_request", "{}", False), True),
        ("Write(*.env)", Action("Write", "/srv/app/.env", False), True),
        ("Write(*.env)", Action("Write", "/srv/app/env.py", False), False),
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
    assert str(Action("Write", "/srv/app/.env", False)) == "Write(/srv/app/.env)"


def test_a_person_is_told_that_a_long_command_is_cut_and_by_what_it_is_known():
    told = str(command("x" * 5000 + "; git push"))
    assert told.startswith("x" * 500 + "… (4,510 more characters are cut off here; sha256:")
    assert told != str(command("x" * 5000 + "; git pull"))
    assert str(command("x" * 500)) == "x" * 500


def test_a_command_beside_an_argument_is_looked_at_and_shown():
    action = Action("editor", "/srv/app/.env", False, "git push")
    assert needs_person(PUSH, action) == "git push"
    assert needs_person(("editor(*.env)",), action) == "editor(*.env)"
    assert str(action) == "editor(/srv/app/.env): git push"


@each_row(
    "line",
    [
        "xargs " + "a " * 50_000,
        "sudo " + "'a b' " * 5_000,
        "git " + "--x a " * 20_000,
        "(" * 100_000,
        "$(" * 50_000,
        "`" * 99_999,
        "<" * 100_000,
        "cat <<A\n" * 1_000,
        "bash -c '" * 5_000,
        "x;" * 20_000 + "| bash",
    ],
    ids=lambda line: line[:8],
)
def test_no_line_takes_long_to_be_read(line: str):
    begun = time.monotonic()
    assert needs_person(PUSH, command(line)) == ""
    assert time.monotonic() - begun < 10  # seconds; squares would be minutes
