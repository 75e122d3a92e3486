"""Whether an agent can think through the gateway: said before anything starts, with the way on."""

from __future__ import annotations

from collections.abc import Mapping

from truegreen.contract import Contract
from truegreen.errors import InvalidInput
from truegreen.work.agents import Adapter
from truegreen.work.agents.pointing import detour


def check_gateway(contract: Contract, adapter: Adapter, environ: Mapping[str, str]) -> None:
    """Refuse what could not think through the gateway, before anything starts."""
    if not contract.gateway.enabled:
        return
    from truegreen.doors.gateway.apis import (  # noqa: PLC0415 - a room of its own
        APIS,
        Upstream,
        upstream_of,
    )

    if not adapter.apis:
        raise InvalidInput(f"{adapter.name} can't be pointed at the gateway: --no-gateway")
    if not contract.network:
        message = (
            "an agent without a network can't reach the gateway: network = true, or no gateway"
        )
        raise InvalidInput(message, path="network")
    only = adapter.apis if adapter.program else ()
    switch = next((name for api in only if (name := detour(api, environ))), "")
    if switch:
        message = f"{switch} leads past the gateway: unset it, or run without the gateway"
        raise InvalidInput(message, path=switch)
    found = {api: upstream_of(APIS[api], environ) for api in adapter.apis}
    if not any(isinstance(each, Upstream) for each in found.values()):
        missing = "; or ".join(str(each) for each in found.values())
        message = f"the gateway has no key of a model for {adapter.name!r} to think with: {missing}"
        raise InvalidInput(message, path="gateway")
