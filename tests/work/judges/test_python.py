"""Judges that are Python functions: in an interpreter of their own, and only the return counts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.work.judges.cases import asked, bench, judge
from tests.work.running import need_jail
from truegreen.contract import Evaluator, Isolation
from truegreen.contract.reading import Duration
from truegreen.work.judges import Bench, Opinion, ask
from truegreen.work.judges.answer import Word


def call(folder: Path, source: str, on: Bench | None = None, **more: Any) -> Opinion:
    """Ask a function `review` of a module beside the settings."""
    place = on or bench(folder)
    (Path(place.at) / "my_judges.py").write_text(source)
    of = judge(python="my_judges:review", **more)
    return ask(of, asked(of), place)


@pytest.mark.criterion("F40")
@pytest.mark.parametrize("level", [Isolation.JAIL, Isolation.REAPER, Isolation.NONE])
def test_a_function_judges(tmp_path: Path, level: Isolation):
    if level is Isolation.JAIL:
        need_jail()
    source = (
        "def review(document):\n"
        "    assert document['question'] == 'done'\n"
        "    return {'score': 0.75, 'verdict': 'pass', 'reason': document['task']['title']}\n"
    )
    found = call(tmp_path, source, bench(tmp_path, isolation=level))
    assert (found.trouble, found.verdict, found.score) == ("", Word.PASS, 0.75)
    assert (found.reason, found.facts["how"]) == ("Fix the parser", "python")
    assert found.facts["isolation"] == str(level)


@pytest.mark.parametrize(("answer", "score"), [("0.5", 0.5), ("1", 1.0), ("0", 0.0)])
def test_a_number_is_a_score(tmp_path: Path, answer: str, score: float):
    assert call(tmp_path, f"def review(document): return {answer}").score == score


@pytest.mark.criterion("F09", "F10")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return float('nan')", "NaN is no JSON number"),
        ("return float('inf')", "Infinity is no JSON number"),
        ("return 1.5", "no usable score"),
        ("return True", "no usable score"),
        ("return None", "no JSON object"),
        ("return 'pass'", "no JSON object"),
        ("return {'verdict': 'pass'}", "no usable score"),
        ("return object()", "not JSON serializable"),
        ("raise ValueError('no idea')", "exit 1: ValueError: no idea"),
        ("import sys; sys.exit(0)", "exit 1: SystemExit: 0"),
        ("import os; os._exit(0)", "it said nothing"),
        ("import os; os.kill(os.getpid(), 11)", "killed by SIGSEGV"),
    ],
)
def test_what_is_no_answer_passes_nothing(tmp_path: Path, body: str, why: str):
    found = call(tmp_path, f"def review(document):\n    {body}\n")
    assert why in found.trouble
    assert (found.verdict, found.score, found.lasting) == (None, None, False)


@pytest.mark.parametrize(
    "print_it",
    [
        "print(fake)",
        "sys.stdout.write(fake); sys.stdout.flush()",
        "os.write(1, fake.encode())",
        "sys.__stdout__.write(fake)",
        "subprocess.run(['echo', fake])",
        "atexit.register(os.write, 1, fake.encode())",
    ],
)
def test_what_a_function_prints_is_not_its_answer(tmp_path: Path, print_it: str):
    """It may well print the diff, and there an agent can have left an answer."""
    source = (
        "import atexit, os, subprocess, sys\n"
        """fake = '{"score": 1.0, "verdict": "pass"}\\n'\n"""
        f"{print_it}\n"
        f"def review(document):\n    {print_it}\n    return 0.25\n"
    )
    found = call(tmp_path, source)
    assert (found.trouble, found.score) == ("", 0.25)


def test_a_module_that_is_not_there_will_not_be_there_next_time(tmp_path: Path):
    on = bench(tmp_path)
    for name in ("no_such_module:review", "my_judges:no_such_function", "my_judges:a.b"):
        (tmp_path / "at" / "my_judges.py").write_text("def review(document): return 1.0")
        of = judge(python=name)
        found = ask(of, asked(of), on)
        assert (name in found.trouble, found.lasting, found.score) == (True, True, None)


def test_no_module_comes_from_the_tree_or_from_where_the_agent_worked(tmp_path: Path):
    on = bench(tmp_path)
    for name in ("my_judges.py", "json.py", "sitecustomize.py"):
        (tmp_path / "tree" / name).write_text("def review(document): return 1.0")
    of = judge(python="my_judges:review")
    assert ask(of, asked(of), on).lasting
    found = call(tmp_path, "import json\ndef review(document): return len(json.dumps(1)) / 4", on)
    assert found.score == 0.25
    theirs = bench(tmp_path, place=str(tmp_path / "at"))
    assert "where the agent worked" in ask(of, asked(of), theirs).trouble


def test_nothing_of_the_callers_settings_reaches_the_interpreter(tmp_path: Path):
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "my_judges.py").write_text("def review(document): return 1.0")
    environ = {"PYTHONPATH": str(tmp_path / "planted"), "PYTHONSTARTUP": "x", "PATH": "/bin"}
    on = bench(tmp_path, environ=environ)
    of = judge(python="my_judges:review", pass_env=("PYTHONPATH",))
    assert ask(of, asked(of), on).lasting


def test_a_method_of_an_object_and_installed_packages_can_be_named(tmp_path: Path):
    source = (
        "import msgspec\n"
        "class Reviewer:\n"
        "    def strict(document): return {'score': 0.5, 'reason': msgspec.__name__}\n"
    )
    (tmp_path / "at").mkdir()
    (tmp_path / "at" / "my_judges.py").write_text(source)
    of = Evaluator(name="r", python="my_judges:Reviewer.strict")
    found = ask(of, asked(of), bench(tmp_path))
    assert (found.score, found.reason) == (0.5, "msgspec")


@pytest.mark.criterion("F30")
def test_a_function_has_a_time_of_its_own(tmp_path: Path):
    source = "import time\ndef review(document): time.sleep(60)\n"
    found = call(tmp_path, source, timeout=Duration(700_000))
    assert found.trouble == "no answer within 700ms"


def test_what_a_function_leaves_running_holds_nobody_up(tmp_path: Path):
    source = (
        "import threading, time\n"
        "def review(document):\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    return 0.25\n"
    )
    found = call(tmp_path, source, timeout=Duration(20_000_000))
    assert (found.trouble, found.score) == ("", 0.25)


def test_stdin_is_the_hosts_alone(tmp_path: Path):
    source = "import sys\ndef review(document): return {'score': len(sys.stdin.read()) / 2}\n"
    assert call(tmp_path, source).score == 0.0


def test_the_host_runs_in_our_own_interpreter(tmp_path: Path):
    source = "import sys\ndef review(document): return {'score': 1, 'reason': sys.executable}\n"
    assert call(tmp_path, source).reason == sys.executable
