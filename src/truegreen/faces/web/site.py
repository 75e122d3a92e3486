"""The application: every route that is written down, behind one guard, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as Path
from starlette.types import Receive, Scope, Send

from truegreen.contract.reading import learn_types
from truegreen.errors import NotFound, TruegreenError
from truegreen.faces.web import api, pages
from truegreen.faces.web.answering import Endpoint, defect, endpoint, error_response
from truegreen.faces.web.guarding import Guard
from truegreen.faces.web.house import House
from truegreen.faces.web.identity import identify
from truegreen.faces.web.routes import ROUTES, Route, is_for_programs

__all__ = ["api", "pages", "site"]
_NO_METHOD = 405


def site(house: House) -> Starlette:
    """The web face of one store."""
    learn_types()
    by_path: dict[str, dict[str, Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method] = route
    app = Starlette(
        routes=[Path(path, Methods(house, routes)) for path, routes in by_path.items()],
        middleware=[Middleware(Guard, hosts=house.address.hosts)],
        exception_handlers={HTTPException: _unknown(house), Exception: _broken(house)},
        lifespan=_lifespan(house),
    )
    app.router.redirect_slashes = False  # a path that is nearly right is another path
    return app


class Methods:
    """One path, all its methods: a refused one is told which there are, if it may know."""

    def __init__(self, house: House, routes: dict[str, Route]) -> None:
        shown = pages.error_page(house)
        self._house = house
        self._methods: dict[str, Endpoint] = {
            method: endpoint(house, route, shown) for method, route in routes.items()
        }
        if "GET" in self._methods:
            self._methods["HEAD"] = self._methods["GET"]
        self._is_public = any(route.public for route in routes.values())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the method that was asked for."""
        request = Request(scope, receive, send)
        made = self._methods.get(request.method, self._no_method)
        response = await made(request)
        await response(scope, receive, send)

    async def _no_method(self, request: Request) -> Response:
        try:
            if not self._is_public:
                await anyio.to_thread.run_sync(identify, self._house.ledger, request)
        except TruegreenError as error:
            return _shown(self._house, request, error)
        raise HTTPException(_NO_METHOD, headers={"Allow": ", ".join(sorted(self._methods))})


def _shown(house: House, request: Request, error: TruegreenError) -> Response:
    if is_for_programs(request.url.path):
        return error_response(error)
    return pages.error_page(house)(request, error)


def _unknown(house: House) -> Any:
    async def say(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        headers = error.headers if isinstance(error, HTTPException) else None
        words = "no such method here" if status == _NO_METHOD else "there is nothing here"
        response = _shown(house, request, NotFound(words))
        response.status_code = status
        response.headers.update(headers or {})
        return response

    return say


def _broken(house: House) -> Any:
    async def say(request: Request, error: Exception) -> Response:
        return _shown(house, request, defect(error))

    return say


def _lifespan(house: House) -> Any:
    @asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        yield
        house.live.close()

    return living
