"""The description says what is served, all of it, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.faces.web.conftest import Web
from tests.faces.web.test_api import DOCUMENTS, asked, lived_in
from tests.table import each_row
from truegreen.errors import TruegreenError
from truegreen.faces.web.answering import Malformed
from truegreen.faces.web.api.logs import NoSuchPart
from truegreen.faces.web.guarding import TooLarge
from truegreen.faces.web.openapi import EXAMPLES, description
from truegreen.faces.web.routes import API, ROUTES, Nothing
from truegreen.model import Role

SERVED = [route for route in ROUTES if route.is_api]


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    found = description()["paths"]
    return {
        (method.upper(), path): each
        for path, methods in found.items()
        for method, each in methods.items()
    }


def test_every_route_is_described_and_no_other():
    assert set(operations()) == {(route.method, route.path) for route in SERVED}
    ids = [each["operationId"] for each in operations().values()]
    assert len(ids) == len(set(ids))


def test_the_description_is_served_to_those_who_may_read(web: Web):
    answer = web.client(Role.VIEWER).get(f"{API}/openapi.json")
    assert answer.json() == msgspec.json.decode(msgspec.json.encode(description()))
    assert answer.json()["openapi"] == "3.1.0"
    assert web.client().get(f"{API}/openapi.json").status_code == 401


@pytest.mark.parametrize("given", ["", "0.1", "1", "0.", "x"])
def test_what_a_listener_may_have_seen_is_described_as_it_is_taken(web: Web, given: str):
    named = operations()["GET", f"{API}/events"]["parameters"]
    (seen,) = (each["schema"] for each in named if each["name"] == "Last-Event-ID")
    answer = web.client(Role.VIEWER).head(f"{API}/events", headers={"Last-Event-ID": given})
    described = Draft202012Validator(seen).is_valid(given)
    assert answer.status_code == (200 if described else 422)


def test_everything_that_is_referred_to_is_there():
    text = msgspec.json.encode(description()).decode()
    known = description()["components"]["schemas"]
    for name in set(re.findall(r'"#/components/schemas/([^"]+)"', text)):
        assert name in known
    for schema in known.values():
        Draft202012Validator.check_schema(schema)


@each_row("route", SERVED, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_says_who_may_what_it_takes_and_what_goes_wrong(route: Any):
    operation = operations()[route.method, route.path]
    assert operation["summary"] == route.summary
    assert operation["x-roles"] == sorted(route.roles)
    assert (operation.get("security") == []) is route.public
    assert str(route.status) in operation["responses"]
    for status, answer in operation["responses"].items():
        if status.startswith(("4", "5")):
            schema = answer["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Refusal"}
    named = {each["name"]: each for each in operation["parameters"]}
    for part in re.findall(r"\{(\w+)\}", route.path):
        assert named[part]["in"] == "path"
        assert named[part]["required"]
    for field in msgspec.structs.fields(route.query):
        assert named[field.name]["required"] is field.required
    assert ("Idempotency-Key" in named) is (route.method == "POST")
    assert ("requestBody" in operation) is (route.body not in (None, Nothing))
    if not route.public:
        assert {"401", "403", "410", "421"} <= operation["responses"].keys()


def test_every_example_is_one(web: Web):
    bodies = {route.body.__name__: route.body for route in SERVED if route.body}
    assert EXAMPLES.keys() <= bodies.keys()
    for name, example in EXAMPLES.items():
        msgspec.convert(example, bodies[name])
    shown = [
        each["requestBody"]["content"]["application/json"]
        for each in operations().values()
        if "application/json" in each.get("requestBody", {}).get("content", {})
    ]
    assert sum("example" in each for each in shown) >= len(EXAMPLES)


def test_answers_are_valid_by_the_schemas_alone(web: Web):
    """As a client sees it that knows nothing but the description."""
    whole = description()
    parts, client = lived_in(web), web.client(Role.OPERATOR)
    for route in DOCUMENTS:
        for path in asked(route, parts):
            answer = client.get(path)
            told = operations()[route.method, route.path]["responses"][str(answer.status_code)]
            schema = {**told["content"]["application/json"]["schema"]}
            schema["components"] = whole["components"]
            Draft202012Validator(schema).validate(answer.json())


def test_the_manual_names_every_route_and_every_code():
    text = Path(__file__).parents[3].joinpath("docs", "manual", "http.md").read_text()
    for route in SERVED:
        assert f"`{route.method} {route.path.removeprefix(API)}`" in text, route.path
    for kind in every(TruegreenError):
        if kind not in (TruegreenError, Malformed, NoSuchPart, TooLarge):
            assert f"`{kind.code}`" in text, kind.code


def every(family: type[TruegreenError]) -> list[type[TruegreenError]]:
    return [each for kind in family.__subclasses__() for each in (kind, *every(kind))]
