"""Other job systems are measured or named: none is left out, no goal is met without them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import environments, field, flows, report
from benchmarks.bench import Bench
from benchmarks.field import EMBEDDED, REMEMBERED, SERVED, Contestant, figures
from benchmarks.measure import Scale
from benchmarks.report import Part

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.postgres_server import PostgresServer

DBOS = EMBEDDED[0]


@pytest.fixture
def bench(postgres_server: PostgresServer) -> Iterator[Bench]:
    """A bench on the tests' own PostgreSQL."""
    with Bench(Scale.TINY, postgres_server) as bench:
        yield bench


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which nothing is."""
    monkeypatch.setattr(environments, "CACHE", str(tmp_path / "peers"))
    return tmp_path / "peers"


@pytest.mark.usefixtures("cache")
def test_a_peer_that_is_missing_is_named_and_its_goal_is_not_met(bench: Bench):
    found = list(field.run(bench))
    peers = EMBEDDED + SERVED + REMEMBERED
    assert [figure.beside_what for figure in found] == [peer.shown for peer in peers]
    for figure in found:
        why = "no Redis here" if figure.what.endswith("Redis") else "it is not installed here"
        assert f"{figure.beside_what} not measured: {why}" in figure.note
        assert [figure.kept(goal) for goal in figure.goals] == [None] * len(figure.goals)
        assert "not measured" in report.cells(figure)[2]
    assert sum(len(figure.goals) for figure in found) == 2 + len(SERVED)
    assert report.summary([Part("peers", "", found, 0.0)]).startswith("0 goals met, 0 missed")


@pytest.mark.usefixtures("cache")
def test_prefect_is_named_where_it_is_missing(bench: Bench):
    (figure,) = flows.run(bench)
    assert "Prefect 3.8, flow runs not measured" in figure.note
    assert figure.kept(figure.goals[0]) is None


@pytest.mark.usefixtures("cache")
def test_without_a_registry_the_reason_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(environments.UnavailableError, match=r"could not be installed: .+"):
        environments.interpreter("huey", install=True)
    # What is left of the try is no environment.
    with pytest.raises(environments.UnavailableError, match="not installed here"):
        environments.interpreter("huey", install=False)


def _pretend(name: str, *, whole: bool) -> None:
    """An environment of our own interpreter, in which the peer is not to be found."""
    home = environments.place(name)
    os.makedirs(os.path.join(home, "bin"))
    os.symlink(sys.executable, os.path.join(home, "bin", "python"))
    if whole:
        with open(os.path.join(home, environments.READY), "w", encoding="utf-8"):
            pass


@pytest.mark.usefixtures("cache")
def test_an_environment_that_was_left_half_made_is_not_used():
    _pretend("huey", whole=False)
    with pytest.raises(environments.UnavailableError, match="not installed here"):
        environments.interpreter("huey", install=False)


@pytest.mark.usefixtures("cache")
def test_a_peer_whose_driver_dies_is_named_with_its_last_words(bench: Bench):
    _pretend("dbos", whole=True)
    contestant = Contestant(bench, bench.sqlite[0], DBOS, jobs=3, workers=1)
    contestant()
    (figure,) = figures("lives", [1.0], [contestant])
    assert "its driver failed: ModuleNotFoundError: No module named 'dbos'" in figure.note
    assert figure.kept(figure.goals[0]) is None


def test_a_peer_that_is_there_is_measured_beside_us(
    bench: Bench, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # We stand in for another: an environment whose interpreter leads to our own.
    (tmp_path / "ours.txt").write_text("")
    monkeypatch.setattr(environments, "PINS", str(tmp_path))
    python = os.path.join(environments.place("ours"), "bin", "python")
    os.makedirs(os.path.dirname(python))
    with open(python, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    os.chmod(python, 0o700)
    with open(os.path.join(environments.place("ours"), environments.READY), "w", encoding="utf-8"):
        pass
    assert environments.place("ours").startswith(str(cache))
    peer = DBOS._replace(module="ours", shown="itself")
    place = bench.sqlite[0]._replace(fresh=lambda: f"sqlite://sqlite://{tmp_path}/store.db")
    contestant = Contestant(bench, place, peer, jobs=3, workers=1)
    rate = contestant()
    (figure,) = figures("lives", [rate * 4], [contestant])
    assert (figure.beside, figure.note) == ([rate], peer.note)
    assert figure.kept(figure.goals[0]) is True


def test_our_own_failure_is_no_gap_in_a_table(bench: Bench):
    nowhere = bench.sqlite[0]._replace(fresh=lambda: "sqlite:///dev/null/store.db")
    with pytest.raises(environments.UnavailableError):
        Contestant(bench, nowhere, None, jobs=3, workers=1)()


def test_pins_have_hashes_and_no_addresses():
    names = sorted(name for name in os.listdir(environments.PINS) if name.endswith(".txt"))
    peers = {peer.module for peer in (*EMBEDDED, *SERVED, *REMEMBERED, flows.PREFECT)}
    assert {name.removesuffix(".txt") for name in names} == peers
    for name in names:
        with open(os.path.join(environments.PINS, name), encoding="utf-8") as file:
            text = file.read()
        assert "--hash=sha256:" in text
        assert "://" not in text
