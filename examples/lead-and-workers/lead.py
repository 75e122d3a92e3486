"""A scripted lead over MCP: hands out work, reads both axes, believes only one, ends the liar.

It speaks to `truegreen mcp` on standard input and output, as any MCP client does.
"""

import json
import os
import sys
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

HONEST = ["sh", "-c", "echo 42 > answer.txt"]
LIAR = ["sh", "-c", "echo all done"]
GATES = ["grep -q 42 answer.txt"]


async def call(lead: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
    """Use a tool; the document that it answers with."""
    result = await lead.call_tool(tool, arguments)
    document: dict[str, Any] = json.loads(result.content[0].text)  # type: ignore[union-attr]
    return document


async def work(lead: ClientSession) -> int:
    """Two workers, one of them a liar; which one, the checks say."""
    ended = {}
    for name, command in (("liar", LIAR), ("honest", HONEST)):
        task = await call(
            lead, "task_run", title=name, command=command, gates=GATES, max_attempts=1
        )
        print(f"{name}: run {task['run_status']}, task {task['task_status']} ({task['cell']})")
        ended[name] = task
    liar = ended["liar"]
    await call(lead, "task_terminate", task=liar["id"])
    sealed = await call(lead, "task_show", task=liar["id"])
    print(f"liar: sealed at {sealed['sealed_at']}")
    return 0 if ended["honest"]["task_status"] == "succeeded" else 1


async def main() -> int:
    """Start the server, and lead."""
    # The SDK hands on next to nothing of the environment; the server must know the store.
    server = StdioServerParameters(command="truegreen", args=["mcp"], env=dict(os.environ))
    async with (
        stdio_client(server) as (reading, writing),
        ClientSession(reading, writing) as lead,
    ):
        await lead.initialize()
        return await work(lead)


if __name__ == "__main__":
    sys.exit(anyio.run(main))
