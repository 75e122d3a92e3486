"""`config`: what is in force, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faces.conftest import Run


@pytest.mark.criterion("P09")
def test_a_partial_section_flips_no_default_and_every_value_has_its_source(tg: Run, tmp_path: Path):
    built_in = tg("config", "--json").json()["settings"]
    file = tmp_path / "truegreen.toml"
    file.write_text("[defaults]\nmax_attempts = 5\ncaps = { turns = 7 }\n")
    settings = tg("config", "--json").json()["settings"]
    changed = {key for key in settings if settings[key]["value"] != built_in[key]["value"]}
    assert changed == {"file", "defaults.budget.attempts", "defaults.caps.turns"}
    assert settings["defaults.caps.turns"] == {"value": 7, "source": str(file)}
    assert settings["defaults.budget.attempts"] == {"value": 5, "source": str(file)}
    assert settings["defaults.caps.time"]["source"] == "built in"
    text = tg("config").out
    for key in settings:
        assert f"\n{key} " in text


def test_options_win_over_the_environment_and_are_named_as_source(tg: Run, tmp_path: Path):
    (tmp_path / "other.toml").write_text("")
    document = tg("config", "--json", "--store", "x.db", "--config", "other.toml").json()
    assert document["settings"]["store"] == {
        "value": f"sqlite://{tmp_path}/x.db",
        "source": "--store",
    }
    assert document["settings"]["file"]["source"] == "--config"
    assert not (tmp_path / "x.db").exists(), "looking at settings opens nothing"


def test_passwords_are_not_shown(tg: Run):
    for words in (["config"], ["config", "--json"]):
        answer = tg(*words, "--store", "postgresql://u:hunter2@host/db")
        assert answer.status == 0
        assert "hunter2" not in answer.out
        assert "u:***@host" in answer.out


def test_the_schema_is_json_with_and_without_the_option(tg: Run):
    plain, asked = tg("config", "--schema"), tg("config", "--schema", "--json")
    assert plain == asked
    assert plain.json()["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[defaults\n", "not TOML"),
        (b"[defaultz]\n", 'did you mean "defaults"'),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[defaults]\nmax_attempts = 0\n", "defaults.max_attempts"),
    ],
)
@pytest.mark.parametrize("words", [["config"], ["list"]])
def test_a_bad_file_is_refused_by_its_name(
    words: list[str], content: bytes, said: str, tg: Run, tmp_path: Path
):
    (tmp_path / "truegreen.toml").write_bytes(content)
    answer = tg(*words)
    assert (answer.status, answer.out) == (2, "")
    assert said in answer.err
    assert "truegreen.toml" in answer.err
    tg(*words, "--json").error("invalid_input")


def test_a_template_that_is_named_like_a_program_is_refused_with_its_option(
    tg: Run, tmp_path: Path
):
    path = tmp_path / "own.toml"
    path.write_text('[agents.doer]\ncommand = ["true"]\n[tasks.fix-parser]\nagent = "doer"\n')
    answer = tg("run", "--config", path, "fix-parser")
    assert (answer.status, answer.out) == (2, "")
    assert "truegreen run --task fix-parser" in answer.err
    assert tg("list", "--json").json()["tasks"] == []


@pytest.mark.criterion("K06")
def test_a_scheduler_takes_routines_over_and_a_cycle_begins(tg: Run, tmp_path: Path):
    text = '[tasks.t]\ncommand = ["true"]\n[routines.nightly]\ntask = "t"\nschedule = "0 2 * * *"\n'
    more = '[routines.rounds]\ntask = "t"\nrepeat = { max_iterations = 3 }\n'
    (tmp_path / "truegreen.toml").write_text(text + more)
    answer = tg("scheduler", "--once")
    assert "routine nightly  is taken over" in answer.err
    assert "routine rounds  is queued: iteration 1 of 3" in answer.err
    assert answer.err.count("starts attempt 1") == 1
    assert "taken over" not in tg("scheduler", "--once").err
    assert tg("doctor", "--json").json()["warnings"] == []


@pytest.mark.parametrize("defines", ["", "nothing but a gate"])
def test_where_no_task_is_defined_a_template_is_refused_with_what_is_missing(
    defines: str, tg: Run, tmp_path: Path
):
    file = tmp_path / "truegreen.toml"
    if defines:
        file.write_text('[gates.tests]\ncommand = ["true"]\n')
    answer = tg("run", "--task", "nosuch")
    assert (answer.status, answer.out) == (2, "")
    missing = f"{file} defines no task; write it as [tasks.nosuch]"
    without = "there is no truegreen.toml here or above, and so no task is defined; write one with"
    assert f"--task: no task 'nosuch': {missing if defines else without}" in answer.err
