"""JSON Schema and JSON Pointer, as far as they can be judged honestly: a closed vocabulary.

A keyword outside the vocabulary makes a schema unusable, wherever it stands: ignoring it would let
a document pass that its author meant to refuse. Nothing here opens a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from truegreen.contract.reading import shown

DEPTH = 64
STEPS = 200_000
PATTERN_CHARACTERS = 4096

_ANNOTATIONS = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
    }
)


class Unusable(Exception):
    """The schema can't be applied; nothing is said about the document."""


def same(one: Any, other: Any) -> bool:
    """Equal as JSON is: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


def at_pointer(document: Any, pointer: str) -> Any:
    """The value at a JSON Pointer (RFC 6901); KeyError where there is none."""
    if pointer and not pointer.startswith("/"):
        raise Unusable(f"{pointer!r} is no JSON Pointer; it starts with /")
    value = document
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]{0,8}", key):
            if int(key) >= len(value):
                raise KeyError(pointer)
            value = value[int(key)]
        else:
            raise KeyError(pointer)
    return value


def fault_of(document: Any, schema: Any) -> str:
    """What is wrong with a document under a schema, with its place; empty if nothing is."""
    _known(schema, 0)
    return _Examination(schema).fault(document, schema, "", 0)


# --- is the schema one that can be applied?


def _known(schema: Any, depth: int) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise Unusable("a schema is an object, true or false")
    if depth > DEPTH:
        raise Unusable("the schema is nested too deep")
    for word, value in schema.items():
        if word in _SHAPES and not _SHAPES[word](value):
            raise Unusable(f"the keyword {word!r} has a value that it can't have")
        if word not in _SHAPES and word not in _ANNOTATIONS:
            raise Unusable(f"the keyword {word[:80]!r} is not supported")
        for part in _schemas_in(word, value):
            _known(part, depth + 1)


def _schemas_in(word: str, value: Any) -> list[Any]:
    """The schemas within a keyword's value."""
    if word in _IN_MAPS:
        return list(value.values())
    if word in _IN_LISTS:
        return list(value)
    return [value] if word in _INSIDE else []


_TYPES: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}


def _is_type(value: Any) -> bool:
    words = value if isinstance(value, list) else [value]
    return bool(words) and all(isinstance(word, str) and word in _TYPES for word in words)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _is_size(value: Any) -> bool:
    return _TYPES["integer"](value) and value >= 0


def _is_pattern(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(re.compile(value))
    except re.error:
        return False


_IN_MAPS = frozenset({"properties", "$defs", "definitions"})
_IN_LISTS = frozenset({"anyOf", "allOf", "oneOf"})
_INSIDE = frozenset({"items", "not", "additionalProperties"})
_SHAPES: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_IN_MAPS, lambda value: isinstance(value, dict)),
    **dict.fromkeys(_IN_LISTS, lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(_INSIDE, lambda value: isinstance(value, dict | bool)),
    "$ref": lambda value: isinstance(value, str),
    "type": _is_type,
    "enum": lambda value: isinstance(value, list),
    "const": lambda _: True,
    "required": _is_names,
    "minimum": _TYPES["number"],
    "maximum": _TYPES["number"],
    "exclusiveMinimum": _TYPES["number"],
    "exclusiveMaximum": _TYPES["number"],
    "minLength": _is_size,
    "maxLength": _is_size,
    "minItems": _is_size,
    "maxItems": _is_size,
    "minProperties": _is_size,
    "maxProperties": _is_size,
    "pattern": _is_pattern,
}


# --- is the document right?

Bound = tuple[str, Callable[[Any], bool], Callable[[Any], Any], Callable[[Any, Any], bool], str]

_BOUNDS: tuple[Bound, ...] = (
    ("minimum", _TYPES["number"], lambda v: v, lambda v, b: v >= b, "is less than"),
    ("maximum", _TYPES["number"], lambda v: v, lambda v, b: v <= b, "is more than"),
    ("exclusiveMinimum", _TYPES["number"], lambda v: v, lambda v, b: v > b, "is not more than"),
    ("exclusiveMaximum", _TYPES["number"], lambda v: v, lambda v, b: v < b, "is not less than"),
    ("minLength", _TYPES["string"], len, lambda v, b: v >= b, "characters are fewer than"),
    ("maxLength", _TYPES["string"], len, lambda v, b: v <= b, "characters are more than"),
    ("minItems", _TYPES["array"], len, lambda v, b: v >= b, "items are fewer than"),
    ("maxItems", _TYPES["array"], len, lambda v, b: v <= b, "items are more than"),
    ("minProperties", _TYPES["object"], len, lambda v, b: v >= b, "members are fewer than"),
    ("maxProperties", _TYPES["object"], len, lambda v, b: v <= b, "members are more than"),
)


class _Examination:
    """One document under one schema, in a bounded number of steps."""

    def __init__(self, schema: Any) -> None:
        self._whole = schema
        self._steps = 0
        self._targets: dict[str, Any] = {}

    def fault(self, value: Any, schema: Any, place: str, depth: int) -> str:
        """The first thing that is wrong, or nothing."""
        self._steps += 1
        if depth > DEPTH or self._steps > STEPS:
            raise Unusable("the document is too deep or too large for its schema")
        if isinstance(schema, bool):
            return "" if schema else f"{place or 'the document'} must not be there"
        return (
            self._of_value(value, schema, place)
            or self._of_parts(value, schema, place, depth + 1)
            or self._of_choices(value, schema, place, depth + 1)
        )

    def _of_value(self, value: Any, schema: dict[str, Any], place: str) -> str:
        where = place or "the document"
        if "type" in schema:
            words = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
            if not any(_TYPES[word](value) for word in words):
                return f"{where} is {shown(value)}, not {' or '.join(words)}"
        if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
            return f"{where} is {shown(value)}, none of {shown(schema['enum'])}"
        if "const" in schema and not same(value, schema["const"]):
            return f"{where} is {shown(value)}, not {shown(schema['const'])}"
        for word, applies, measure, right, says in _BOUNDS:
            if word in schema and applies(value) and not right(measure(value), schema[word]):
                return f"{where}: {shown(measure(value))} {says} {shown(schema[word])}"
        if "pattern" in schema and isinstance(value, str):
            return self._of_pattern(value, schema["pattern"], where)
        return ""

    @staticmethod
    def _of_pattern(value: str, pattern: str, where: str) -> str:
        if len(value) > PATTERN_CHARACTERS:
            raise Unusable(f"{where} is too long for a pattern ({len(value)} characters)")
        return "" if re.search(pattern, value) else f"{where} does not match {shown(pattern)}"

    def _of_parts(self, value: Any, schema: dict[str, Any], place: str, depth: int) -> str:
        if isinstance(value, list) and "items" in schema:
            for n, item in enumerate(value):
                if fault := self.fault(item, schema["items"], f"{place}/{n}", depth):
                    return fault
        if not isinstance(value, dict):
            return ""
        missing = [name for name in schema.get("required", ()) if name not in value]
        if missing:
            return f"{place or 'the document'} has no {shown(missing[0])}"
        known = schema.get("properties", {})
        for name, part in value.items():
            rule = known[name] if name in known else schema.get("additionalProperties", True)
            if fault := self.fault(part, rule, f"{place}/{name}", depth):
                return fault
        return ""

    def _of_choices(self, value: Any, schema: dict[str, Any], place: str, depth: int) -> str:
        where = place or "the document"
        referred = [self._referred(schema["$ref"])] if "$ref" in schema else []
        for part in [*referred, *schema.get("allOf", ())]:
            if fault := self.fault(value, part, place, depth):
                return fault
        for word in ("anyOf", "oneOf"):
            faults = [self.fault(value, part, place, depth) for part in schema.get(word, ())]
            fitting = faults.count("")
            if word in schema and (fitting == 0 or (word == "oneOf" and fitting > 1)):
                hint = f" ({faults[0]})" if not fitting else ""
                return f"{where} fits {fitting} of the {len(faults)} schemas of {word}{hint}"
        if "not" in schema and not self.fault(value, schema["not"], place, depth):
            return f"{where} fits what it must not"
        return ""

    def _referred(self, reference: str) -> Any:
        if reference in self._targets:
            return self._targets[reference]
        if not reference.startswith("#"):
            raise Unusable(f"the reference {reference[:80]!r} leads out of the schema")
        try:
            target = at_pointer(self._whole, reference[1:])
        except KeyError:
            raise Unusable(f"the reference {reference[:80]!r} leads nowhere") from None
        _known(target, 0)
        return self._targets.setdefault(reference, target)
