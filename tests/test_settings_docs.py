"""The sample of truegreen.toml loads, and its page names every table and every key."""

from __future__ import annotations

import re
from pathlib import Path

from tests.table import each_row
from truegreen.config import load_config
from truegreen.contract import (
    AgentDefinition,
    Alerts,
    Breakers,
    BreakerTerms,
    BudgetLayer,
    CapsLayer,
    ConfigFile,
    Escalation,
    Evaluator,
    Gate,
    Gateway,
    GitHub,
    Heartbeat,
    Limit,
    Mail,
    Notify,
    Otel,
    Qa,
    Repeat,
    Routine,
    Template,
)
from truegreen.contract.engines import Engine
from truegreen.contract.web import Web

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "examples" / "settings" / "truegreen.toml"
PAGE = (ROOT / "docs" / "manual" / "settings.md").read_text()
TABLES = (
    *(Template, CapsLayer, BudgetLayer, AgentDefinition, Gate, Evaluator, Qa, Gateway),
    *(Routine, Repeat, Notify, Escalation, Alerts, Heartbeat, Mail, GitHub, Otel, Web),
    *(Breakers, BreakerTerms, Limit, Engine),
)


def test_the_sample_loads_and_uses_every_table(tmp_path: Path):
    environ = {"HOME": str(tmp_path), "TRUEGREEN_STORE": str(tmp_path / "s.db")}
    contents = load_config(environ, str(tmp_path), config=str(SAMPLE)).contents
    nothing = ConfigFile()
    used = ConfigFile.__struct_fields__
    unset = [name for name in used if getattr(contents, name) == getattr(nothing, name)]
    assert unset == []
    assert {name for name in used if f"[{name}" not in SAMPLE.read_text()} == set()
    for task in contents.tasks:
        assert contents.contract(task).gates


@each_row("table", TABLES, ids=lambda table: table.__name__)
def test_the_page_names_every_key(table: type):
    fields: tuple[str, ...] = table.__struct_encode_fields__  # type: ignore[attr-defined]
    code = " ".join(re.findall("`([^`]+)`", PAGE))
    assert [key for key in fields if not re.search(rf"\b{key}\b", code)] == []


def test_the_page_names_every_table():
    headings = " ".join(re.findall("^### .*$", PAGE, re.MULTILINE))
    assert [name for name in ConfigFile.__struct_fields__ if f"[{name}" not in headings] == []
