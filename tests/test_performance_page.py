"""The page of measurements says what was measured, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import goals, page, plots, results
from benchmarks.__main__ import SUITES, main
from benchmarks.goals import AIMS, UNKNOWN, Limit, limit_of, standings
from benchmarks.measure import (
    At,
    Figure,
    Goal,
    Spread,
    at_most,
    exponent,
    never_above,
    ratio_at_least,
)
from benchmarks.plots import Bar, Curve
from benchmarks.report import Part
from benchmarks.results import Run
from tests.table import each_row

ROOT = Path(__file__).parents[1]
FACTS = {
    "command": "python -m benchmarks stream",
    "when": "2026-11-17 01:00 UTC",
    "machine": "2 cores, x86_64, Linux",
    "load average": "1.0, 1.0, 1.0 (at the end)",
    "Python": "3.11.7",
    "SQLite": "3.54.1",
    "PostgreSQL": "not measured",
    "stores": "SQLite, tmpfs",
    "scale": "full",
}
SLOW = Figure(
    "plain text: parsed, redacted, hashed, stored",
    [138.0, 130.0, 141.0],
    "MB/s",
    (Goal("≥", 250.0), ratio_at_least(0.4)),
    [1000.0, 1100.0, 900.0],
    "cat to cat, into a file",
    note="a note",
    at=At("Growth", "events", "megabytes", 4),
)


def _run(*parts: Part, **facts: str) -> Run:
    return Run(FACTS | facts, list(parts))


def _text(*runs: Run) -> str:
    return page.files(results.newest(runs, list(SUITES)), "docs/performance.md")[
        "docs/performance.md"
    ]


# -- the committed page -----------------------------------------------------------------------


@pytest.mark.criterion("P10")
def test_the_committed_page_is_what_the_committed_runs_give(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    runs = results.newest(results.read(results.kept()), list(SUITES))
    wanted = page.files(runs, "docs/performance.md")
    assert {path: Path(path).read_text() for path in wanted} == wanted
    pictures = {os.path.join("docs", page.PICTURES, p) for p in os.listdir("docs/img/performance")}
    assert pictures == wanted.keys() - {"docs/performance.md"}


@pytest.mark.criterion("P10")
def test_every_aim_stands_on_the_committed_page_with_what_was_measured():
    runs = results.newest(results.read(results.kept()), list(SUITES))
    rows = (ROOT / "docs" / "performance.md").read_text().splitlines()
    stands = standings(part for run in runs for part in run.parts)
    assert [stand.aim.name for stand in stands if stand.word == "not measured"] == []
    for stand in stands:
        (row,) = [row for row in rows if row.startswith(f"| {stand.aim.name} |")]
        assert row.endswith(f"| {stand.word} |")


def test_every_goal_that_was_measured_belongs_to_one_aim():
    for run in results.read(results.kept()):
        for part in run.parts:
            for figure in (figure for figure in part.figures if figure.goals):
                found = [
                    stand.aim.name
                    for stand in standings([part])
                    if any(verdict.figure is figure for verdict in stand.verdicts)
                ]
                assert len(found) == 1, (part.name, figure.what, found)


def test_every_aim_names_suites_that_there_are():
    assert {suite for aim in AIMS for suite, _ in aim.lines} <= SUITES.keys()
    assert [aim.name for aim in AIMS][:15] == [f"P{n}" for n in range(1, 16)]


def test_every_limit_is_of_an_aim():
    assert {limit.aim for limit in goals.limits()} <= {aim.name for aim in AIMS}


# -- runs -------------------------------------------------------------------------------------


def test_a_run_is_read_as_it_was_written(tmp_path: Path):
    open_one = Figure("worst wait", [1.0], "ms", (never_above(100.0),), beside=[])
    run = _run(Part("stream", "P8: a pipe.", [SLOW], 1.5), Part("writers", "P3.", [open_one], 2))
    results.write(str(tmp_path / "run.json"), run)
    assert results.read([str(tmp_path / "run.json")]) == [run]


def test_of_each_suite_the_newest_run_wins_with_its_own_command_and_load():
    old = _run(
        Part("stream", "P8.", [SLOW._replace(what="old")], 1),
        Part("hook", "P5.", [Figure("hook", [1.0], "ms", (at_most(2),))], 1),
    )
    new = _run(
        Part("stream", "P8.", [SLOW._replace(what="new")], 1),
        when="2026-11-18 01:00 UTC",
        command="python -m benchmarks stream --quick",
        **{"load average": "9.0, 9.0, 9.0 (at the end)"},
    )
    for runs in ((old, new), (new, old)):
        text = _text(*runs)
        assert "| new [a note] |" in text
        assert "| old [a note] |" not in text
        assert "`python -m benchmarks stream --quick`, 2026-11-18 01:00 UTC" in text
        assert "load average 9.0, 9.0, 9.0 (at the end): **taken under load**" in text
        assert text.count("taken under load") == 1
        assert "| hook | 1 ms |" in text


# -- what is met ------------------------------------------------------------------------------


def test_a_missed_goal_is_said_with_what_limits_it():
    fast = SLOW._replace(what="one line", samples=[500.0, 500.0, 500.0])
    text = _text(_run(Part("stream", "P8.", [fast, SLOW, fast], 1)))
    assert "138 MB/s (≥ 250); 0.138x cat to cat, into a file (≥ 0.4x) | MISSED |" in text
    (missed,) = [line for line in text.splitlines() if line.startswith("- **P8**")]
    assert "the shapes of known tokens" in missed


def test_of_lines_with_the_same_goal_the_worst_is_shown():
    lines = [Figure(f"terminate {n}", [float(n)], "ms", (at_most(20),)) for n in (5, 15, 9)]
    (row,) = [
        line
        for line in _text(_run(Part("terminate", "P12.", lines, 1))).splitlines()
        if line.startswith("| P12 |")
    ]
    assert "| terminate 15: 15 ms (≤ 20); supervision: not measured |" in row


def test_a_missed_goal_without_a_reason_is_said_as_such():
    (aim,) = [aim for aim in AIMS if aim.name == "P8"]
    assert limit_of(aim, SLOW, [Limit("P8", "one line", "no"), Limit("P7", "", "no")]) == UNKNOWN
    assert limit_of(aim, SLOW, [Limit("P8", "plain", "this")]) == "this"


def test_an_aim_is_met_only_when_all_of_it_was_measured():
    fast = SLOW._replace(samples=[500.0, 500.0, 500.0])
    lives = Figure("lives, SQLite", [5.0], "/s", (ratio_at_least(0.6),), [5.0], "raw SQL")
    peer = Figure("lives, SQLite", [5.0], "/s", (ratio_at_least(3),), (), "DBOS", "not measured: x")

    def words(*parts: Part) -> dict[str, str]:
        return {stand.aim.name: stand.word for stand in standings(parts)}

    assert words(Part("stream", "", [fast], 1))["P8"] == "met"
    assert words(Part("stream", "", [fast, SLOW], 1))["P8"] == "MISSED"
    assert words()["P8"] == "not measured"
    ledger, prefect = Part("ledger", "", [lives], 1), Part("prefect", "", [lives], 1)
    assert words(ledger, prefect)["P1"] == "partly measured"
    assert words(ledger, prefect, Part("peers", "", [peer], 1))["P1"] == "partly measured"
    assert words(Part("peers", "", [peer], 1))["P1"] == "not measured"
    known = peer._replace(beside=[1.0])
    assert words(ledger, prefect, Part("peers", "", [known], 1))["P1"] == "met"
    text = _text(_run(Part("peers", "P1.", [peer], 1)))
    assert "| DBOS: not measured; ledger: not measured; prefect: not measured | not" in text


# -- plots ------------------------------------------------------------------------------------


def test_the_exponent_is_that_of_the_growth():
    sizes = (10.0, 100.0, 1000.0)
    assert exponent([(x, 3 * x) for x in sizes]) == pytest.approx(1)
    assert exponent([(x, 7.0) for x in sizes]) == pytest.approx(0)
    assert exponent([(x, x * x) for x in sizes]) == pytest.approx(2)


def test_a_curve_is_drawn_with_its_exponent_below_it():
    figures = [
        Figure(f"{n} MB", [2.0 * n], "s", at=At("Growth", "events", "megabytes", n)) for n in (4, 8)
    ]
    run = _run(Part("stream", "P8.", figures, 1))
    wanted = page.files([run], "docs/performance.md")
    assert "docs/img/performance/growth.svg" in wanted
    assert "events: exponent 1.00." in wanted["docs/performance.md"]
    assert "![Growth](img/performance/growth.svg)" in wanted["docs/performance.md"]


def _boxes(svg: str) -> list[tuple[float, float, float, float]]:
    """Where each text lies, by the width that the writer counts with."""
    boxes = []
    for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):  # noqa: S314 - ours
        if element.get("transform"):
            continue
        wide = len(element.text or "") * plots.LETTER
        left = (
            float(element.get("x", 0))
            - wide * {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor", "start")]
        )
        y = float(element.get("y", 0))
        boxes.append((left, y - 11, left + wide, y + 3))
    return boxes


@each_row(
    "svg",
    [
        plots.bars(
            "Whole lives",
            "lives a second",
            [
                Bar("truegreen <&>", Spread(520, 400, 600), ours=True),
                Bar("a system with a rather long name", Spread(0.9, 0.8, 1.2), ours=False),
                Bar("fast", Spread(99_000, 90_000, 99_999), ours=False),
            ],
        ),
        plots.curves(
            "Growth",
            "tasks",
            "ms",
            [
                Curve(
                    f"a curve with a name, {n}", [(10.0**x, Spread(n, n, n)) for x in range(3, 8)]
                )
                for n in range(1, 5)
            ],
        ),
        plots.curves(
            "Flat", "seats", "/s", [Curve("one", [(1, Spread(2, 2, 2)), (2, Spread(2, 2, 2))])]
        ),
    ],
    ids=["bars", "curves", "flat"],
)
def test_no_text_of_a_plot_lies_on_another_or_outside(svg: str):
    boxes = _boxes(svg)
    height = float(ET.fromstring(svg).get("height", 0))  # noqa: S314 - ours
    for n, (left, top, right, bottom) in enumerate(boxes):
        assert left >= 0
        assert right <= plots.WIDTH
        assert 0 <= top <= bottom <= height
        for other in boxes[n + 1 :]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, (boxes[n], other)
    assert "prefers-color-scheme: dark" in svg


# -- the command ------------------------------------------------------------------------------


def test_a_page_is_rendered_again_without_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(SUITES, "stream", lambda _: pytest.fail("it measures"))
    results.write(str(tmp_path / "run.json"), _run(Part("stream", "P8.", [SLOW], 1)))
    where = tmp_path / "docs" / "performance.md"
    stale = tmp_path / "docs" / page.PICTURES / "no-longer-measured.svg"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    assert main(["--from", str(tmp_path / "run.json"), "--page", str(where)]) == 0
    assert not stale.exists()
    assert "| MISSED |" in where.read_text()


def test_a_measured_suite_is_kept_beside_those_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept, where = tmp_path / "results", tmp_path / "docs" / "performance.md"
    results.keep(
        _run(Part("hook", "P5.", [Figure("hook", [1.0], "ms", (at_most(2),))], 1)), str(kept)
    )
    monkeypatch.setitem(SUITES, "stream", lambda _: iter([SLOW]))
    assert main(["stream", "--quick", "--page", str(where), "--results", str(kept)]) == 0
    assert sorted(os.listdir(kept)) == ["hook.json", "stream.json"]
    text = where.read_text()
    assert "## hook" in text
    assert "## stream" in text


def test_a_look_that_only_sees_that_it_runs_writes_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit):
        main(["stream", "--tiny", "--page", str(tmp_path / "page.md"), "--results", str(tmp_path)])
    assert "--tiny" in capsys.readouterr().err
    assert not (tmp_path / "page.md").exists()
