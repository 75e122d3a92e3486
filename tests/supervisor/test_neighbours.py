"""Two tasks in one work tree: whoever began second says so, also when both began at once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tests.stage import staged
from truegreen.supervisor import corridor
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.prepared import prepare
from truegreen.supervisor.watch import Watch


class Heard(Watch):
    """Keeps what it is warned of."""

    def __init__(self, warned: list[str]) -> None:
        self._warned = warned

    def warn(self, words: str) -> None:
        self._warned.append(words)


def test_of_two_that_begin_in_the_same_moment_one_is_told_of_the_other(
    tmp_path: Path, own_tools: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = staged(f"sqlite://{tmp_path}/record.db", tmp_path)
    together = threading.Barrier(2, timeout=20)

    def prepared(*given: Any) -> Any:
        """Neither has begun before both have looked around."""
        found = prepare(*given)
        together.wait()
        return found

    monkeypatch.setattr(corridor, "prepare", prepared)
    warned: list[str] = []
    tasks = [stage.add("sleep 1; echo acted >> acts") for _ in range(2)]
    seats = [
        threading.Thread(
            target=Supervisor(stage.ledger, stage.place, Heard(warned)).attempt, args=[task.id]
        )
        for task in tasks
    ]
    for seat in seats:
        seat.start()
    for seat in seats:
        seat.join()
    stage.ledger.close()
    assert any(words.endswith("too: each is judged by both") for words in warned), warned
