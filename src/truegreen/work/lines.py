"""A stream of bytes cut into lines: as many at once as there are, or one by one."""

from __future__ import annotations

from collections.abc import Callable

LINE_BYTES = 8 * 1024 * 1024
"""A longer line is given on with exactly so many bytes; the rest of it is dropped."""
_SHORT = 128


class Lines:
    """Bytes in, whole lines out: as many at once as there are."""

    def __init__(self, block: Callable[[bytes], object]) -> None:
        """`block` gets one line or more, with the ends between them and not the last one."""
        self._block = block
        self._open: list[bytes] = []
        self._length = 0

    def take(self, data: bytes) -> None:
        """Some bytes, from anywhere in the stream."""
        last = data.rfind(b"\n")
        begin = 0
        if last >= 0 and self._open:
            begin = data.index(b"\n") + 1
            self._add(data[: begin - 1])
            self._close()
        if begin <= last:
            self._block(data[begin:last])  # no line is longer than what is read at once
        self._add(data[last + 1 :])

    def _add(self, piece: bytes) -> None:
        piece = piece[: LINE_BYTES - self._length]
        if piece:
            self._open.append(piece)
            self._length += len(piece)

    def _close(self) -> None:
        whole = b"".join(self._open)
        self._open, self._length = [], 0
        self._block(whole)

    def finish(self) -> None:
        """The last line may lack its end."""
        if self._open:
            self._close()


def by_line(line: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """A taker of blocks from a taker of lines.

    Long lines are found one after the other, at memory speed; at the first short one all the rest
    is split, which is faster for those.
    """

    def take(block: bytes) -> None:
        at = 0
        while (end := block.find(b"\n", at)) >= at + _SHORT:
            line(block[at:end])
            at = end + 1
        for each in block[at:].split(b"\n") if end >= 0 else (block[at:],):
            line(each)

    return take
