"""An agent that is Python code: a graph of steps with a state, as LangGraph and its kin have it.

It needs no library of ours. Inside a run it says what became of its work in the file that
`$TRUEGREEN_RESULT` names, or asks for an approval with `truegreen checkpoint`. Both are words:
the gate decides.
"""

import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

State = dict[str, Any]
Step = Callable[[State], str]


def read(state: State) -> str:
    """Where a model would plan, this one reads."""
    state["numbers"] = [float(line) for line in Path("numbers.txt").read_text().splitlines()]
    return "compute" if state["numbers"] else "give_up"


def compute(state: State) -> str:
    """The work; `TRICK` makes it a lie."""
    state["mean"] = 0.0 if os.environ.get("TRICK") else statistics.mean(state["numbers"])
    return "write"


def write(state: State) -> str:
    """What it leaves."""
    report = {"mean": state["mean"], "of": len(state["numbers"])}
    Path("report.json").write_text(json.dumps(report))
    declare("succeeded", "the report is written")
    return ""


def give_up(_: State) -> str:
    """To say so is better than to go on."""
    declare("blocked", "numbers.txt is empty")
    return ""


def declare(status: str, reason: str) -> None:
    """The claim. It never decides; outside of a run there is no file for it."""
    place = os.environ.get("TRUEGREEN_RESULT")
    if place:
        Path(place).write_text(json.dumps({"task_status": status, "reason": reason}))


GRAPH: dict[str, Step] = {"read": read, "compute": compute, "write": write, "give_up": give_up}


def main() -> None:
    """From step to step until there is none."""
    state: State = {}
    step = "read"
    while step:
        step = GRAPH[step](state)


if __name__ == "__main__":
    main()
