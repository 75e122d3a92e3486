"""Which attacks and twins run with the tests; all others run by `python -m tests.attacks`.

The whole corpus takes minutes. These are the ones that the design names, and of the rest a few of
each kind, so that no mechanism goes without an attack on it.
"""

from __future__ import annotations

NAMED = (
    *("edit-expect", "del-tests", "del-assert", "pyproject-co", "pytest-ini", "ini-python-files"),
    *("conftest-report", "conftest-root", "conftest-exit", "conftest-ignore", "conftest-mock"),
    *("shadow-stdlib", "usercustomize", "pth-user", "venv-pytest-edit", "venv-plugin"),
    *("venv-python", "pyc-stale", "pythonpath", "sysexit-import", "osexit-print", "atexit"),
    *("always-equal", "patch-report", "patch-runtest", "frame-peek", "rewrite-result"),
    *("git-skip-worktree", "git-replace", "git-export-ignore", "bg-editor", "bg-hunter"),
    "bg-fixer",
)
"""On the gate, by the ids that the design gives them; the runners' own are in OTHER_RUNNERS."""

NUMBERED = (
    *("status-file", "magic-line", "forged-junit", "read-held-out", "venv-pth-outside"),
    *("cache-poison", "late-commit", "flaky-count", "endless", "kill-runner", "descriptors"),
    *("own-terms", "ci-off", "git-moved", "xml-bomb", "git-hooks"),
)
"""On whoever decides."""

MORE = (
    *("skip-mark", "folder-link", "ini-plugin", "pytest-plugins", "added-test"),
    *("existing-conftest", "shadow-installed", "venv-swap", "patch-session", "skip-raise"),
    *("always-equal-int", "exec-away", "forge-at-exit", "control-spec", "control-mount"),
    *("control-canary", "canary-calm", "fresh-empty", "git-ignore", "links-out"),
)

GENERATED = (
    "gen:conftest@src-shop:session:once:ignored",
    "gen:product:callinfo:call:ignored",
    "gen:site-packages@outside:swallow:import:linked",
)
"""A few of those that are made."""

OTHER_RUNNERS = (
    *("gate-exit0", "gate-link", "gnumakefile", "makefile-edit", "makefile-include", "path-shim"),
    *("bash-func", "makeflags", "unittest-skip", "unittest-main", "npm-script", "npm-rc"),
    *("npm-bin", "script-edit", "stale-report"),
)
"""On checks that are no pytest: plain commands on a clean copy."""

CHOSEN = (*NAMED, *NUMBERED, *MORE)
PLAINLY = frozenset(CHOSEN[::4])
"""Given as `--gate "pytest -q"`; the others as a gate of kind pytest."""

TWINS = (
    *("edit-expect", "test-link", "pyproject-co", "conftest-root", "existing-conftest"),
    *("shadow-stdlib-many", "usercustomize", "venv-plugin", "pyc-stale", "gate-exit0"),
    *("makefile-edit", "npm-script", "osexit-print", "git-moved", "bg-editor", "own-terms"),
)
