"""Settings that linters and type checkers find by themselves: they decide what is reported.

Words in, patterns of file names out. No file is looked at here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from truegreen.patterns import late
from truegreen.work.gates.spoken import base_of, is_python, module_of

LINTERS: dict[str, re.Pattern[str]] = {
    "ruff": late(r"\.?ruff\.toml|pyproject\.toml|\.ignore"),
    "mypy": late(r"\.?mypy\.ini|pyproject\.toml|setup\.cfg"),
    "pyright": late(r"pyrightconfig\.json|pyproject\.toml"),
    "black": late(r"pyproject\.toml"),
    "flake8": late(r"\.flake8|setup\.cfg|tox\.ini"),
    "pycodestyle": late(r"setup\.cfg|tox\.ini"),
    "pylint": late(r"\.?pylintrc(?:\.toml)?|pyproject\.toml|setup\.cfg|tox\.ini"),
    "eslint": late(r"\.eslintrc.*|eslint\.config\..*|\.eslintignore|package\.json"),
    "prettier": late(
        r"\.prettierrc.*|prettier\.config\..*|\.prettierignore|\.editorconfig|package\.json"
    ),
    "shellcheck": late(r"\.?shellcheckrc"),
    "shfmt": late(r"\.editorconfig"),
    "yamllint": late(r"\.yamllint.*"),
    "deno": late(r"deno\.jsonc?"),
    "rg": late(r"\.(?:rg)?ignore"),
}
"""Programs that only read the files that they are given, and the names of their settings."""
ANY_LINTER = late(
    r"\.?ruff\.toml|\.?mypy\.ini|pyrightconfig\.json|\.flake8|\.?pylintrc(?:\.toml)?|\.isort\.cfg"
    r"|\.coveragerc|\.eslintrc.*|eslint\.config\..*|\.eslintignore|\.prettierrc.*"
    r"|prettier\.config\..*|\.prettierignore|\.stylelintrc.*|stylelint\.config\..*|biome\.jsonc?"
    r"|tsconfig.*\.json|\.shellcheckrc|\.yamllint.*|\.golangci\..*|\.?clippy\.toml|\.rubocop.*"
    r"|\.markdownlint.*|\.hadolint\..*|\.pre-commit-config\.yaml|\.ignore"
)
"""Files that hold settings of linters alone; a script or a Makefile may run any of them."""
_SETTINGS_OPTIONS = frozenset(
    {"-c", "--config", "--config-file", "--config-path", "--rcfile", "--append-config"}
    | {"--ignore-path", "--ignore-file", "--rc-file"}
)


def settings_of(command: Sequence[str]) -> re.Pattern[str] | None:
    """The names of the settings of a known linter; None for any other program."""
    return LINTERS.get(module_of(command) if is_python(command) else base_of(command[0]))


def named_settings(command: Sequence[str]) -> list[str]:
    """The files that a linter's options name as its settings."""
    return [
        value or "".join(command[n + 1 : n + 2])
        for n, word in enumerate(command[1:], 1)
        for option, _, value in [word.partition("=")]
        if option in _SETTINGS_OPTIONS
    ]
