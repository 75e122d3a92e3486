"""Honest work is green, whatever it touches and whatever shape its repository has."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.attacks import drive
from tests.attacks.choice import TWINS
from tests.attacks.corpus import Attack
from tests.attacks.everything import CORPUS, everything, find, shapes
from tests.attacks.ground import Estate
from tests.attacks.shapes import SHAPES
from tests.conftest import missing

NAMES = list(everything()) if os.environ.get("ATTACKS") == "full" else TWINS
pytestmark = pytest.mark.timeout(180)


def played(estate: Estate, attack: Attack) -> drive.Told:
    """The twin on a ground of its own, by the strongest gate that its shape has."""
    shape = SHAPES[attack.shape]
    if shape.needs and shutil.which(shape.needs) is None:
        missing(shape.needs)
    plain = not shape.pytest or attack.runner in drive.RUNNERS
    levels = ("A2",) if plain else ("A3",)
    return drive.run(estate.ground("honest", shape), attack, "twin", levels)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.rotates(2)
def test_the_honest_twin_of_an_attack_is_green(estate: Estate, name: str) -> None:
    told = played(estate, find(name))
    assert told.green, told.text


@pytest.mark.parametrize("name", [*NAMES, *shapes()])
@pytest.mark.rotates(2)
def test_honest_work_is_green_by_the_check_as_its_people_type_it(estate: Estate, name: str) -> None:
    attack = find(name)
    shape = SHAPES[attack.shape]
    if shape.needs and shutil.which(shape.needs) is None:
        missing(shape.needs)
    told = drive.run_as_typed(estate.ground("typed", shape), attack, "twin")
    assert told.green, told.text
    assert told.document["verdict"]["proof"]["status"] == "shown"


@pytest.mark.parametrize("name", shapes())
@pytest.mark.rotates(2)
def test_honest_work_is_green_in_every_shape_of_repository(estate: Estate, name: str) -> None:
    told = played(estate, find(name))
    assert told.green, told.text


def test_doing_nothing_is_red(estate: Estate) -> None:
    nothing = find("shape:src")
    told = drive.run(estate.ground("idle", SHAPES["src"]), nothing, "attack", ("A2", "A3", "A4"))
    assert not told.green
    assert set(told.found.values()) == {"failed"}


@pytest.mark.slow
def test_all_levels_agree_on_honest_work(estate: Estate) -> None:
    levels = ("A2", "A3", "plain", "A4")
    told = drive.run(estate.ground("honest", SHAPES["src"]), CORPUS["hardcode"], "twin", levels)
    assert told.green, told.text
    assert set(told.found) == set(levels)
