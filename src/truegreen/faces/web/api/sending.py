"""Bytes of a file on their way out, piece by piece, read in a thread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import IO

import anyio.to_thread

_CHUNK = 1 << 18


async def chunks(file: IO[bytes], size: int) -> AsyncIterator[bytes]:
    """So many bytes of a file from where it stands; closes it."""
    try:
        left = size
        while left:
            chunk = await anyio.to_thread.run_sync(file.read, min(_CHUNK, left))
            if not chunk:
                return
            left -= len(chunk)
            yield chunk
    finally:
        file.close()
