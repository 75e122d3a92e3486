"""Everything that the description allows, and everything that it forbids, asked at random.

Requests are made from the description alone; answers are held against it. Nothing may be a 5xx.
That what is allowed is also accepted is held for reading alone: a deed that is spelled well may
still be refused by the record. Who gets in is held by another test, for all kinds of nobodies.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.openapi import from_dict
from schemathesis.specs.openapi import checks as openapi_checks

from tests.faces.web.conftest import HERE, Web
from tests.record.lives import OPERATOR, brought
from truegreen.faces.web.routes import API, ROUTES, Nothing, Route
from truegreen.model import Role, TaskStatus

load_all_checks()
SERVED = [route for route in ROUTES if route.is_api]
TAKERS = [
    route
    for route in SERVED
    if "{" in route.path or route.query is not Nothing or route.body not in (None, Nothing)
]
"""Those that can be asked wrongly at all."""
ALWAYS = [
    not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]
REFUSES = openapi_checks.negative_data_rejection
TOO_MUCH = (413, 431)
EXAMPLES = 300 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 8
SETTINGS = settings(
    max_examples=EXAMPLES,
    suppress_health_check=list(HealthCheck),
    phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
)


def name_of(route: Route) -> str:
    return f"{route.method} {route.path.removeprefix(API)}"


@cache
def understood(served: bytes) -> Any:
    """A description that is served, read once: it is the same for every route."""
    description = json.loads(served)
    del description["security"], description["components"]["securitySchemes"]  # others get in
    return from_dict(description)


class Fuzzed:
    """One route, whoever may ask it, and things that are there to be asked about."""

    def __init__(self, web: Web, route: Route) -> None:
        self.web, self.route = web, route
        served = web.client(Role.OPERATOR).get(f"{API}/openapi.json").content
        self.operation = understood(served)[route.path][route.method]
        ticket, agent = web.agent()
        # Nobody would end what follows a live run.
        over = web.ledger.dossier(web.tasks[TaskStatus.SUCCEEDED]).runs[0].id
        self.secret = web.secret(Role.OPERATOR)
        if Role.OPERATOR not in route.roles and not route.public:
            self.secret = agent
        self.parts = {
            "task": st.sampled_from([*web.tasks.values(), "tsk_0"]),
            "run": st.just(over if route.path.endswith("/log") else ticket.run),
            "agent": st.sampled_from([each.id for each in web.ledger.agents()]),
            "item": st.sampled_from([each.item.id for each in web.ledger.inbox()]),
            "token": st.just(web.ledger.mint_token(Role.VIEWER, "w", actor=OPERATOR)[0].id),
            "routine": st.sampled_from(["nightly", "rounds"]),
            "sha256": st.just("0" * 64),
        }

    def asked(self, case: Any, checks: list[Any]) -> None:
        """Ask it, and hold the answer against the description."""
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {self.secret}"}
        case.cookies = {}
        sent = case.as_transport_kwargs(base_url=HERE)
        sent = {name: value for name, value in sent.items() if value is not None}
        sent.pop("cookies", None)
        if isinstance(sent.get("data"), bytes | str):
            sent["content"] = sent.pop("data")
        answer = self.web.client().request(**sent)
        if answer.status_code in TOO_MUCH:  # refused, in words that schemathesis takes for a yes
            checks = [each for each in checks if each is not REFUSES]
        case.validate_response(answer, checks=checks)


@pytest.fixture
def quiet(web: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    """Streams that end at once."""

    async def nothing(_after: object) -> AsyncIterator[Any]:
        return
        yield

    monkeypatch.setattr(web.house.live, "events", nothing)
    brought(web.ledger, TaskStatus.FAILED)
    return web


@pytest.mark.parametrize("route", SERVED, ids=name_of)
def test_what_the_description_allows_is_answered_as_it_says(quiet: Web, route: Route):
    fuzzed = Fuzzed(quiet, route)

    @SETTINGS
    @given(data=st.data())
    def ask(data: st.DataObject) -> None:
        draw: Any = data.draw
        case = draw(fuzzed.operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
        if case.path_parameters and draw(st.integers(0, 3)):
            for name in case.path_parameters:
                case.path_parameters[name] = draw(fuzzed.parts[name])
        reads = [openapi_checks.positive_data_acceptance] if route.method == "GET" else []
        fuzzed.asked(case, [*ALWAYS, *reads])

    ask()


@pytest.mark.parametrize("route", TAKERS, ids=name_of)
def test_what_the_description_forbids_is_refused(quiet: Web, route: Route):
    fuzzed = Fuzzed(quiet, route)
    checks = [*ALWAYS, REFUSES]

    @SETTINGS
    @given(case=fuzzed.operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def ask(case: Any) -> None:
        fuzzed.asked(case, checks)

    ask()
