"""The SDK's server around a visitor: tools listed by role, calls carried out one by one.

What goes wrong is a result with `isError` and the same error document as everywhere; the protocol
breaks for nobody. Nothing about tasks is decided here.
"""

from __future__ import annotations

import traceback
from contextlib import nullcontext
from typing import Any, TypeAlias

import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as Shown

from truegreen import __version__
from truegreen.errors import Broken, TruegreenError
from truegreen.faces.documents import Document, encoded, error_document
from truegreen.faces.mcp.asked import schema
from truegreen.faces.mcp.crowd import Caller, Crowd, Report
from truegreen.faces.mcp.seats import Waiting
from truegreen.faces.mcp.tools import TOOLS, Tool, tools_of
from truegreen.faces.mcp.visitors import Visitor
from truegreen.model import Cell, TaskStatus
from truegreen.outlets.mapping import down

NAME = "truegreen"
INSTRUCTIONS = (
    "truegreen keeps three facts apart: how a run ended, what its agent claims, and what"
    " independent checks found. Only task_status «succeeded» means that work is done. No tool sets"
    " a verdict."
)
TASK_STATE = "dev.truegreen/task-state"
Context: TypeAlias = ServerRequestContext[Any, Any]


def server_for(visitor: Visitor, crowd: Crowd | None = None, name: str = "") -> Server[Any]:
    """A server that does for a visitor what it may, in a crowd where it goes by a name."""
    company = crowd or Crowd()

    async def listed(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_shown(each) for each in tools_of(visitor.role)])

    async def called(context: Context, given: CallToolRequestParams) -> CallToolResult:
        steps = iter(range(1, 1 << 30))

        async def report(words: str) -> None:
            await context.session.report_progress(next(steps), None, words)

        try:
            with company.caller(name) as caller:
                return _told(await _done(company, caller, visitor, given, report))
        except TruegreenError as error:
            return _refused(error)
        except Exception as error:  # noqa: BLE001 - a defect of ours is no fault of the protocol
            traceback.print_exception(error)  # on stderr, which clients keep for people
            words = f"internal error: {type(error).__name__}; please report it"
            return _refused(Broken(words))

    return Server(
        NAME,
        version=__version__,
        title=NAME,
        instructions=INSTRUCTIONS,
        on_list_tools=listed,
        on_call_tool=called,
    )


async def _done(
    crowd: Crowd, caller: Caller, visitor: Visitor, given: CallToolRequestParams, report: Report
) -> Document:
    """What a call answers, at once or after a while."""
    known = TOOLS.get(given.name)
    with crowd.patience(caller) if known and known.waits else nullcontext():
        reply = await caller.do(lambda: visitor.call(given.name, given.arguments))
        if isinstance(reply, Waiting):
            return await caller.wait_for(reply, report)
        return reply


def _shown(tool: Tool) -> Shown:
    return Shown(
        name=tool.name,
        description=tool.says,
        input_schema=schema(tool.takes),
        annotations=ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destroys,
            idempotent_hint=tool.again,
            open_world_hint=False,
        ),
    )


def _told(document: Document, *, is_error: bool = False) -> CallToolResult:
    """A document twice: as the text that the command line gives, and as a value."""
    line = encoded(document)
    return CallToolResult(
        _meta=_task_state(document),
        content=[TextContent(type="text", text=line.decode().rstrip("\n"))],
        structured_content=msgspec.json.decode(line),
        is_error=is_error,
    )


def _task_state(document: Document) -> dict[str, Any] | None:
    """What MCP would call the state of the task, beside what it is."""
    if "task_status" not in document:
        return None
    cell = document.get("cell")
    status = TaskStatus(document["task_status"])
    return {TASK_STATE: down(status, Cell(cell) if cell else None).mcp}


def _refused(error: TruegreenError) -> CallToolResult:
    return _told(error_document(error), is_error=True)
