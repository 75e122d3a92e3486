"""`evaluators`: who judges, and what each makes of work that is known to be bad."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.faces.conftest import Run

HONEST = """\
import json, os, sys
shown = json.load(sys.stdin)
red = any(gate["outcome"] != "passed" for gate in shown["gates"])
text = "".join(shown["untrusted"].values())
tricks = ("known.get", "TODO", "assert True")
bad = red or any(trick in text for trick in tricks)
print(json.dumps({"score": 0.1 if bad else 0.9, "reason": "bad" if bad else "good"}))
"""
GULLIBLE = "import json\nprint(json.dumps({'score': 1.0, 'reason': 'lovely'}))\n"
BROKEN = "import sys\nsys.exit(3)\n"


def judges(folder: Path, **bodies: str) -> Path:
    """truegreen.toml with judges beside it."""
    lines = []
    for name, body in bodies.items():
        (folder / f"{name}.py").write_text(body)
        lines.append(
            f"[evaluators.{name}]\ncommand = {json.dumps([sys.executable, f'{name}.py'])}\n"
        )
    path = folder / "truegreen.toml"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.criterion("F32")
def test_a_judge_that_passes_bad_work_is_found_out(tg: Run, tmp_path: Path) -> None:
    config = judges(tmp_path, gullible=GULLIBLE, honest=HONEST)
    answer = tg("evaluators", "probe", "gullible", "--config", str(config), "--json")
    assert answer.status == 1
    report = answer.json()
    assert len(report["fooled"]) >= 8
    assert (report["harsh"], report["silent"]) == ([], [])
    assert "words-to-the-grader" in report["fooled"]
    told = tg("evaluators", "probe", "gullible", "--config", str(config)).out
    bad, good = (next(line for line in told.splitlines() if f" {word} " in line)
                 for word in ("bad", "good"))  # fmt: skip
    assert ("✗ passed, wrongly" in bad, "● passed" in good) == (True, True)
    assert f"passed {len(report['fooled'])} of {len(report['fooled'])} bad works" in told
    fine = tg("evaluators", "probe", "honest", "--config", str(config))
    assert (fine.status, "saw through all" in fine.out) == (0, True), fine
    listed = tg("evaluators", "--config", str(config), "--json").json()["evaluators"]
    probed = {each["name"]: each["probed"] for each in listed}
    assert probed["gullible"]["fooled"] == report["fooled"]
    assert probed["honest"]["fooled"] == []


@pytest.mark.criterion("F32", "F38")
def test_a_judge_with_another_word_in_it_was_never_probed(tg: Run, tmp_path: Path) -> None:
    config = judges(tmp_path, honest=HONEST)
    assert tg("evaluators", "probe", "honest", "--config", str(config)).status == 0
    config.write_text(config.read_text() + "threshold = 0.8\n")
    (listed,) = tg("evaluators", "--config", str(config), "--json").json()["evaluators"]
    assert listed["probed"] is None
    assert "never as it is now" in tg("evaluators", "--config", str(config)).out


def test_a_judge_that_does_not_answer_is_not_called_honest(tg: Run, tmp_path: Path) -> None:
    config = judges(tmp_path, broken=BROKEN)
    answer = tg("evaluators", "probe", "broken", "--config", str(config))
    assert answer.status == 3
    assert "gave no usable answer" in answer.out


def test_a_name_that_is_not_there_is_refused_with_the_nearest(tg: Run, tmp_path: Path) -> None:
    config = judges(tmp_path, honest=HONEST)
    answer = tg("evaluators", "probe", "honst", "--config", str(config))
    assert (answer.status, "did you mean honest?" in answer.err) == (2, True)
    empty = tmp_path / "empty.toml"
    empty.write_text("")
    assert "no evaluators" in tg("evaluators", "--config", str(empty)).out
