"""No attack of the corpus gets a green verdict; what a level can't see by design, it says."""

from __future__ import annotations

import os

import pytest

from tests.attacks import drive
from tests.attacks.choice import CHOSEN, PLAINLY
from tests.attacks.corpus import Attack
from tests.attacks.everything import CORPUS, everything, find
from tests.attacks.ground import Estate
from tests.attacks.shapes import SHAPES

NAMES = list(everything()) if os.environ.get("ATTACKS") == "full" else CHOSEN
BY_HEART = [name for name, attack in CORPUS.items() if "A3" in attack.fools]
FOREIGN = [name for name, attack in CORPUS.items() if attack.runner in drive.RUNNERS]


def played(estate: Estate, attack: Attack, *levels: str) -> drive.Told:
    ground = estate.ground("attacked", SHAPES[attack.shape])
    return drive.run(ground, attack, "attack", levels)


@pytest.mark.criterion("E05", "E06", "E07", "E08", "E12", "E18")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in BY_HEART])
def test_an_attack_is_never_green(estate: Estate, name: str) -> None:
    attack = find(name)
    if not SHAPES[attack.shape].pytest:
        pytest.skip("no pytest in this shape: see the other runners")
    told = played(estate, attack, "plain" if name in PLAINLY else "A3")
    assert not told.green, told.reason
    assert "passed" not in told.found.values(), told.reason
