"""Serves one visitor on standard input and output, until the client closes them."""

from __future__ import annotations

import anyio
from mcp.server.stdio import stdio_server

from truegreen.faces.mcp.server import server_for
from truegreen.faces.mcp.visitors import Visitor


def serve(visitor: Visitor) -> None:
    """Answer until there is nobody to answer."""
    anyio.run(_served, visitor)


async def _served(visitor: Visitor) -> None:
    server = server_for(visitor)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
