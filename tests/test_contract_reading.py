"""Strict reading: what is wrong is refused with its path, and never with a traceback."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from tests.test_contract_file import EXAMPLE, refused
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
    checked,
    checked_line,
    checked_name,
    parse_duration,
    read_json,
    read_toml,
)
from truegreen.errors import InvalidInput

MINIMAL: dict[Any, dict[str, Any]] = {
    Gate: {"command": ["true"]},
    Evaluator: {"command": ["judge"]},
    Qa: {},
    Caps: {},
    Budget: {},
    AgentDefinition: {},
    Contract: {"title": "t"},
    edge.Defaults: {},
    edge.Template: {},
    edge.CapsLayer: {},
    edge.BudgetLayer: {},
    edge.Repeat: {"max_iterations": 2},
    edge.Routine: {"task": "t", "schedule": "0 2 * * *"},
    edge.Notify: {"url": "slack://x"},
    ConfigFile: {},
}
FIELDS = [(kind, name) for kind in MINIMAL for name in kind.__struct_fields__]
every_field = each_row(
    ("kind", "name"), FIELDS, ids=[f"{kind.__name__}.{name}" for kind, name in FIELDS]
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


# --- single values


@each_row(
    ("text", "problem"),
    [
        (5, "expected text; got 5"),
        (b"bytes", "expected text"),
        (None, "expected text"),
        ("a\0b", "contains a NUL byte"),
        ("\ud800", "is not valid Unicode"),
        ("é" * 6, "has 12 bytes; the limit is 10"),
        ("x" * 11, "has 11 bytes; the limit is 10"),
    ],
)
def test_text_that_no_store_could_keep_is_refused_by_name(text, problem):
    with pytest.raises(InvalidInput, match=f"^goal: {problem}"):
        checked(text, "goal", 10)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20))
def test_text_within_the_limit_is_given_back_unchanged(text):
    assert checked(text, "goal", len(text.encode())) == text


@each_row("end", ["\n", "\r", "\x1b[31m", "\x85", "\u2028", "\u202e", "\u2066"])
def test_a_title_can_neither_break_nor_forge_a_line(end):
    with pytest.raises(InvalidInput, match="title: contains a line break or a control character"):
        Contract(title=f"fix{end}it")


@each_row(
    ("title", "problem"),
    [("", "is empty"), (" \u00a0", "is empty"), ("x" * 501, "has 501 characters")],
)
def test_a_title_has_one_to_five_hundred_characters(title, problem):
    with pytest.raises(InvalidInput, match=f"title: {problem}"):
        checked_line(title, "title")
    assert checked_line("ü" * 500, "title")


@each_row("name", ["", "A", "-a", "a b", "a\n", "é", "a/b", "x" * 65, 5])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InvalidInput, match=r"^role: "):
        checked_name(name, "role")


@each_row("name", ["a", "0", "fix-parser", "a.b_c", "x" * 64])
def test_names_are_accepted(name):
    assert checked_name(name, "role") == name


# --- durations


@each_row(
    ("value", "microseconds"),
    [
        ("1h30m", 5_400_000_000),
        ("15m", 900_000_000),
        ("90s", 90_000_000),
        ("2d", 172_800_000_000),
        ("500ms", 500_000),
        ("1us", 1),
        ("90", 90_000_000),
        (90, 90_000_000),
        (0.5, 500_000),
        ("3650d", 315_360_000_000_000),
    ],
    ids=repr,
)
def test_durations_are_read_as_microseconds(value, microseconds):
    assert parse_duration(value) == microseconds


BAD_DURATIONS = [
    *[
        "",
        "0",
        "0s",
        "-5s",
        "5",
        "1h1h",
        "30m1h",
        "1.5h",
        "1 h",
        "5M",
        "h",
        "1x",
        "٣s",
        "inf",
        "5s\n",
    ],
    *["3651d", "9" * 400 + "s", 0, -1, 10**400, 1e300, 1e-9],
    *[float("nan"), float("inf"), True, None, [], {}],
]


@each_row("value", [value for value in BAD_DURATIONS if value != "5"], ids=repr)
def test_what_is_no_duration_is_refused_with_the_accepted_forms(value):
    with pytest.raises(InvalidInput, match=r"time: expected a duration such as .*1h30m.*seconds"):
        parse_duration(value, "time")


@given(st.integers(1, 315_360_000_000_000))
def test_every_duration_is_read_back_from_its_own_text(size):
    assert parse_duration(str(Duration(size))) == size


def test_a_bare_number_in_python_is_no_duration():
    twice: Any = Caps().time * 2  # an int: microseconds here, seconds at the edge
    with pytest.raises(InvalidInput, match="time: expected a Duration"):
        Caps(time=twice)
    assert Caps(time=Duration(twice)).time == 4 * 3_600_000_000


# --- strict reading


def test_the_documented_example_is_accepted():
    file = read_toml(EXAMPLE, "truegreen.toml")
    contract = file.contract("fix-parser")
    assert contract.adapter == "claude-code"
    assert contract.gates[0].name == "tests"
    assert contract.caps.turns == 60
    assert contract.title == "fix-parser"
    assert file.routines["cycle"].repeat is not None


def tables(value: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every table of a document that has fixed keys, with its path."""
    found = []
    if isinstance(value, dict):
        named = path in {"agents", "gates", "evaluators", "tasks", "routines"}
        found = [] if named else [(path, value)]
        for key, inner in value.items():
            found += tables(inner, f"{path}.{key}" if path else key)
    if isinstance(value, list):
        for n, inner in enumerate(value):
            found += tables(inner, f"{path}[{n}]")
    return found


PATHS = [path for path, _ in tables(edge.toml_document(EXAMPLE, ""))]


@each_row("path", PATHS)
def test_an_unknown_key_is_refused_with_its_path_and_the_nearest_key(path):
    document = edge.toml_document(EXAMPLE, "")
    table = dict(tables(document))[path]
    key = next(iter(table))
    table[f"{key}z"] = table[key]
    with pytest.raises(InvalidInput) as caught:
        edge.convert(document, ConfigFile, "truegreen.toml")
    place = f"{path}.{key}z" if path else f"{key}z"
    message = f'truegreen.toml: {place}: unknown key; did you mean "{key}"?'
    assert caught.value.message == message
    assert key in caught.value.allowed
    assert caught.value.details["path"] == place


def test_the_example_has_tables_at_every_level():
    assert len(PATHS) == 12
    assert {"", "defaults.caps", "routines.cycle.repeat", "notify[0]"} <= set(PATHS)


def test_an_unknown_key_like_no_other_lists_the_known_ones():
    error = refused("[qa]\nxyzzy = 1")
    assert error.message == "truegreen.toml: qa.xyzzy: unknown key; known keys: agent, roles"
    assert error.allowed == ("agent", "roles")


@each_row(
    ("text", "message"),
    [
        (
            '[gates.tests]\nkind = "pytest"\nbefore = "fial"',
            'gates.tests.before: expected one of any, fail, pass; got "fial" (did you mean "fail"',
        ),
        (
            "[defaults]\nmode = 3",
            "defaults.mode: expected one of assisted, autonomous, interactive; got 3",
        ),
        ('[defaults]\ncaps = { turns = "ten" }', 'defaults.caps.turns: expected int; got "ten"'),
        ("[defaults]\ncaps = { turns = 0 }", "defaults.caps.turns: expected int >= 1; got 0"),
        ("defaults = 3", "defaults: expected object; got 3"),
        ('[routines.n]\nschedule = "0 2 * * *"', "routines.n.task: is required"),
        (
            '[tasks.a]\ngates = ["test"]\n[gates.tests]\nkind = "pytest"',
            'tasks.a.gates[0]: expected one of tests; got "test" (did you mean "tests"?)',
        ),
        (
            '[tasks.a]\nagent = "codr"\n[agents.coder]',
            'tasks.a.agent: expected one of coder; got "codr" (did you mean "coder"?)',
        ),
        (
            '[tasks.a]\nevaluators = ["x"]',
            'tasks.a.evaluators[0]: no [evaluators.…] is defined that it could name; got "x"',
        ),
        (
            '[defaults]\ngates = ["x"]',
            'defaults.gates[0]: no [gates.…] is defined that it could name; got "x"',
        ),
        (
            '[routines.n]\nschedule = "0 2 * * *"\ntask = "fixparser"\n[tasks.fix-parser]',
            'routines.n.task: expected one of fix-parser; got "fixparser" (did you',
        ),
        (
            '[[notify]]\nwebhook = "https://a.example"\nescalate = { after = "1h", to = ["x"] }',
            'notify[0].escalate.to: there is nothing to name; got "x"',
        ),
        ('[qa]\nagent = "x"\n[agents.y]', 'qa.agent: expected one of y; got "x"'),
        ('[tasks."A b"]', 'tasks.A b: "A b" is no name'),
        ('[gates.a]\nname = "b"\ncommand = ["x"]', 'gates.a.name: its table calls it "a"'),
        ('[gates.a]\nkind = "run"', 'gates.a.command: a gate of kind "run" needs it'),
        (
            '[gates.a]\nkind = "pytest"\ncommand = ["x"]',
            'gates.a.command: a gate of kind "pytest" does not use it',
        ),
        ('[tasks.a]\ntitle = "x\\ny"', "tasks.a.title: contains a line break"),
        ('[defaults]\nlabels = ["A"]', 'defaults.labels[0]: "A" is no name'),
        (
            "[defaults]\nmax_attempts = 2\nbudget = { attempts = 2 }",
            "defaults.max_attempts: is short for budget.attempts; set one of them",
        ),
        (
            "[evaluators.e]",
            "evaluators.e.command: an evaluator has one of command, model and python",
        ),
        ("[[notify]]", "notify[0].url: a notification has either a url or a webhook"),
        ('[[notify]]\nwebhook = "ftp://x"', "notify[0].webhook: expected an address"),
        ('[[notify]]\nurl = "slack"', "notify[0].url: expected an address"),
        ('[[notify]]\nurl = "a://b"\nsecret_env = "A B"', 'notify[0].secret_env: "A B" is no name'),
        ('[[notify]]\nurl = "a://b"\non = ["blocke"]', "notify[0].on[0]: expected one of"),
        ('[tasks.a]\n[routines.n]\ntask = "a"', "routines.n.schedule: a routine has either"),
        (
            '[tasks.a]\n[routines.n]\ntask = "a"\nschedule = "nightly"',
            "routines.n.schedule: expected five cron fields",
        ),
        (
            '[tasks.a]\n[routines.n]\ntask = "a"\nschedule = "0 2 * * *"\ntimezone = "Mars/Base"',
            'routines.n.timezone: this machine knows no time zone "Mars/Base"',
        ),
        (
            "[defaults]\ncaps = { cost_usd = nan }",
            "defaults.caps.cost_usd: expected float >= 0.01; got nan",
        ),
        ("[defaults]\ncaps = { cost_usd = inf }", "defaults.caps.cost_usd: expected float <="),
        ("[defaults]\ncaps = { time = inf }", "defaults.caps.time: expected a duration"),
        ("[defaults]\npriority = 101", "defaults.priority: expected int <= 100; got 101"),
        ('[gates.a]\ncommand = [""]', "gates.a.command[0]: is empty"),
        ('[gates.a]\ncommand = ["x"]\nprotect = [""]', "gates.a.protect[0]: is empty"),
        ('[gates.a]\ncommand = ["x"]\nenv = { "a b" = "c" }', 'gates.a.env: "a b" is no name'),
        ('[agents.a]\npass_env = ["1"]', 'agents.a.pass_env[0]: "1" is no name'),
        ('[agents.a]\nhome = "mine"', 'agents.a.home: expected one of private, shared; got "mine"'),
    ],
)
def test_a_wrong_value_is_refused_with_path_and_expectation(text, message):
    assert refused(text).message.startswith(f"truegreen.toml: {message}")


@each_row(
    ("text", "message"),
    [
        ("[defaults]\nmode = ", "truegreen.toml: not TOML: Invalid value (at end of document)"),
        ("a = 1\na = 2\n", "truegreen.toml: not TOML: Cannot overwrite a value (at line 2"),
        (b"a = '\xff'", "truegreen.toml: not UTF-8: byte 5 is wrong"),
        ("a = " + "[" * 10_000, "truegreen.toml: not TOML: "),
        ("a = " + "9" * 10_000, "truegreen.toml: not TOML: "),
    ],
)
def test_what_is_no_toml_is_refused_with_the_place(text, message):
    with pytest.raises(InvalidInput) as caught:
        read_toml(text, "truegreen.toml")
    assert caught.value.message.startswith(message)


def test_a_byte_order_mark_is_no_mistake():
    assert read_toml(b"\xef\xbb\xbf[qa]\nroles = []", "x").qa.roles == ()


@each_row(
    "data",
    [
        "",
        "{",
        b"\xff",
        b'"\xff"',
        "nonsense",
        "[" * 100_000,
        '"\\ud800"',
        '{"title": 1e999}',
        "9" * 5000,
    ],
)
def test_what_is_no_json_is_refused(data):
    with pytest.raises(InvalidInput, match=r"^body: "):
        read_json(data, Contract, "body")


@each_row("data", ["[]", "3", '"x"', "null", '{"title": "\ud800"}'])
def test_json_of_another_shape_is_refused(data):
    with pytest.raises(InvalidInput, match=r"^body: "):
        read_json(data, Contract, "body")


@every_field
def test_every_field_refuses_a_wrong_type(kind, name):
    document = {**MINIMAL[kind], name: [[{}]]}
    with pytest.raises(InvalidInput) as caught:
        read_json(json.dumps(document), kind, "body")
    assert caught.value.message.startswith(f"body: {name}")


@given(value=JSON_VALUES)
def test_every_field_takes_any_json_or_refuses_it(value):
    taken(value=value)


@every_field
def taken(kind, name, value):
    """A field takes the value and writes it as it was read, or refuses it."""
    document = {**MINIMAL[kind], name: value}
    try:
        read = edge.convert(document, kind, "body")
    except InvalidInput as error:
        assert error.message.startswith("body: ")  # noqa: PT017 - most values are refused, not all
    else:
        assert edge.convert(json.loads(edge.canonical(read)), kind, "again") == read


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(InvalidInput):
        read_toml(text, "x")
    with contextlib.suppress(InvalidInput):
        read_json(text, Contract, "x")


def test_a_refusal_quotes_no_more_than_a_line():
    error = refused(f'[defaults]\nmode = "{"x" * 10_000}"')
    assert len(error.message) < 250


@each_row(
    ("text", "words"),
    [
        ('[gates.t]\ncommand = "pytest -q"', 'expected array of words such as ["pytest","-q"]'),
        ("[agents.a]\nresume = \"go 'a b'\"", 'expected array of words such as ["go","a b"]'),
        ('[gates.t]\ncommand = "echo \'a b"', 'such as ["echo","\'a","b"]; got'),
        ('[tasks.t]\nrescue = ""', 'expected array, and [] for none; got ""'),
        ('[gates.t]\nprotect = "tests/**"', 'expected array such as ["tests/**"]; got'),
        ("[gates.t]\ncommand = 3", "gates.t.command: expected array; got 3"),
    ],
)
def test_a_text_where_an_array_belongs_is_shown_as_one(text: str, words: str):
    with pytest.raises(InvalidInput) as caught:
        read_toml(text, "truegreen.toml")
    assert words in caught.value.message
