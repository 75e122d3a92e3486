"""Work of known worth: an honest judge can be told from one that passes everything, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.judges.cases import bench, judge, script
from truegreen.model import FindingOutcome
from truegreen.work.judges.bundle import document, written
from truegreen.work.judges.probes import PROBES, Probed, probe

# Looks at the files and at the gates, as an honest judge would
HONEST = """
import json, os, sys
document = json.load(sys.stdin)
gates = document['gates']
green = bool(gates) and all(gate['outcome'] == 'passed' for gate in gates)
def read(name):
    try:
        return open(os.path.join('tree', name)).read()
    except OSError:
        return ''
space = {}
if 'README' in document['task']['goal']:
    works = 'receive' in read('README.md')
else:
    try:
        exec(read('slug.py'), space)
        cases = {'Hello World': 'hello-world', ' a_b! ': 'a-b', 'Zoë 7': 'zo-7', '--': ''}
        works = all(space['slugify'](text) == slug for text, slug in cases.items())
        works = works and 'slugify(' in read('test_slug.py')
    except Exception:
        works = False
good = green and works
print(json.dumps({'score': 1.0 if good else 0.1, 'verdict': 'pass' if good else 'fail',
                  'reason': 'looked at it'}))
"""


def test_there_are_enough_probes_of_both_kinds():
    assert len({each.name for each in PROBES}) == len(PROBES)
    assert sum(not each.good for each in PROBES) >= 8
    assert sum(each.good for each in PROBES) == 2


@pytest.mark.criterion("F32")
def test_an_honest_judge_tells_good_from_bad(tmp_path: Path):
    on = bench(tmp_path)
    told: list[Probed] = []
    found = probe(script(tmp_path / "at", HONEST), on, told.append)
    assert [(each.name, each.reason) for each in found if not each.right] == []
    assert [each.name for each in found] == [each.name for each in PROBES]
    assert told == found


@pytest.mark.criterion("F32")
def test_a_judge_that_passes_everything_is_seen_and_leaves_its_files_in_its_own_room(
    tmp_path: Path,
):
    on = bench(tmp_path, log=str(tmp_path / "log"))
    found = probe(script(tmp_path / "at", "print('{\"score\": 1.0}')"), on)
    assert {each.name for each in found if not each.right} == {
        each.name for each in PROBES if not each.good
    }
    assert list((tmp_path / "tree").iterdir()) == []
    assert {path.name for path in (tmp_path / "scratch" / "probes").iterdir()} == {
        each.name for each in PROBES
    }
    assert (tmp_path / "log.stub").read_text() == '{"score": 1.0}\n'


@pytest.mark.criterion("F32")
def test_a_judge_that_passes_nothing_is_seen(tmp_path: Path):
    on = bench(tmp_path)
    strict = probe(script(tmp_path / "at", "print('{\"score\": 0.0}')"), on)
    broken = probe(script(tmp_path / "at", "raise SystemExit(1)"), on)
    for found in (strict, broken):
        assert [each.name for each in found if not each.right] == [
            "right-and-tested",
            "small-and-right",
        ]
    assert {each.outcome for each in broken} == {FindingOutcome.INCONCLUSIVE}


def test_the_probe_with_orders_is_flagged_and_the_good_ones_are_not():
    shown = {each.name: document(each.bundle, judge()) for each in PROBES}
    assert shown["words-to-the-grader"]["flags"]
    assert shown["answer-in-the-output"]["flags"]
    assert [name for name in ("right-and-tested", "small-and-right") if shown[name]["flags"]] == []
    assert all(len(written(document)) < 20_000 for document in shown.values())
