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


def ready(name: str) -> Attack:
    """A twin whose shape can be tested here."""
    attack = find(name)
    needs = SHAPES[attack.shape].needs
    if needs and shutil.which(needs) is None:
        missing(needs)
    return attack


@pytest.mark.parametrize("name", [*NAMES, *shapes()])
def test_honest_work_is_green_by_the_check_as_its_people_type_it_and_by_the_strongest_gate(
    estate: Estate, name: str
) -> None:
    """Gates judge on their own: `--before` and `--protect` of the strongest are in the file."""
    attack = ready(name)
    shape = SHAPES[attack.shape]
    named = () if attack.runner in drive.RUNNERS else ("tests" if shape.pytest else "copy",)
    told = drive.run_as_typed(estate.ground("honest", shape), attack, "twin", *named)
    assert told.green, told.text
    proof = told.document["verdict"]["proof"]
    assert proof["status"] == "shown"
    assert len(proof["by"]) == len(named) + 1, "each gate shows the work by itself"


@pytest.mark.parametrize("name", [name for name in NAMES if find(name).runner in drive.RUNNERS])
def test_the_honest_twin_of_an_attack_on_a_runner_is_green_by_a_protected_check(
    estate: Estate, name: str
) -> None:
    attack = ready(name)
    told = drive.run(estate.ground("honest", SHAPES[attack.shape]), attack, "twin", ("A2",))
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
