"""The files that a check itself consists of: what its command runs, and not what it looks at.

Words in, paths of the tree out. A script, a program of the tree, a Makefile and a module behind
`-m` are the check; a file that `grep`, `diff` or a test runner is given is the work. `python
app.py` runs app.py, so app.py counts as the check, too; `sh -n app.sh` only reads app.sh. No file
is looked at here.
"""

from __future__ import annotations

import os.path
import re
import sys
from collections.abc import Iterable, Iterator, Sequence

from truegreen.patterns import late
from truegreen.tuples import NamedTuple
from truegreen.work.gates.spoken import (
    ANYWHERE,
    SHELLS,
    Step,
    base_of,
    is_builtin,
    is_python,
    module_of,
    modules_of,
    runner_of,
    steps_of,
)

_INTERPRETERS = (
    SHELLS | {"python", "pypy", "node", "ruby", "perl", "php", "deno", "bun", "lua"} | {"coverage"}
)
_RUNS_WORD = frozenset({"-r", "--require", "--import", "--loader", "--rcfile", "--init-file"})
_TAKES_WORD = {
    "python": {"-W", "-X", "--check-hash-based-pycs"},
    "pypy": {"-W", "-X", "--check-hash-based-pycs"},
    "node": {"-C", "--conditions", "--env-file", "--input-type", "--inspect-port"},
    "perl": {"-I"},
    "ruby": {"-I", "-C", "-E"},
    "php": {"-d", "-c", "-z"},
    "lua": {"-l"},
    "deno": {"-c", "--config", "--import-map", "--env-file", "--cert", "--lock", "-L"},
    "bun": {"-c", "--config", "--env-file", "--cwd"},
    "coverage": {
        *("--source", "--include", "--omit", "--data-file", "--concurrency", "--context"),
        "--rcfile",
    },
}
"""Options of interpreters whose value is the next word: that word is not the script."""
_CHECK_ONLY = {
    "perl": late(r"-[acfnpstuwSTUWX]*c[acfnpstuwSTUWX]*"),
    "ruby": late(r"-[acdlnpsvwy]*c[acdlnpsvwy]*"),
    "node": late(r"-c|--check"),
    "php": late(r"-l|--syntax-check"),
}
"""Options with which an interpreter reads a file and reports errors, and does not run it."""
_CHECKING_MODULES = frozenset(
    {
        *("py_compile", "compileall", "json.tool", "tabnanny", "pyflakes", "pycodestyle"),
        *("ruff", "mypy", "black", "flake8", "pylint", "pyright"),
    }
)
_CHECKING_COMMANDS = frozenset({"check", "lint", "fmt"})
_CODE = {
    "python": "cm",
    "pypy": "cm",
    "node": "ep",
    "perl": "eE",
    "ruby": "e",
    "lua": "e",
    "coverage": "m",
}
_WITH_RUN = frozenset({"deno", "bun", "coverage"})
_LONG_CODE = frozenset({"--eval", "--print", "--test"})
# What decides what a program does that runs other programs.
_GUIDES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "npm": ("package.json",),
    "yarn": ("package.json",),
    "pnpm": ("package.json",),
    "bun": ("package.json",),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile", ".justfile"),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb"),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "gradlew": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "composer": ("composer.json",),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "invoke": ("tasks.py",),
    "ant": ("build.xml",),
}
_UPWARD = frozenset({"npm", "yarn", "pnpm", "bun", "just", "rake"})
_GUIDE_OPTIONS = frozenset({"-f", "--file", "--makefile", "-c", "--justfile", "--rakefile"})
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--prefix", "--cwd", "--dir"})
_LINTERS: dict[str, re.Pattern[str]] = {
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
_ANY_LINTER = late(
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
# They look at what they are given, and run none of it.
READERS = frozenset(
    {
        *("test", "[", "[[", "grep", "egrep", "fgrep", "rg", "diff", "cmp", "cat", "head"),
        *("tail", "wc", "ls", "stat", "file", "find", "sort", "jq", "cd", "echo", "printf"),
        *("sha256sum", "md5sum", "checkbashisms", "luac", "gofmt", "xmllint"),
        *(_LINTERS.keys() - {"deno"}),
    }
)
_TOOLS = frozenset(
    {
        *("pytest", "unittest", "coverage", "tox", "nox", "ruff", "mypy", "black", "flake8"),
        *("pylint", "pyright", "doctest", "compileall", "py_compile", "pip", "build", "venv"),
        *("timeit", "json.tool", "tabnanny", "pyflakes", "pycodestyle"),
    }
)
_PYTEST_SETTINGS = frozenset(
    {"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg"}
    | {"pyproject.toml", "conftest.py"}
)


class Own(NamedTuple):
    """Paths of the tree. One in a folder that only the shell knows starts with `**/`."""

    files: tuple[str, ...] = ()
    """Run by the check: they come from the base."""
    intruders: tuple[str, ...] = ()
    """They would be run instead of something outside of the tree, if the agent added them."""
    suspects: tuple[str, ...] = ()
    """Run by the check if they are programs."""
    unwanted: tuple[str, ...] = ()
    """They would keep the check from running, if the agent added them."""
    scripts: tuple[str, ...] = ()
    """Those of the files that an interpreter is given to run: each may be the work as well."""
    groups: tuple[tuple[str, ...], ...] = ()
    """Files of which a program takes the first that it finds, so that one can stand in another."""

    def among(self, paths: Iterable[str]) -> list[str]:
        """Those of the paths that are files of the check."""
        return [path for path in paths if means(self.files, path)]

    def stand_ins(self, added: Iterable[str], before: Iterable[str]) -> list[str]:
        """Added files that would be run instead of one that was there before, as GNUmakefile is.

        Or instead of the whole check.
        """
        added = list(added)
        fresh = [(path, group) for path in added for group in self.groups if means(group, path)]
        known = list(before) if fresh else []
        found = [path for path, group in fresh if any(means(group, old) for old in known)]
        return [*found, *(path for path in added if means(self.unwanted, path))]


def own_of(words: Sequence[str], folder: str, roots: Sequence[str] = ()) -> Own:
    """What a command line runs; `roots` are folders where Python looks for modules besides."""
    files, intruders, suspects = list[str](), list[str](), list[str]()
    groups, unwanted = list[tuple[str, ...]](), list[str]()
    if "/" in words[0]:
        files += _placed((folder,), [words[0]])
    scripts = list[str]()
    for folders, command in steps_of(words, (folder,)):
        files += _placed(folders, _run_by(command))
        scripts += _placed(folders, [word for word in _run_by(command) if word != command[0]])
        guided = _guided(folders, command)
        groups.append(tuple(_placed(guided, _guides(command))))
        unwanted += _placed(guided, _hushing(command))
        for module in modules_of(command) if is_python(command) else ():
            found = tuple(_placed(_importable(folders, roots), _files_of(module)))
            if module in _TOOLS:
                intruders += found
            else:
                groups.append(found)
                scripts += found
        if not only_reads(command) and runner_of(command) is None:
            suspects += _placed(folders, command[1:])
    files += [path for group in groups for path in group]
    return Own(
        files=tuple(dict.fromkeys(files)),
        scripts=tuple(dict.fromkeys(scripts)),
        intruders=tuple(dict.fromkeys(intruders)),
        suspects=tuple(dict.fromkeys(suspects)),
        unwanted=tuple(dict.fromkeys(unwanted)),
        groups=tuple(filter(None, groups)),
    )


def means(paths: Iterable[str], path: str) -> bool:
    """Whether one of our paths is this path of the tree."""
    return any(
        path == own or (own.startswith("**/") and f"/{path}".endswith(own[2:])) for own in paths
    )


def only_reads(command: Sequence[str]) -> bool:
    """Whether a simple command looks at the files that it is given, and runs none of them."""
    base = base_of(command[0])
    if base in READERS or (base == "deno" and command[1:2] and command[1] in _CHECKING_COMMANDS):
        return True
    return module_of(command) in _CHECKING_MODULES if is_python(command) else _checks_only(command)


def _checks_only(command: Sequence[str]) -> bool:
    """Whether an interpreter is told to check the syntax of its script: `sh -n`, `perl -wc`."""
    base = base_of(command[0])
    if base in SHELLS:
        return _shell_checks_only(command)
    wanted = _CHECK_ONLY.get(base)
    if wanted is None:
        return False
    rest = iter(command[1:])
    for word in rest:
        if not word.startswith(("-", "+")) or word == "--" or _is_code(base, word):
            return False
        if wanted.fullmatch(word):
            return True
        if word in _RUNS_WORD or _takes_word(base, word):
            next(rest, None)
    return False


def _shell_checks_only(command: Sequence[str]) -> bool:
    """The last of `-n`, `+n`, `-o noexec` and `+o noexec` counts; with `-i` a shell ignores it."""
    base, checks, rest = base_of(command[0]), False, iter(command[1:])
    for word in rest:
        if not word.startswith(("-", "+")) or word in {"-", "--"}:
            break
        value = next(rest, "") if word in _RUNS_WORD or _takes_word(base, word) else ""
        if word.startswith("--"):
            continue
        if "i" in word:
            return False
        if "n" in word or value == "noexec":
            checks = word[0] == "-"
    return checks


def named_like_check(path: str) -> bool:
    """Whether the name of a file, or of a folder above it, says that it is a check."""
    words = re.findall(r"[a-z]+|[A-Z][a-z]*|\d+", path)
    return any(word.lower() in _CHECK_WORDS for word in words) or bool(_TESTS.search(path))


_CHECK_WORDS = frozenset(
    {
        *("check", "checks", "checker", "test", "tests", "tester", "testing", "spec", "specs"),
        *("verify", "verifier", "validate", "validator", "lint", "ci", "gate", "gates", "qa"),
        *("assert", "expect", "expected", "eval", "evaluate", "judge", "score", "grade", "grader"),
        *("smoke", "accept", "acceptance", "probe", "audit", "e2e", "bench", "benchmark"),
    }
)


def among_checks(path: str) -> bool:
    """Whether a file lies in a folder whose name says that it holds checks or tools."""
    folder = os.path.dirname(path)
    return named_like_check(folder) or not _TOOL_FOLDERS.isdisjoint(folder.split("/"))


_TOOL_FOLDERS = frozenset({"tools", "tool", "scripts", "script", "hack"})


def deciding(
    words: Sequence[str], changed: Iterable[str], folder: str = "", roots: Sequence[str] = ()
) -> str:
    """The first of the paths that tells a program of the check what to do, unasked.

    Which one runs is not known of a script or a Makefile: it may well be pytest or a linter.
    """
    paths, steps = list(changed), list(steps_of(words, (folder,))) if words else []
    found = next((path for path in paths for step in steps if _steers_linter(step, path)), "")
    if found:
        return found
    # Python itself loads files of the tree at its start, whatever it is asked to read
    if all(only_reads(step.words) and not is_python(step.words) for step in steps):
        return ""
    runner = runner_of(words)
    names = set(_START_UP)
    if runner is None or runner.name in _RUNNERS_SETTINGS:
        wanted = _RUNNERS_SETTINGS.get(runner.name if runner else "", _ANY_SETTINGS)
        found = next((path for path in paths if wanted.fullmatch(os.path.basename(path))), "")
        if found:
            return found
    if runner is None or runner.name in {"", "pytest"}:
        names |= _PYTEST_SETTINGS
    python = runner is None or runner.name in {"", "pytest", "unittest"}
    folders = _module_folders(steps, roots) if python else set()
    return next((p for p in paths if os.path.basename(p) in names or _shadows(p, folders)), "")


def settings_of(command: Sequence[str]) -> re.Pattern[str] | None:
    """The names of the settings of a known linter; None for any other program."""
    return _LINTERS.get(module_of(command) if is_python(command) else base_of(command[0]))


def _named_settings(command: Sequence[str]) -> list[str]:
    """The files that a linter's options name as its settings."""
    return [
        value or "".join(command[n + 1 : n + 2])
        for n, word in enumerate(command[1:], 1)
        for option, _, value in [word.partition("=")]
        if option in _SETTINGS_OPTIONS
    ]


def _steers_linter(step: Step, path: str) -> bool:
    """Whether a file holds the settings of the linter that a command is, or may run."""
    command, name = step.words, os.path.basename(path)
    wanted = settings_of(command)
    if wanted and only_reads(command):
        named = _placed(step.folders, _named_settings(command))
        return bool(wanted.fullmatch(name)) or means(named, path)
    runner = runner_of(command)
    starts_none = is_builtin(command[0]) and command[0] not in {".", "source"}
    if runner and runner.strict:
        return name == ".coveragerc" and any(word.startswith("--cov") for word in command)
    if only_reads(command) or starts_none:
        return False
    installs = len(command) > 1 and command[1] in {"ci", "install", "sync"}
    return not installs and bool(_ANY_LINTER.fullmatch(name))


def _module_folders(steps: Iterable[Step], roots: Sequence[str]) -> set[str]:
    """The folders of the tree where Python looks for modules before it looks at its own."""
    found = {"", "src"}
    for folders, command in steps:
        found.update(_importable(_guided(folders, command), roots))
        scripts = _placed(folders, _run_by(command))
        found.update(os.path.dirname(s) for s in scripts if os.path.splitext(s)[1] in {"", ".py"})
    return {"" if folder in {"", "."} else os.path.normpath(folder) for folder in found}


def _shadows(path: str, folders: set[str]) -> bool:
    """Whether Python would take a module of the tree for one of its own."""
    folder, name = os.path.split(path)
    module, _, end = name.partition(".")
    if module == "__init__":
        folder, module = os.path.split(folder)
    return (
        module in sys.stdlib_module_names and folder in folders and bool(_MODULE_END.fullmatch(end))
    )


_MODULE_END = late(r"pyc?|(?:[\w-]+\.)?so")
_ANY_SETTINGS = late(
    r"(?:jest|vitest|vite|babel)\.config\..*|\.(?:mocha|babel)rc.*|\.?phpunit.*\.xml(?:\.dist)?"
    r"|\.rspec|CTestTestfile\.cmake"
)
_RUNNERS_SETTINGS = {
    "": _ANY_SETTINGS,
    "jest": late(r"(?:jest|babel)\.config\..*|\.babelrc.*"),
    "vitest": late(r"vite(?:st)?\.config\..*"),
    "mocha": late(r"\.mocharc.*"),
    "phpunit": late(r"\.?phpunit.*\.xml(?:\.dist)?"),
    "rspec": late(r"\.rspec"),
}
_START_UP = frozenset({"sitecustomize.py", "usercustomize.py"})


_TESTS = late(r"(?:^|/)(?:test_[^/]*|[^/]*[_.](?:test|spec))\.\w+$")


_MANIFESTS = frozenset(
    {"package.json", "package-lock.json", "Cargo.toml", "Cargo.lock", "go.mod", "go.sum", "pom.xml"}
)


def steers_tests(path: str) -> bool:
    """Whether a file is a test, or tells test runners or linters what to do."""
    name = os.path.basename(path)
    if name in _PYTEST_SETTINGS or name in _MANIFESTS or _ANY_LINTER.fullmatch(name):
        return True
    return bool(_TESTS.search(path))


def _placed(folders: Iterable[str], paths: Iterable[str]) -> Iterator[str]:
    """Words as paths of the tree; what leads out of it is none."""
    given = list(paths)
    for folder in folders:
        for word in given:
            path = word
            where = folder
            if re.search(r"[$`]", word):
                path, where = re.sub(r"^.*[$`][^/]*/?", "", word), ANYWHERE
            if not path or os.path.isabs(path) or len(path) > 4096:  # noqa: PLR2004 - PATH_MAX
                continue
            placed = os.path.normpath(os.path.join(where, path))
            if not placed.startswith("..") and placed != ".":
                yield placed


def _run_by(command: Sequence[str]) -> list[str]:
    """The program if it may be a file of the tree, and the script that it is to run."""
    program, base = command[0], base_of(command[0])
    found = [program] if "/" in program or "." in program.strip(".") else []
    if program in {".", "source"}:
        return [*found, *command[1:2]]
    if base not in _INTERPRETERS or only_reads(command):
        return found
    rest = iter(command[1:])
    for word in rest:
        if _is_code(base, word):
            break
        if word in _RUNS_WORD:
            found += [value for value in [next(rest, "")] if value]
        elif word.startswith(("-", "+")):
            if _takes_word(base, word):
                next(rest, None)
        elif not (base in _WITH_RUN and word == "run"):
            return [*found, word]
    return found


def _takes_word(base: str, option: str) -> bool:
    if base in SHELLS:
        return option[-1] in "oO"
    return option in _TAKES_WORD.get(base, ())


def _is_code(base: str, option: str) -> bool:
    """Whether what follows is program text, or a module, and no file."""
    if option in _LONG_CODE or (base in {"deno", "bun"} and option == "test"):
        return True
    letters = _CODE.get(base, "r" if base == "php" else "")
    return bool(re.fullmatch(rf"-[A-Za-z]*[{letters}]", option)) if letters else False


def _guides(command: Sequence[str]) -> list[str]:
    """The files that tell a wrapper what to run."""
    base = base_of(command[0])
    modules = modules_of(command) if is_python(command) else []
    program = next((name for name in modules if name in _GUIDES), base)
    if program not in _GUIDES:
        return []
    named = [
        value
        for n, word in enumerate(command[1:], 1)
        for option, _, value in [word.partition("=")]
        if option in _GUIDE_OPTIONS
        for value in [value or "".join(command[n + 1 : n + 2])]
    ]
    return [*_GUIDES[program], *filter(None, named)]


def _hushing(command: Sequence[str]) -> list[str]:
    """Files whose mere presence keeps a wrapper from running what it is asked to run.

    make takes a target for made if a file has its name; the others let a setting choose the shell
    or the program that tests are run with.
    """
    base = base_of(command[0])
    if base in {"make", "gmake"}:
        return [word for word in command[1:] if not word.startswith("-") and "=" not in word]
    return list(_SWITCHES.get(base, ()))


_SWITCHES = {
    **dict.fromkeys(("npm", "yarn", "pnpm", "npx"), (".npmrc", ".yarnrc", ".yarnrc.yml")),
    "cargo": (".cargo/config.toml", ".cargo/config"),
}


def _guided(folders: tuple[str, ...], command: Sequence[str]) -> tuple[str, ...]:
    """Where a wrapper looks for its file: here, in the folder that it is told, or above."""
    told = [
        value or "".join(command[n + 1 : n + 2])
        for n, word in enumerate(command[1:], 1)
        for option, _, value in [word.partition("=")]
        if option in _FOLDER_OPTIONS
    ]
    places = [*folders, *(os.path.join(folder, each) for folder in folders for each in told)]
    if base_of(command[0]) in _UPWARD:
        for folder in tuple(places):
            parts = folder.split("/")
            places += ["/".join(parts[:n]) for n in range(len(parts))]
    return tuple(dict.fromkeys(places))


def _importable(folders: tuple[str, ...], roots: Sequence[str]) -> list[str]:
    return [os.path.join(folder, root) for folder in folders for root in ("", "src", *roots)]


def _files_of(module: str) -> list[str]:
    """All that Python runs for `-m a.b`: the module, or the package's main, and what is above."""
    if not re.fullmatch(r"[\w.]+", module):
        return []
    parts = module.strip(".").split(".")
    path = "/".join(parts)
    above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return [f"{path}.py", f"{path}/__main__.py", *(f"{each}/__init__.py" for each in above)]
