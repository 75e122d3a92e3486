"""What the agent of a run wrote: all of it, a part, or as it comes.

It is for programs and for saving: to an operator byte for byte as it is kept, to others without
what would wake somebody. Nothing of it is ever shown as a page.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import AsyncIterator
from typing import IO, Annotated, Any, BinaryIO

import anyio
import anyio.to_thread
import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from truegreen.app import place_of
from truegreen.errors import InvalidInput, NotFound
from truegreen.faces.web.answering import error_response, is_known
from truegreen.faces.web.api.lasting import Welcome
from truegreen.faces.web.api.masking import Mask, masked
from truegreen.faces.web.api.sending import chunks
from truegreen.faces.web.api.taking import Taken
from truegreen.faces.web.routes import API, READERS, Visit, route
from truegreen.model import Role
from truegreen.record.rows import Run
from truegreen.tuples import NamedTuple

LOOK_SECONDS = 0.25
_CHUNK = 1 << 16
_MASKED_AT_ONCE = 2
_MEDIA = "text/plain; charset=utf-8"
_PART, _NOT_MODIFIED, _NOT_THERE = 206, 304, 416
_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))")
_NAMES = {False: "stdout.log", True: "stderr.log"}


class LogQuery(Taken, frozen=True):
    """Which output, and whether to wait for more of it."""

    stderr: bool = False
    follow: bool = False
    offset: Annotated[int, Meta(ge=0, le=1 << 53, description="where to begin to follow")] = 0


class Log(NamedTuple):
    """The output of a run, where it lies on this machine."""

    run: Run
    path: str

    @property
    def live(self) -> bool:
        """Whether more may come."""
        return self.run.exit_reason is None

    @property
    def nameable(self) -> bool:
        """Whether a conversation may still come to light."""
        return self.live and self.run.agent_key is not None


class Span(NamedTuple):
    """A part of a file: from here, so many bytes."""

    start: int
    size: int


class NoSuchPart(InvalidInput):
    """The part that was asked for lies outside of the file."""

    http_status = _NOT_THERE


class Kept(NamedTuple):
    """Output that is ready to be sent: all of it, as whoever asks may see it."""

    file: IO[bytes]
    size: int
    tag: str


@route("GET", f"{API}/runs/{{run}}/log", READERS, query=LogQuery, media="text/plain")
async def log(visit: Visit, run: str, query: LogQuery) -> Response:
    """What the agent of a run wrote; a part of it by Range, or as it comes with follow=1.

    Only an operator gets it as it is kept. For others names of conversations are masked in the
    whole of it, and parts and offsets are parts of that.
    """
    found = await anyio.to_thread.run_sync(_find, visit, run, query)
    if query.follow:
        headers = _headers(found, query)
        if visit.request.method == "HEAD":
            return Response(headers=headers, media_type=_MEDIA)
        made = StreamingResponse(_following(visit, found, query.offset), 200, headers, _MEDIA)
        return visit.house.live.seats.kept(visit.actor, made)
    return _once(visit.request, found, query, await _kept(visit, found))


def _find(visit: Visit, run: str, query: LogQuery) -> Log:
    ledger, config = visit.house.ledger, visit.house.config
    found, _ = ledger.run(ledger.find("run", run))
    facts: dict[str, Any] = msgspec.json.decode(found.facts) if found.facts else {}
    # Written down when the run ends; it may have run under another state directory.
    known = str(facts.get("log") or "")
    folder = os.path.dirname(known) if known else place_of(config).run_dir(found.id)
    return Log(found, os.path.join(folder, _NAMES[query.stderr]))


def _opened(log: Log) -> BinaryIO:
    """The file, if it is one: whatever may have been put in its place is not waited for."""
    try:
        handle = os.open(log.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        words = "has written nothing yet" if log.live else "has no such output on this machine"
        raise NotFound(f"{log.run.id} {words}", kind="log") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotFound(f"{log.run.id} has no such output on this machine", kind="log")
    return open(handle, "rb")


def _headers(log: Log, query: LogQuery) -> dict[str, str]:
    name = f"{log.run.id}.{_NAMES[query.stderr]}"
    return {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}


# --- once


async def _kept(visit: Visit, log: Log) -> Kept:
    file = await anyio.to_thread.run_sync(_opened, log)
    status = os.fstat(file.fileno())
    tag = f"{status.st_mtime_ns:x}-{status.st_size:x}"
    if visit.actor.role is Role.OPERATOR:
        return Kept(file, status.st_size, f'"{tag}"')
    mask = Mask(visit.house.ledger, log.run.id)
    with file:
        await mask.settle(nameable=log.nameable)
        made = await anyio.to_thread.run_sync(
            masked, file, status.st_size, mask, limiter=_limiter(visit.request)
        )
    return Kept(*made, f'"{tag}-{len(mask.names):x}"')


def _limiter(request: Request) -> anyio.CapacityLimiter:
    """To mask all of a long output for a part of it must not take every thread."""
    kept: anyio.CapacityLimiter | None = getattr(request.app.state, "masking", None)
    if kept is None:
        kept = request.app.state.masking = anyio.CapacityLimiter(_MASKED_AT_ONCE)
    return kept


def _once(request: Request, log: Log, query: LogQuery, kept: Kept) -> Response:
    headers = {**_headers(log, query), "Accept-Ranges": "bytes", "ETag": kept.tag}
    headers["Cache-Control"] = "private, no-cache"
    headers["Vary"] = "Authorization, Cookie"
    try:
        span = _span(request, kept.size, kept.tag)
    except NoSuchPart as error:
        kept.file.close()
        refused = error_response(error)
        refused.headers["Content-Range"] = f"bytes */{kept.size}"
        return refused
    if is_known(request, kept.tag):
        kept.file.close()
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    part = span or Span(0, kept.size)
    headers["Content-Length"] = str(part.size)
    if span:
        last = span.start + span.size - 1
        headers["Content-Range"] = f"bytes {span.start}-{last}/{kept.size}"
    kept.file.seek(part.start)
    return StreamingResponse(
        chunks(kept.file, part.size), _PART if span else 200, headers=headers, media_type=_MEDIA
    )


def _span(request: Request, size: int, tag: str) -> Span | None:
    """The part that is asked for; None for all of it. What we don't understand is not a part."""
    found = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if found is None or request.headers.get("if-range", tag) != tag:
        return None
    first, last, tail = (int(part) if part else None for part in found.groups())
    if tail is not None:
        first, last = max(0, size - tail), size - 1
    start, end = first or 0, size - 1 if last is None else min(last, size - 1)
    if last is not None and first is not None and tail is None and last < first:
        return None
    if start >= size or tail == 0:
        raise NoSuchPart(f"there are {size} bytes", path="range")
    return Span(start, end - start + 1)


# --- as it comes


async def _following(visit: Visit, log: Log, offset: int) -> AsyncIterator[bytes]:
    """Everything from an offset until the run has ended, as long as the reader may read it."""
    is_operator = visit.actor.role is Role.OPERATOR
    mask = None if is_operator else Mask(visit.house.ledger, log.run.id, offset)
    file: BinaryIO | None = None
    welcome = Welcome(visit)
    try:
        while await welcome.lasts():
            # Asked before the rest is read: what came before the end is in the file by then.
            ended = await anyio.to_thread.run_sync(_has_ended, visit, log)
            if file is None:
                file = await anyio.to_thread.run_sync(_begun, log, 0 if mask else offset)
            async for chunk in _more(file, mask, nameable=log.nameable and not ended):
                yield chunk
                if not await welcome.lasts():
                    return
            if ended:
                yield mask.flush() if mask else b""
                return
            await anyio.sleep(LOOK_SECONDS)
    finally:
        if file:
            file.close()


async def _more(
    file: BinaryIO | None, mask: Mask | None, *, nameable: bool
) -> AsyncIterator[bytes]:
    """What stands in a file by now, from where it was read to."""
    left = os.fstat(file.fileno()).st_size - file.tell() if file else 0
    if mask and left > 0:
        await mask.settle(nameable=nameable)
    while file and left > 0:
        chunk = await anyio.to_thread.run_sync(file.read, min(_CHUNK, left))
        if not chunk:
            return
        left -= len(chunk)
        given = mask.feed(chunk) if mask else chunk
        if given:
            yield given


def _has_ended(visit: Visit, log: Log) -> bool:
    return visit.house.ledger.run(log.run.id)[0].exit_reason is not None


def _begun(log: Log, offset: int) -> BinaryIO | None:
    try:
        file = _opened(log)
    except NotFound:
        return None
    file.seek(offset)
    return file
