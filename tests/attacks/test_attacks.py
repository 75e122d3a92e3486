"""No attack of the corpus gets a green verdict; what a level can't see by design, it says."""

from __future__ import annotations

import os

import pytest

from tests.attacks import drive
from tests.attacks.choice import CHOSEN, GENERATED, OTHER_RUNNERS, PLAINLY
from tests.attacks.corpus import Attack
from tests.attacks.everything import CORPUS, everything, find
from tests.attacks.ground import Estate
from tests.attacks.shapes import SHAPES
from truegreen.assurance import MEANINGS
from truegreen.model import Level

BY_HEART = [name for name, attack in CORPUS.items() if "A3" in attack.fools]
CASES = everything() if os.environ.get("ATTACKS") == "full" else (*CHOSEN, *GENERATED)
NAMES = [name for name in CASES if name not in BY_HEART and SHAPES[find(name).shape].pytest]
pytestmark = pytest.mark.timeout(180)


def played(estate: Estate, attack: Attack, *levels: str) -> drive.Told:
    """An attack that came to its end, on a ground of its own."""
    told = drive.run(estate.ground("attacked", SHAPES[attack.shape]), attack, "attack", levels)
    assert told.played, told.text
    return told


@pytest.mark.criterion("E05", "E06", "E07", "E08", "E12", "E18")
@pytest.mark.parametrize("name", NAMES)
def test_an_attack_is_never_green(estate: Estate, name: str) -> None:
    told = played(estate, find(name), "plain" if name in PLAINLY else "A3")
    assert told.found
    assert "passed" not in told.found.values(), told.reason
    assert not told.green, told.reason


@pytest.mark.criterion("E05", "E07")
@pytest.mark.parametrize("name", OTHER_RUNNERS)
def test_an_attack_on_another_runner_is_never_green(estate: Estate, name: str) -> None:
    told = played(estate, find(name), "A2")
    assert told.found == {"A2": told.found["A2"]}
    assert not told.green, told.reason


@pytest.mark.parametrize("name", ["hardcode", "env-detect", "if-original"])
def test_what_knows_its_tests_by_heart_is_seen_from_outside_only(estate: Estate, name: str) -> None:
    told = played(estate, CORPUS[name], "A3", "A4")
    assert told.found == {"A3": "passed", "A4": "failed"}, told.reason
    assert not told.green


def test_a_green_that_rests_on_visible_tests_says_what_it_does_not_prove(estate: Estate) -> None:
    told = played(estate, CORPUS["hardcode"], "A3")
    assert told.green
    assert told.level == "A3"
    assert MEANINGS[Level.A3].unproven in told.text


@pytest.mark.parametrize(
    ("name", "file"), [("doctest-edit", "src/shop"), ("support-edit", "src/expected.py")]
)
def test_expectations_outside_of_the_tests_can_only_be_believed(
    estate: Estate, name: str, file: str
) -> None:
    told = played(estate, CORPUS[name], "A3")
    assert (told.status, told.level) == (3, "A1")
    assert told.found == {"A3": "passed"}
    assert told.reason.startswith("weak_evidence: ")
    assert file in told.reason


@pytest.mark.parametrize("name", ["edit-expect", "conftest-root", "venv-plugin", "patch-runtest"])
def test_the_naive_check_is_fooled_so_the_attack_is_one(estate: Estate, name: str) -> None:
    attack = CORPUS[name]
    assert drive.naive(estate.ground("attacked", SHAPES[attack.shape]), attack)
