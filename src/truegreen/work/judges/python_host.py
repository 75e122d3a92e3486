"""Calls a judge that is a Python function, in an interpreter of its own, and writes its answer.

Stands alone: it runs by its path and imports nothing of ours. The answer goes where only this file
can write: whatever the function prints goes to the errors.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

NOT_FOUND = 86
"""The exit code that says: there is no such module or function."""


def main(folder: str, entry: str) -> int:
    """Call the function with the document on stdin; its answer is a JSON object."""
    answers = os.dup(1)
    os.dup2(2, 1)
    with open(0, "rb") as source:
        document = json.load(source)
    os.open(os.devnull, os.O_RDONLY)  # stdin was closed, so this is the new one
    if folder:
        sys.path.insert(0, folder)
    module, _, name = entry.partition(":")
    try:
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except (ImportError, AttributeError) as error:
        sys.stderr.write(f"{entry} can't be loaded: {error}\n")
        return NOT_FOUND
    found = function(document)
    if isinstance(found, int | float):
        found = {"score": found}
    data = json.dumps(found).encode()
    while data:
        data = data[os.write(answers, data) :]
    return 0


if __name__ == "__main__":
    try:
        status = main(*sys.argv[1:])
    except BaseException:  # noqa: BLE001 - sys.exit(0) in a judge is no answer either
        traceback.print_exc()
        status = 1
    sys.stderr.flush()
    os._exit(status)  # no exit handler of the judge's has a say in the status
