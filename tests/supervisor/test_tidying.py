"""Rooms of gates are removed when their supervisor is dead, and not a moment earlier."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from truegreen.supervisor.holder import holder_name, host_name
from truegreen.supervisor.place import Place
from truegreen.supervisor.recovery import tidy
from truegreen.work.tree import Identity


def test_only_the_rooms_of_the_dead_are_removed(tmp_path: Path):
    place = Place(str(tmp_path / "state"), (), {})
    with subprocess.Popen(["sleep", "60"]) as process:
        known = Identity.of(process.pid)
        process.kill()
    assert known is not None
    place.make_rooms("run_dead", f"{host_name()}{known.boot}/{known.pid}/{known.start}")
    place.make_rooms("run_alive", holder_name())
    place.make_rooms("run_elsewhere", f"other/1/{known.boot}/{known.pid}/{known.start}")
    place.make_rooms("run_unknown", "")
    place.make_review("tsk_dead", f"{host_name()}{known.boot}/{known.pid}/{known.start}")
    mine = place.make_review("tsk_alive", holder_name())
    tidy(place)
    assert sorted(os.listdir(place.rooms)) == ["run_alive", "run_elsewhere", "run_unknown"]
    assert os.listdir(place.reviews) == [os.path.basename(mine)]


def test_two_who_try_the_same_review_at_once_have_a_folder_each(tmp_path: Path):
    place = Place(str(tmp_path / "state"), (), {})
    assert len({place.make_review("tsk_1", holder_name()) for _ in range(2)}) == 2
