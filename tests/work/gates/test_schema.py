"""JSON Schema and JSON Pointer: what is not understood never passes."""

from __future__ import annotations

import pytest

from tests.table import each_row
from truegreen.work.gates.schema import Unusable, at_pointer, fault_of, same

NESTED = {"$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}},
                             "additionalProperties": False}}, "$ref": "#/$defs/node"}  # fmt: skip


@each_row(
    ("schema", "good", "bad"),
    [
        (True, 1, None),
        ({"type": "integer"}, 3, 3.5),
        ({"type": "integer"}, 3.0, True),
        ({"type": ["string", "null"]}, None, 1),
        ({"type": "number"}, 1.5, "1.5"),
        ({"required": ["a"]}, {"a": None}, {"b": 1}),
        ({"properties": {"a": {"type": "string"}}}, {"a": "x", "b": 1}, {"a": 1}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
        ({"additionalProperties": {"type": "boolean"}}, {"x": True}, {"x": 0}),
        ({"items": {"minimum": 3}}, [3, 4], [4, 2]),
        ({"enum": [1, "a"]}, "a", True),
        ({"const": 1}, 1.0, True),
        ({"minimum": 60}, 60, 59.9),
        ({"maximum": 60}, 60, 61),
        ({"exclusiveMinimum": 0}, 1, 0),
        ({"exclusiveMaximum": 9}, 8, 9),
        ({"minLength": 2, "maxLength": 3}, "äö", "x"),
        ({"maxLength": 3}, "abc", "abcd"),
        ({"minItems": 1, "maxItems": 2}, [1], []),
        ({"maxItems": 2}, [1, 2], [1, 2, 3]),
        ({"minProperties": 1}, {"a": 1}, {}),
        ({"pattern": "^v[0-9]+$"}, "v12", "version"),
        ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, 6, 4),
        ({"allOf": [{"minimum": 1}, {"maximum": 3}]}, 2, 4),
        ({"oneOf": [{"minimum": 3}, {"maximum": 5}]}, 6, 4),
        ({"not": {"type": "string"}}, 1, "x"),
        (NESTED, {"next": {"next": {}}}, {"next": {"prev": {}}}),
        (
            {"definitions": {"n": {"type": "null"}}, "items": {"$ref": "#/definitions/n"}},
            [None],
            [0],
        ),
    ],
)
def test_keywords_hold_what_they_say(schema, good, bad):
    assert fault_of(good, schema) == ""
    if schema is not True:
        assert fault_of(bad, schema)


def test_a_schema_of_false_refuses_everything():
    assert fault_of({}, False)


@each_row(
    "schema",
    [
        {"format": "email"},
        {"properties": {"never_there": {"uniqueItems": True}}},
        {"anyOf": [{"type": "string"}, {"if": {}}]},
        {"typ": "object"},
        {"type": "strnig"},
        {"type": []},
        {"minimum": "3"},
        {"required": "a"},
        {"pattern": "("},
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "#"},
        {"anyOf": []},
        {"properties": []},
        {"items": [{"type": "string"}]},
        [],
        "x",
    ],
)
def test_a_schema_that_is_not_understood_is_unusable_and_passes_nothing(schema):
    with pytest.raises(Unusable):
        fault_of({"a": 1}, schema)


def test_an_explosion_of_choices_ends():
    twice = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n - 1}"}] * 2} for n in range(1, 30)}
    schema = {"$defs": {"d0": {"const": 1}, **twice}, "$ref": "#/$defs/d29"}
    with pytest.raises(Unusable, match="too deep or too large"):
        fault_of(2, schema)


def test_a_long_text_is_not_matched_against_a_pattern():
    with pytest.raises(Unusable, match="too long"):
        fault_of("a" * 5000, {"pattern": "(a+)+$"})


@each_row(
    ("pointer", "value"),
    [("", {"a/b": [{"~": 1}]}), ("/a~1b", [{"~": 1}]), ("/a~1b/0/~0", 1)],
)
def test_pointers_lead_where_the_standard_says(pointer, value):
    assert at_pointer({"a/b": [{"~": 1}]}, pointer) == value


@each_row("pointer", ["/x", "/a/1", "/a/-", "/a/00", "/a/0/x", "/a/+0"])
def test_a_pointer_to_nothing_is_told_apart_from_null(pointer):
    assert at_pointer({"a": [None]}, "/a/0") is None
    with pytest.raises(KeyError):
        at_pointer({"a": [None]}, pointer)


def test_a_pointer_without_a_slash_is_no_pointer():
    with pytest.raises(Unusable):
        at_pointer({"a": 1}, "a")


def test_numbers_and_truth_are_not_mixed_up():
    assert same([1, {"a": 2.0}], [1.0, {"a": 2}])
    assert not same([True], [1])
    assert not same(0, False)
