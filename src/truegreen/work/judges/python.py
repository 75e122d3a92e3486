"""The judge kind `python`: a function of a module, called in an interpreter of its own.

The module is looked for beside truegreen.toml and among the installed packages, never in the tree
that is judged. The child has the same bounds as a command; what it prints is not its answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Evaluator
from truegreen.work.judges.answer import Opinion, no_answer
from truegreen.work.judges.bench import Bench
from truegreen.work.judges.command import heard
from truegreen.work.judges.programs import theirs

HOST = os.path.join(os.path.dirname(os.path.realpath(__file__)), "python_host.py")
NOT_FOUND = 86
"""The host's own word: there is no such module or function."""


def ask(judge: Evaluator, document: Mapping[str, Any], bench: Bench) -> Opinion:
    """Call the function once."""
    folder = os.path.realpath(bench.at) if bench.at else ""
    if folder and theirs(folder, bench):
        why = f"{judge.python} would come from where the agent worked: have it elsewhere"
        return no_answer(why, lasting=True)
    words = (sys.executable, "-I", "-B", HOST, folder, judge.python)
    opinion = heard(judge, words, document, bench, {})
    missing = opinion.facts.get("exit_code") == NOT_FOUND
    return replace(opinion, lasting=True) if missing else opinion
