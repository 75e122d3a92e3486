"""Whether a tool chain is still what was taken: our copies, and the programs beside them.

Only says what is wrong. That nothing passes then is for those to see to who run with it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from msgspec.structs import replace

from truegreen.work.toolchain import Pin, Toolchain
from truegreen.work.toolchain.pinning import discard
from truegreen.work.toolchain.programs import same
from truegreen.work.toolchain.scanning import contents_of, hash_of, scan


def checked(tools: Toolchain) -> Toolchain:
    """The tool chain with what is wrong with its copies; they count as used from now.

    One that is not what it was is given up: nobody else is to run with it either.
    """
    faults = tuple(fault for pin in tools.pins if (fault := _fault(pin)))
    return replace(tools, faults=faults)


def _fault(pin: Pin) -> str:
    try:
        tree = scan(pin.copy)
        whole = tree.signature == pin.seal or contents_of(tree) == pin.digest
    except OSError:
        whole = False
    if not os.path.lexists(pin.copy):
        return f"our copy of {pin.path} from before the agent is gone ({pin.copy}): open a new task"
    if not whole:
        discard(pin.copy)
        return f"our copy of {pin.path} from before the agent was changed: open a new task"
    with contextlib.suppress(OSError):  # a copy that can't be touched is used all the same
        os.utime(os.path.dirname(pin.copy))
    return ""


def changed(tools: Toolchain, programs: Iterable[str] | None = None) -> list[str]:
    """Programs that are not what they were when the task was created, all or some of them."""
    asked = tools.programs if programs is None else programs
    return [
        path for path in asked if path in tools.programs and not same(path, tools.programs[path])
    ]


def rebuilt(pin: Pin) -> bool:
    """Whether the original of what may be a product is another one now."""
    try:
        return hash_of(pin.path) != hash_of(pin.copy)
    except OSError:
        return True
