"""What the other tests of this folder rest on: a store with everything in it, and eyes that see."""

from __future__ import annotations

import asyncio
import re
from functools import partial

from tests.browser.conftest import Stored, Visit, out_of_sight
from tests.browser.looking import CONTRAST, NAMES, SHAPE, wrong_with
from tests.browser.serving import Site
from tests.browser.watching import Visitor
from truegreen.model import AgentStatus, Cell, InboxState, RunStatus, TaskStatus
from truegreen.outlets.answers import badges
from truegreen.record.ledger.lists import Filter


def test_one_of_everything_is_in_the_store(gallery: Site, stored: Stored):
    ledger = gallery.ledger
    tasks = ledger.page(Filter(), limit=500).tasks
    assert {task.status for task in tasks} == set(TaskStatus)
    # Nothing leads to `kept` yet: it takes a verdict that passed before somebody stopped the run.
    assert {task.cell for task in tasks} == {*Cell, None} - {Cell.KEPT}
    assert {badge for task in tasks for badge in badges(task)} == {
        *("rescued", "overridden", "falsified", "unverified", "terminated"),
        *("regression_only", "noop"),
    }
    assert {agent.status for agent in ledger.agents(limit=100)} == set(AgentStatus)
    states = {waiting.item.state for waiting in ledger.inbox_all(limit=100)}
    assert states == set(InboxState)
    said = {label.partition("|")[0] for name, label in ledger.meters() if name == "claims"}
    assert said == {"confirmed", "contradicted", "unverifiable"}
    runs = {run.status for task in tasks for run in ledger.dossier(task.id).runs}
    assert runs >= set(RunStatus) - {RunStatus.LOST, RunStatus.MISSED}
    assert {state for _, state, _ in ledger.posts_counted()} == {"waiting", "given_up"}


WRONG = {
    "console.error('broken')": "broken",
    "setTimeout(() => { throw new Error('thrown') })": "thrown",
    "alert('asked')": "asked",
    "fetch('/nowhere')": "404",
    "new Image().src = 'http://127.0.0.1:9/x.png'": "another host: http://127.0.0.1:9",
    "document.body.setAttribute('style', 'color: red')": "style-src",
}


def _is_remembered(visitor: Visitor, words: str) -> bool:
    return any(words in fault for fault in visitor.remembered)


def test_whatever_goes_wrong_on_a_page_is_seen(gallery: Site, visit: Visit):
    visitor = visit(gallery, alone=True)
    visitor.open("/")
    assert visitor.trouble() == []
    for script, seen in WRONG.items():
        visitor.page.evaluate(f"() => {{ {script} }}")
        visitor.until(partial(_is_remembered, visitor, seen))
        visitor.trouble()


def test_between_tests_no_loop_is_in_the_way(visit: Visit, gallery: Site):
    visit(gallery)

    async def anything() -> int:
        return 4

    with out_of_sight():
        assert asyncio.run(anything()) == 4


SPOILED = {
    "main.style.minWidth = '3000px'": "wide in a window of",
    "main.style.marginLeft = '-50px'": "stands out of the window",
    "link.style.position = 'relative'; link.style.left = '60px'": "lies over another",
    "h1.style.cssText = 'width: 20px; overflow: hidden; white-space: nowrap'": "is cut off",
    "main.style.maxWidth = '200px'": "the main part is 200",
    "main.replaceChildren()": "next to nothing to read",
    "link.replaceChildren(); link.textContent = ''": "has no name",
    "document.querySelector('input').labels[0].replaceWith(document.querySelector('input'))": (
        "has no name"
    ),
    "main.append(document.createElement('img'))": "a picture without words",
    "document.querySelector('svg').removeAttribute('aria-hidden')": "a drawing without words",
    "h1.tabIndex = 3": "jumps the queue",
    "h1.id = 'main'": "two things are called #main",
    "h1.replaceWith('Tasks')": "0 first headings",
    "h1.insertAdjacentHTML('afterend', '<h3>x</h3>')": "a heading skips a level",
    "main.id = ''; main.outerHTML = '<div>' + main.innerHTML + '</div>'": "0 of: main part",
    "document.querySelector('nav').removeAttribute('aria-label')": "a way around without a name",
    "document.querySelector('caption').remove()": "a table without a caption",
    "document.querySelector('th').removeAttribute('scope')": "a header that says not of what",
    "document.querySelector('ul').append(document.createElement('p'))": "a list with something",
    "document.querySelector('#stale').removeAttribute('aria-live')": "nobody hears",
    "h1.style.color = 'rgba(128, 128, 128, 0.8)'": "contrast",
    "main.style.opacity = '0.3'": "contrast",
    "document.title = ''": "no title",
}


ON = """const h1 = document.querySelector("h1"), main = document.querySelector("main"),
  link = document.querySelector(".nav a");"""


def test_a_spoiled_page_is_found_out(gallery: Site, visit: Visit):
    page = visit(gallery).open("/tasks?search=fix")
    good = re.sub("<script.*?</script>", "", page.content(), flags=re.DOTALL)
    for spoil, words in SPOILED.items():
        page.set_content(good)
        page.evaluate(f"() => {{ {ON} {spoil} }}")
        found = wrong_with(page, *NAMES, *SHAPE, *CONTRAST)
        assert any(words in each for each in found), f"{spoil}: {found}"
