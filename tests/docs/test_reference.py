"""The reference is what the code says: every page is made anew and compared, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import click
import pytest

from tests.docs.of_faces import commands, served
from tests.docs.reference import FOLDER, PAGES, made
from tests.record.raw_sql import raw_sql
from tests.record.test_schema import checks, quoted
from truegreen import errors, model
from truegreen.contract import ConfigFile, json_schema
from truegreen.errors import TruegreenError
from truegreen.faces.cli.catalogue import COMMANDS
from truegreen.faces.cli.frame import Word
from truegreen.faces.mcp.tools import TOOLS
from truegreen.faces.web.openapi import description
from truegreen.model import (
    DETAILS,
    AgentStatus,
    Cell,
    ClaimKind,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Mode,
    Note,
    Outcome,
    RunStatus,
    TaskStatus,
)
from truegreen.outlets.metrics import names
from truegreen.record.guards import GUARDS
from truegreen.record.ledger import open_ledger
from truegreen.record.lifecycle import TARGETS

COLUMNS: dict[type[StrEnum], tuple[str, str]] = {
    TaskStatus: ("tasks", "status"),
    RunStatus: ("runs", "status"),
    ExitReason: ("runs", "exit_reason"),
    Cell: ("runs", "cell"),
    Mode: ("tasks", "mode"),
    AgentStatus: ("agents", "status"),
    Outcome: ("runs", "verdict"),
    Level: ("findings", "level"),
    FindingOutcome: ("findings", "outcome"),
    ClaimKind: ("claims", "kind"),
}
OFFERED = {TaskStatus, ExitReason, Cell, Mode, AgentStatus, Level}
"""Words that the command line offers as choices."""
HEADS: dict[type[StrEnum], str] = {
    TaskStatus: "Statuses of a task",
    RunStatus: "Statuses of a run",
    AgentStatus: "Statuses of an agent",
    Level: "Levels",
}
"""Sets that have a section of their own: the first word of each line of its table."""


def read(name: str) -> str:
    return (FOLDER / name).read_text()


@pytest.fixture(scope="module")
def now() -> dict[str, str]:
    return made()


@pytest.mark.criterion("P12")
@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says_now(name: str, now: dict[str, str]):
    assert read(name) == now[name], "it is made from the code: make docs"


def test_nothing_else_lies_in_the_reference():
    assert {path.name for path in FOLDER.iterdir()} == set(PAGES)


# --- mentioned, whoever made the page: from the sources themselves


def parameters() -> Iterator[tuple[str, click.Parameter]]:
    for path, command in commands():
        yield from ((" ".join(path), parameter) for parameter in command.params)


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next of any kind."""
    return text.split(f"\n{heading}\n", 1)[1].split("\n#", 1)[0]


def test_every_command_and_option_has_its_line():
    text = read("cli.md")
    known = {" ".join(path) for path, _ in commands()}
    assert {name.split()[1] for name in known} == set(COMMANDS)
    assert [name for name in known if f"\n### {name}\n" not in text] == []
    missing = [
        (command, word)
        for command, parameter in parameters()
        if parameter.name not in ("json", "store", "config")
        for word in (*parameter.opts, *parameter.secondary_opts)
        if word.startswith("-") and word not in section(text, f"### {command}")
    ]
    assert missing == []


def test_every_example_of_a_command_is_shown():
    text = read("cli.md")
    shown = [e for _, command in commands() for e in command.examples]
    assert shown
    assert [example for example in shown if example not in text] == []


def test_every_table_and_key_is_explained():
    text = read("config.md")
    assert [n for n in ConfigFile.__struct_fields__ if not re.search(rf"`\[+{n}", text)] == []
    keys = {
        (name, key)
        for name, known in json_schema()["$defs"].items()
        if name != "ConfigFile"
        for key in known.get("properties", ())
    }
    assert len(keys) > 100
    assert [k for k in keys if f"| `{k[1]}` |" not in section(text, f"## {k[0]}")] == []


def test_every_route_and_tool_has_its_section():
    http, mcp = read("http.md"), read("mcp.md")
    assert [r.path for r in served() if f"\n### {r.method} {r.path}\n" not in http] == []
    assert [name for name in TOOLS if f"\n### {name}\n" not in mcp] == []


def test_every_error_code_and_metric_is_listed():
    codes = {kind.code for kind in family(TruegreenError) if kind.__module__ == errors.__name__}
    text = read("errors.md")
    assert len(codes) > 20
    assert [code for code in codes if f"| `{code}` |" not in text] == []
    assert [name for name in names() if f"| `{name}` |" not in read("metrics.md")] == []


def family(kind: type[TruegreenError]) -> list[type[TruegreenError]]:
    return [each for k in kind.__subclasses__() for each in (k, *family(k))]


@pytest.mark.criterion("P12")
def test_every_edge_stands_in_table_diagram_and_picture():
    text, picture = read("statuses.md"), read("states.svg")
    lines = section(text, "## Edges").splitlines()
    rows = {line.split("`")[1]: line for line in lines if line.startswith("| `")}
    drawn = set(re.findall(r"^    (\w+) --> (\w+): (\w+)$", text, re.MULTILINE))
    assert drawn == {(s, t, m) for (s, m), t in TARGETS.items()}
    for (source, move), target in TARGETS.items():
        _, sources, to = rows[move].split("|")[1:4]
        assert f"`{source}`" in sources
        assert f"`{target}`" in to
        assert move in picture
        assert source in picture


def test_every_event_table_and_trigger_is_listed():
    events, schema = read("events.md"), read("schema.md")
    assert [e for e in (*model.Move, *Note) if f"| `{e}` |" not in events] == []
    assert [g.name for g in GUARDS if f"| `{g.name}` | `{g.table}` |" not in schema] == []
    assert [g.table for g in GUARDS if f"\n## {g.table}\n" not in schema] == []


# --- one enum, everywhere the same


def in_the_docs(enum: type[StrEnum]) -> set[str]:
    """The words of a set as the page of statuses lists them."""
    text = read("statuses.md")
    if enum in HEADS:
        rows = section(text, f"## {HEADS[enum]}").splitlines()
        return {row.split("`")[1] for row in rows if row.startswith("| `")}
    if enum in (ExitReason, ExitDetail):
        column = 1 if enum is ExitReason else 3
        rows = section(text, "## Why a run ended").splitlines()
        return {row.split("|")[column].strip(" `") for row in rows if row.startswith("| `")}
    if enum is Cell:
        rows = section(text, "## The matrix").splitlines()
        return {row.split("`")[1] for row in rows if row.startswith("| `")}
    if enum is Outcome:
        head = section(text, "## The matrix").split("| run |")[1].splitlines()[0]
        return {word.strip() for word in head.split("|") if word.strip()}
    lines = section(text, "## Other closed sets").splitlines()
    found = [set(re.findall(r"`(\w+)`", line)) for line in lines if line.startswith("| ")]
    return max(found, key=lambda words: len(words & set(enum)) - len(words ^ set(enum)))


def on_the_command_line(enum: type[StrEnum]) -> Iterator[set[str]]:
    for _, parameter in parameters():
        if isinstance(parameter.type, Word) and parameter.type._words is enum:
            yield {str(choice) for choice in parameter.type.choices}


def in_a_schema(whole: dict[str, Any], enum: type[StrEnum]) -> Iterable[set[str]]:
    return [set(whole[enum.__name__]["enum"])] if enum.__name__ in whole else []


@pytest.mark.criterion("B08")
def test_one_enum_makes_constraint_schema_choices_and_docs(store_url: str):
    open_ledger(store_url).close()
    api, settings = description()["components"]["schemas"], json_schema()["$defs"]
    with raw_sql(store_url) as raw:
        for enum, column in COLUMNS.items():
            code = {str(word) for word in enum}
            places = {
                "database": [quoted(checks(raw, *column))],
                "HTTP": list(in_a_schema(api, enum)),
                "settings": list(in_a_schema(settings, enum)),
                "command line": list(on_the_command_line(enum)),
                "docs": [in_the_docs(enum)],
            }
            told = {(place, *sorted(words)) for place, all_ in places.items() for words in all_}
            assert told == {(place, *sorted(code)) for place, all_ in places.items() if all_}
            assert places["HTTP"], enum
            assert bool(places["command line"]) == (enum in OFFERED), enum


@pytest.mark.criterion("B08")
def test_one_table_of_exit_details_makes_constraint_schema_and_docs(store_url: str):
    pairs = {f"{reason}/{detail}" for reason, details in DETAILS.items() for detail in details}
    open_ledger(store_url).close()
    with raw_sql(store_url) as raw:
        if raw.dialect == "sqlite":
            text = raw.do("SELECT sql FROM sqlite_master WHERE name = 'runs'")[0][0]
            text = next(line for line in text.splitlines() if "CONSTRAINT runs_exit_pair" in line)
        else:
            text = raw.do(
                "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
                " WHERE conname = 'runs_exit_pair'"
            )[0][0]
    assert set(re.findall(r"\w+/\w+", text)) == pairs
    assert set(description()["components"]["schemas"]["ExitDetail"]["enum"]) == set(ExitDetail)
    assert in_the_docs(ExitDetail) == set(ExitDetail)
    rows = section(read("statuses.md"), "## Why a run ended").splitlines()
    cells = [[cell.strip(" `") for cell in row.split("|")] for row in rows if "| `" in row]
    assert {f"{row[1]}/{row[3]}" for row in cells} == pairs
