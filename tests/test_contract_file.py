"""truegreen.toml: layers, options, cross references, schema."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from truegreen import contract as edge
from truegreen.contract import (
    AgentDefinition,
    Budget,
    Caps,
    ConfigFile,
    Contract,
    Duration,
    Evaluator,
    Gate,
    Qa,
    json_schema,
    make_contract,
    read_toml,
)
from truegreen.errors import InvalidInput
from truegreen.model import Mode

EXAMPLE = """
[defaults]
mode = "autonomous"
max_attempts = 3
caps = { turns = 60, time = "2h", idle = "15m", cost_usd = 10 }
isolation = "auto"

[agents.coder]
adapter = "claude-code"            # claude-code, codex, gemini, command, …
command = ["claude", "-p", "{goal}", "--output-format", "stream-json", "--verbose"]
resume  = ["claude", "-p", "{message}", "--resume", "{session}", "--verbose"]

[gates.tests]
kind = "pytest"                    # run, pytest, exists, json, diff, git, http, held_out
args = ["-q", "tests"]
before = "fail"
protect = ["tests/**", "conftest.py"]
timeout = "10m"

[evaluators.reviewer]
command = ["claude", "-p", "--model", "…"]     # or  model = "anthropic:…"
threshold = 0.70

[qa]
roles = ["coder", "product"]
agent = "reviewer"

[tasks.fix-parser]                 # a named template for `run`, `add` and routines
agent = "coder"
goal = "…"
gates = ["tests"]

[routines.nightly-triage]
schedule = "0 2 * * *"
timezone = "Europe/Berlin"
task = "fix-parser"
grace = "15m"
overlap = "skip"                   # skip, queue

[routines.cycle]
task = "fix-parser"
repeat = { max_iterations = 20, stop_after_failures = 3 }

[[notify]]
url = "slack://…"                  # apprise URL, or webhook = "https://…", secret_env = "…"
on = ["silent_failure", "cap_hit", "outage", "blocked", "needs_review"]
"""


def refused(text: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read_toml(text, "truegreen.toml")
    return caught.value


CAP_VALUES = {"turns": 7, "time": "7m", "idle": "7s", "cost_usd": 7.5, "tokens": 700}
CAP_SETS = st.sets(st.sampled_from(sorted(CAP_VALUES)))


@pytest.mark.criterion("P09")
@given(CAP_SETS, CAP_SETS)
def test_a_partial_section_flips_no_other_default(in_defaults, in_task):
    def section(names):
        return ", ".join(f"{name} = {json.dumps(CAP_VALUES[name])}" for name in sorted(names))

    layers = section(in_defaults), section(in_task)
    text = "[defaults]\ncaps = {{ {} }}\n[tasks.a]\ncaps = {{ {} }}".format(*layers)
    contract = read_toml(text, "x").contract("a")
    said = {name: CAP_VALUES[name] for name in in_defaults | in_task}
    assert edge.plain(contract.caps) == {**edge.plain(Caps()), **said}
    assert contract.budget == Budget()
    assert contract.rescue == edge.DEFAULT_RESCUE


@pytest.mark.criterion("P09")
def test_each_layer_wins_over_the_one_below_also_with_the_built_in_value():
    defaults = "[defaults]\ncaps = { turns = 5 }\nbudget = { reentries = 1 }\n"
    text = f"{defaults}[tasks.a]\ncaps = {{ turns = 200 }}"
    file = read_toml(text, "x")
    assert Caps().turns == 200
    assert file.contract("a").caps.turns == 200
    assert file.contract("a", caps={"turns": 6}).caps.turns == 6
    assert file.contract("a", caps=None, mode=None).caps.turns == 200
    assert file.contract("a", max_attempts=9).budget == Budget(attempts=9, reentries=1)


@pytest.mark.criterion("P09")
def test_an_empty_file_and_no_file_give_the_built_in_contract():
    assert make_contract(ConfigFile(), title="t") == Contract(title="t")
    assert read_toml("", "x").contract(title="t") == Contract(title="t")


def test_a_command_without_an_agent_is_its_own_agent():
    text = '[defaults]\nagent = "coder"\n[agents.coder]\nadapter = "codex"\ncommand = ["codex"]'
    file = read_toml(text, "x")
    assert file.contract(title="t").adapter == "codex"
    own = file.contract(command=["make", "it"])
    assert (own.agent, own.adapter, own.command, own.title) == (
        "",
        "command",
        ("make", "it"),
        "make it",
    )
    both = file.contract(agent="coder", command=["codex", "-x"])
    assert (both.adapter, both.command) == ("codex", ("codex", "-x"))


def test_options_are_read_as_strictly_as_the_file():
    file = read_toml(EXAMPLE, "x")
    with pytest.raises(InvalidInput, match=r'^options: gatez: unknown key; did you mean "gates"'):
        file.contract("fix-parser", gatez=[])
    with pytest.raises(InvalidInput, match=r'^options: gates\[0\]: .* got "test" \(did you mean'):
        file.contract("fix-parser", gates=["test"])
    with pytest.raises(InvalidInput, match=r"^task: expected one of fix-parser"):
        file.contract("fix-parse")


@each_row("value", [object(), Path("x"), {Path("x")}, "\ud800", 10**400, b"x", Caps()])
@each_row("name", edge.Template.__struct_fields__)
def test_options_of_any_type_are_taken_or_refused(name, value):
    for given_value in (value, [value]):
        options: dict[str, Any] = {"title": "t", name: given_value}
        with contextlib.suppress(InvalidInput):
            make_contract(ConfigFile(), **options)


def test_options_may_be_python_values():
    span = Duration(5_000_000)
    contract = make_contract(
        ConfigFile(), title="t", mode=Mode.ASSISTED, labels=("b", "a"), caps={"idle": span}
    )
    assert (contract.mode, contract.labels, contract.caps.idle) == ("assisted", ("a", "b"), span)


def test_what_gates_need_is_added_to_what_each_of_them_says():
    file = read_toml(
        """
        [defaults]
        gate_env = ["DATABASE_URL"]
        [gates.tests]
        command = ["true"]
        pass_env = ["A", "DATABASE_URL"]
        files = ["a.env"]
        """,
        "truegreen.toml",
    )
    made = file.contract(gates=["tests"], title="t", gate_files=["b.env", "a.env"])
    [gate] = made.gates
    assert (gate.pass_env, gate.files) == (("A", "DATABASE_URL"), ("a.env", "b.env"))
    [gate] = file.contract(gates=["tests"], title="t", gate_env=["B"]).gates
    assert gate.pass_env == ("A", "DATABASE_URL", "B")


def test_extra_gates_come_on_top_of_the_named_ones():
    file = read_toml(EXAMPLE, "x")
    extra = Gate(name="lint", command=("ruff", "check"))
    names = [gate.name for gate in make_contract(file, "fix-parser", extra_gates=(extra,)).gates]
    assert names == ["tests", "lint"]
    with pytest.raises(InvalidInput, match="is there twice"):
        make_contract(file, "fix-parser", extra_gates=(Gate(name="tests", command=("x",)),))


@each_row(
    ("options", "title"),
    [
        ({"goal": "\n\tFix it.\nNow."}, "Fix it."),
        ({"goal": "x" * 300}, "x" * 119 + "…"),
        ({"command": ["claude", "-p", "fix\nit"]}, "claude -p fix"),
        ({"title": "mine", "goal": "g"}, "mine"),
    ],
)
def test_a_task_without_a_title_gets_one(options, title):
    assert make_contract(ConfigFile(), **options).title == title


def test_an_empty_title_is_refused_and_not_replaced():
    with pytest.raises(InvalidInput, match="title: is empty"):
        make_contract(ConfigFile(), title="", goal="g")


def test_a_task_about_nothing_is_refused():
    with pytest.raises(InvalidInput, match="title: is required"):
        make_contract(ConfigFile())


# --- the schema


def test_the_schema_describes_every_key_of_the_file():
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "truegreen.toml"
    kinds = [ConfigFile, edge.Defaults, edge.Template, edge.CapsLayer, edge.BudgetLayer, Gate]
    for kind in [*kinds, Evaluator, Qa, AgentDefinition, edge.Routine, edge.Repeat, edge.Notify]:
        part = schema["$defs"][kind.__name__]
        assert set(part["properties"]) == set(kind.__struct_fields__)
        assert part["additionalProperties"] is False
        assert part["description"]
    assert json.dumps(schema)


def test_the_edge_loads_nothing_heavy():
    code = """if True:
        import sys, msgspec
        before = set(sys.modules)
        import truegreen.config
        print(*sorted(set(sys.modules) - before))
    """
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    heavy = {"tomllib", "difflib", "hashlib", "zoneinfo", "pathlib", "dataclasses", "subprocess"}
    assert not heavy & set(loaded)
    assert len(loaded) < 20


def test_a_command_that_is_an_empty_word_is_called_that_and_not_a_missing_title():
    with pytest.raises(InvalidInput) as refused:
        ConfigFile().contract(command=[""])
    assert "command[0]: is empty; a command starts with a program" in refused.value.message
