"""Whoever follows a link arrives: on GitHub, and on the site that the nav describes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.markdown import DOCS, ROOT, anchors, links, pages
from tests.table import each_row

OUTER = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
EVERY = [*OUTER, *pages()]
NAV = re.findall(r"^ +- .*?: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)

every_page = each_row("path", EVERY, ids=[str(path.relative_to(ROOT)) for path in EVERY])


def own(path: Path) -> list[tuple[str, str]]:
    """Links to files of ours, with their anchors."""
    found = [link.partition("#") for link in links(path.read_text()) if "://" not in link]
    return [(file, anchor) for file, _, anchor in found if not file.startswith("mailto:")]


@every_page
def test_every_link_leads_to_a_file_and_a_heading(path: Path):
    for file, anchor in own(path):
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), f"{file} is not there"
        assert not anchor or anchor in anchors(target.read_text()), f"no heading {file}#{anchor}"


@every_page
def test_a_page_of_the_site_links_to_the_site_alone(path: Path):
    if path in OUTER:
        return
    outside = [f for f, _ in own(path) if f and DOCS not in (path.parent / f).resolve().parents]
    assert outside == [], "name the file as code instead: the site does not have it"


def test_the_nav_lists_every_page_once():
    assert sorted(NAV) == sorted(str(path.relative_to(DOCS)) for path in pages())


def test_every_page_can_be_reached_from_the_map():
    seen, found = set(), [DOCS / "index.md"]
    while found:
        page = found.pop()
        if page not in seen and page.suffix == ".md" and page.exists():
            seen.add(page)
            found += [(page.parent / file).resolve() for file, _ in own(page) if file]
    assert set(pages()) - seen == set()


def test_every_page_opens_with_its_title():
    for path in pages():
        assert path.read_text().startswith("# "), path


def test_a_broken_link_and_a_missing_heading_are_seen():
    text = "# A\n\n## What it *does*\n\n[b](b.md#x) `[c](c.md)`\n\n```sh\n[d](d.md)\n```\n"
    assert links(text) == ["b.md#x"]
    assert anchors(text) == {"a", "what-it-does"}
