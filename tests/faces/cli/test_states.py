"""`states`: the words of both axes, printed from the one table."""

from __future__ import annotations

import re

import pytest

from tests.faces.conftest import Run
from truegreen.model import CELLS, DETAILS, PALETTE, RUNS, TaskStatus
from truegreen.record.lifecycle import EDGES, FINAL, SETTLED, TARGETS


@pytest.mark.criterion("C19")
def test_names_meanings_colours_and_edges_are_printed(tg: Run):
    text = tg("states").out
    for status, look in PALETTE.items():
        line = next(line for line in text.splitlines() if f"{look.glyph} {status} " in line)
        assert look.meaning in line
        assert re.search(r" +".join(map(str, look.rgb)), line)
        assert ("final" in line.split()) == (status in FINAL)
        assert ("settled" in line.split()) == (status in SETTLED - FINAL)
    for edge in EDGES:
        expected = [edge.move, edge.target, ", ".join(edge.sources), edge.by]
        assert expected in [re.split("  +", line.strip()) for line in text.splitlines()]
    for word, run in RUNS.items():
        assert re.search(f"{word} +{run.light} +{re.escape(run.meaning)}", text)


@pytest.mark.criterion("C19")
def test_the_diagram_has_every_edge_and_no_other(tg: Run):
    lines = tg("states", "--mermaid").out.splitlines()
    assert lines[0] == "stateDiagram-v2"
    edges = [re.fullmatch(r"    (\w+) --> (\w+): (\w+)", line) for line in lines]
    drawn = {(edge[1], edge[3], edge[2]) for edge in edges if edge}
    assert drawn == {(source, move, target) for (source, move), target in TARGETS.items()}
    assert "    [*] --> queued: open" in lines
    assert {line for line in lines if line.endswith("--> [*]")} == {
        f"    {status} --> [*]" for status in FINAL
    }
    known = (
        r"stateDiagram-v2|    (?:\[\*\]|\w+) --> (?:\[\*\]|\w+)(?:: \w+)?"
        r"|    classDef \w+ fill:#[0-9a-f]{6},color:#[0-9a-f]{6}|    class \w+ \w+"
    )
    assert [line for line in lines if not re.fullmatch(known, line)] == []


def test_the_document_has_every_word(tg: Run):
    document = tg("states", "--json").json()
    assert [status["status"] for status in document["statuses"]] == list(TaskStatus)
    for status in document["statuses"]:
        look = PALETTE[TaskStatus(status["status"])]
        assert (status["glyph"], tuple(status["rgb"])) == (look.glyph, look.rgb)
        moves = {move for source, move in TARGETS if source == status["status"]}
        assert set(status["allowed"]) == moves
    assert [edge["event"] for edge in document["edges"]] == [edge.move for edge in EDGES]
    assert {cell["cell"] for cell in document["cells"]} == set(CELLS)
    assert document["exit_reasons"] == {reason: list(words) for reason, words in DETAILS.items()}


def test_the_diagram_as_json_is_the_same_text(tg: Run):
    assert tg("states", "--mermaid", "--json").json()["mermaid"] == tg("states", "--mermaid").out
