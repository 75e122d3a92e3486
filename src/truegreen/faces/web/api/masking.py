"""Output for those who may only look: without the names that conversations are taken up by.

A name may stand in the output a moment before the record has it; whoever masks waits so long.
Secrets have been masked before anything was written; known shapes of them are masked once more.
"""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import IO

import anyio
import anyio.to_thread

from truegreen.errors import Unavailable
from truegreen.record.ledger import Ledger
from truegreen.work.redact import Redactor

NAME_SECONDS = 1.0
"""So long after it was written a name is in the record: a supervisor looks five times a second."""
_LOOK_SECONDS = 0.1
_CHUNK = 1 << 18
_IN_MEMORY = 1 << 20


class Mask:
    """A run's output in, the same without names and secrets out."""

    def __init__(self, ledger: Ledger, run: str, skip: int = 0) -> None:
        """So many bytes of what comes out are left away."""
        self._ledger, self._run = ledger, run
        self._redactor = Redactor()
        self._skip = skip
        self.names: frozenset[str] = frozenset()

    def look(self) -> None:
        """Learn the names that have come to light."""
        names = self._ledger.names_in(self._run)
        self._redactor.learn(name.encode() for name in names - self.names)
        self.names |= names

    def feed(self, data: bytes) -> bytes:
        """What can be given on now."""
        return self._cut(self._redactor.feed(data))

    def flush(self) -> bytes:
        """The rest, at the end."""
        return self._cut(self._redactor.flush())

    def _cut(self, out: bytes) -> bytes:
        left = out[self._skip :]
        self._skip -= len(out) - len(left)
        return left

    async def settle(self, *, nameable: bool) -> None:
        """Wait until the record must have the name of what has been written by now."""
        until = anyio.current_time() + NAME_SECONDS
        await anyio.to_thread.run_sync(self.look)
        while nameable and not self.names and anyio.current_time() < until:
            await anyio.sleep(min(_LOOK_SECONDS, NAME_SECONDS))
            await anyio.to_thread.run_sync(self.look)


def masked(file: IO[bytes], size: int, mask: Mask) -> tuple[IO[bytes], int]:
    """So much of a file without what is masked, in a nameless one, and how much that is."""
    out: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed by whoever sends it
    try:
        left = size
        while left and (chunk := file.read(min(_CHUNK, left))):
            left -= len(chunk)
            out.write(mask.feed(chunk))
        out.write(mask.flush())
        total = out.tell()
        out.seek(0)
    except BaseException as error:
        out.close()
        if isinstance(error, OSError):
            raise Unavailable(f"the output can't be masked: {error.strerror}") from None
        raise
    return out, total
