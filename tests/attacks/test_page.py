"""The page about assurance lists the corpus as it is, and the levels as the program means them."""

from __future__ import annotations

from tests.attacks import choice, table
from tests.attacks.everything import CORPUS, everything
from truegreen.assurance import MEANINGS


def test_the_page_lists_the_corpus() -> None:
    assert sorted(table.listed()) == sorted(CORPUS)


def test_the_page_says_what_each_level_proves() -> None:
    text = table.PAGE.read_text()
    for level, meaning in MEANINGS.items():
        assert f"| {level} *{meaning.word}* | {meaning.means} |" in text


def test_every_attack_that_is_chosen_is_there() -> None:
    names = {*choice.CHOSEN, *choice.OTHER_RUNNERS, *choice.TWINS, *choice.GENERATED}
    assert names <= everything().keys()


def test_the_corpus_is_as_large_as_the_page_says() -> None:
    text = table.PAGE.read_text()
    assert f"{len(CORPUS)} attacks are listed" in text
    assert f"{len(everything()) - len(CORPUS)} more" in text
