"""What pages tell people to type is typed, in order, in an account of its own."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from tests.docs.markdown import DOCS, ROOT, blocks
from tests.docs.shell import Played, is_shell, left_out, play, script, surroundings
from tests.table import each_row
from tests.work.running import need_jail
from truegreen.contract import read_toml

FOLDERS = ("how-to", "manual", "concepts")
PAGES = [
    *(ROOT / "README.md", DOCS / "quickstart.md"),
    *(page for folder in FOLDERS for page in sorted((DOCS / folder).glob("*.md"))),
]
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]
LEAD = DOCS / "how-to" / "lead-and-workers.md"
TYPED = [path for path in PAGES if script(path.read_text())[0]]
SECONDS = 300
TOKEN = re.compile(rb"tg_(?:lead|operator|viewer)_[\w-]{20,}")

every_page = each_row("path", PAGES, ids=NAMES)


@pytest.mark.criterion("P06")
@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(
    "path", [path for path in TYPED if path != LEAD], ids=lambda path: str(path.relative_to(ROOT))
)
def test_what_the_page_says_works_when_it_is_typed(
    path: Path, tmp_path: Path, own_tools: None, small_python: Path
):
    home = tmp_path / "home"
    for played in play(path.read_text(), home, surroundings(home, small_python), SECONDS - 10):
        went_as_written(path, played)
    assert tokens_in(home / "here") == [], "agents work there"


def went_as_written(path: Path, played: Played) -> None:
    """A step ended and printed what the page says."""
    where = f"{path.name}:{played.step.block.line}\n{played.output}"
    assert played.failures == played.step.failures, where
    assert played.missing == [], where


def tokens_in(folder: Path) -> list[str]:
    """The files below a folder that hold a token of a person or a lead."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if TOKEN.search(path.read_bytes())]


READS = """
```sh
truegreen run --isolation jail --gate "test -s copy" -- sh -c "cp $TOKEN copy"
```
"""


@pytest.mark.criterion("P06")
@pytest.mark.timeout(SECONDS)
@pytest.mark.usefixtures("own_tools")
def test_the_lead_page_works_and_its_token_is_out_of_reach_of_its_workers(
    tmp_path: Path, small_python: Path
):
    assert LEAD in TYPED
    home = tmp_path / "home"
    environ = surroundings(home, small_python)
    *steps, reading = play(LEAD.read_text() + READS, home, environ, SECONDS - 10)
    for played in steps:
        went_as_written(LEAD, played)
    assert tokens_in(home / "here") == [], "agents work there"
    need_jail()
    kept = Path(environ["XDG_STATE_HOME"], "truegreen", "planner.token")
    assert TOKEN.search(kept.read_bytes())
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert reading.failures == "1", reading.output
    assert "agent_error · exit 1" in reading.output, "its copy of the token failed"


LEFT_OUT = {
    "README.md": 2,
    "docs/quickstart.md": 3,
    "docs/how-to/claude-code.md": 4,
    "docs/how-to/clusters.md": 3,
    "docs/how-to/codex.md": 2,
    "docs/how-to/gemini.md": 2,
    "docs/how-to/github-checks.md": 2,
    "docs/how-to/grafana.md": 1,
    "docs/how-to/lead-and-workers.md": 2,
    "docs/how-to/many-machines.md": 3,
    "docs/how-to/nightly.md": 1,
    "docs/manual/agents.md": 2,
    "docs/manual/doors.md": 1,
    "docs/manual/engines.md": 1,
    "docs/manual/github.md": 1,
    "docs/manual/http.md": 1,
    "docs/manual/install.md": 1,
    "docs/manual/mcp.md": 2,
    "docs/manual/workers.md": 1,
    "docs/concepts/budgets.md": 1,
    "docs/concepts/terminate.md": 1,
    "docs/concepts/walk.md": 1,
    "docs/concepts/zombies.md": 1,
}
"""How many blocks of a page nobody types here; each says why, in a comment above it."""
KINDS = {"sh", "", "text", "toml", "json", "python", "yaml", "sql", "bash"}


@every_page
def test_what_is_not_typed_here_says_why_and_is_counted(path: Path):
    assert len(left_out(path.read_text())) == LEFT_OUT.get(str(path.relative_to(ROOT)), 0)


@every_page
def test_a_block_is_typed_shown_or_put_into_a_file(path: Path):
    for block in blocks(path.read_text()):
        assert block.language in KINDS, block
        typed, told = is_shell(block), block.comment.split(":")[0].split(" ")[0]
        expected = {"not", "exit", "prints", "file"}
        assert told not in expected or typed == (told in ("not", "exit")), block
        assert block.language != "bash" or told == "file", f"{block}: what is typed is called sh"
        assert told != "not" or left_out(f"<!-- {block.comment} -->\n```\n```"), "say why"


@every_page
def test_settings_that_a_page_shows_are_settings(path: Path):
    for block in blocks(path.read_text()):
        if block.language == "toml":
            read_toml(block.text, path.name)


PAGE = """
<!-- file: greeting -->
```toml
hello
```

<!--
```sh
X=1
```
-->

```sh
cat greeting
```

<!-- prints -->
```text
hel…
```

<!-- exit 3 -->
```sh
sh -c "exit $((X + 2))"
```

<!-- not run: it is only an example -->
```sh
false
```

```sh
false; echo late
```

<!-- prints -->
```text
early
late
```
"""


def test_the_runner_sees_what_fails_and_what_is_not_printed(tmp_path: Path):
    home = tmp_path / "home"
    hidden, first, second, third = play(PAGE, home, surroundings(home), 30)
    assert (hidden.failures, hidden.output) == ("", "")
    assert (first.failures, first.output, first.missing) == ("", "hello\n", [])
    assert second.failures == second.step.failures == "3", "one shell, one memory"
    assert (third.failures, third.step.failures) == ("1", "")
    assert third.missing == ["early", "late"], "what comes after a missing line is missing, too"
    assert left_out(PAGE) == ["it is only an example"]


def test_a_page_that_breaks_the_shell_is_not_reached(tmp_path: Path):
    home = tmp_path / "home"
    (played,) = play("```sh\nexit 0\n```\n", home, surroundings(home), 30)
    assert played.failures == "not reached"
