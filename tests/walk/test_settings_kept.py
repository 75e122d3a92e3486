"""Settings in a workspace: an agent can't write them, or what it writes is not used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.walk.conftest import Walk, python
from tests.work.running import need_jail

TRIES = """
import os, sys
def tried(deed):
    try:
        deed()
    except OSError as error:
        return error.strerror
    return "done"
open("mine", "w").write("[web]\\n")
for file in sys.argv[1:]:
    print(tried(lambda: open(file, "a")))
    print(tried(lambda: os.rename("mine", file)))
    print(tried(lambda: os.rename(file, "theirs")))
    print(tried(lambda: os.unlink(file)))
"""
OPS = '[[notify]]\nname = "ops"\ncommand = ["touch", "{}"]\non = ["succeeded"]\n'


@pytest.mark.criterion("O04")
def test_settings_are_read_only_for_a_jailed_agent_wherever_they_are_found(walk: Walk) -> None:
    need_jail()
    ours, above, forced = (
        walk.folder / "truegreen.toml",
        walk.folder.parent / "truegreen.toml",
        walk.folder.parent / "ops.toml",
    )
    for file in (ours, above, forced):
        file.write_text("[defaults]\nmax_attempts = 1\n")
    words = [*python(TRIES), *map(str, (ours, above, forced))]
    got = walk.run("--config", str(forced), "--isolation", "jail", "--gate", "true", *words)
    said = Path(got.latest["facts"]["log"]).read_text().splitlines()
    assert said == ["Read-only file system", *["Device or resource busy"] * 3] * 3
    assert {file.read_text() for file in (ours, above, forced)} == {ours.read_text()}
    assert got.latest["facts"]["settings"] == {str(ours): True, str(forced): True}


@pytest.mark.criterion("O01", "O04")
def test_what_an_agent_writes_into_the_settings_never_runs_unseen(walk: Walk) -> None:
    ran, file = walk.folder.parent / "ran", walk.folder / "truegreen.toml"
    more = f"open('truegreen.toml', 'a').write({OPS.format(ran)!r})"
    got = walk.run("--isolation", "reaper", "--gate", "true", *python(more))
    assert got.latest["facts"]["settings"] == {str(file): False}
    told = walk.tg("outlets", "--once")
    assert (told.status, told.out) == (2, "")
    assert f"{got.latest['id']} could have written it" in told.err
    inside = walk.tg("outlets", "trust", "--json", TRUEGREEN_RUN=f"run_{os.urandom(6).hex()}")
    assert inside.error("forbidden")
    assert not os.path.lexists(ran)
    trusted = walk.tg("outlets", "trust", "--json").json()
    assert (trusted["trusted"], trusted["run"]) == (True, got.latest["id"])
    assert walk.tg("outlets", "--once").out == "ops  0 sent\n"


@pytest.mark.criterion("G20", "O04")
def test_an_agent_that_makes_settings_decides_nothing_about_the_next(walk: Walk) -> None:
    easy = '[defaults]\nisolation = "none"\n[gates.false]\ncommand = ["true"]\n'
    more = f"open('truegreen.toml', 'w').write({easy!r})"
    got = walk.run("--max-attempts", "1", "--gate", "false", *python(more))
    assert got.status == 1
    run, file = got.latest["id"], str(walk.folder / "truegreen.toml")
    words = ["--gate", "false", "--json", "--", "true"]
    for tried in (["run", *words], ["add", *words], ["gate", "false", "--json"]):
        refused = walk.tg(*tried).error("refused")
        assert refused["details"] == {"file": file, "run": run}
        assert refused["allowed"] == ["truegreen outlets trust"]
    assert walk.tg("scheduler", "--once", "--json").error("refused")
    assert walk.tg("inbox", "--json").out.count("settings_changed:") == 1
    for look in ("doctor", "outlets"):
        assert run in str(walk.tg(look, "--json").json()["warnings"])
    assert len(walk.tg("list", "--json").json()["tasks"]) == 1
    other = walk.folder.parent / "other.toml"
    other.write_text("")
    assert walk.tg("add", "--config", str(other), *words).json()["id"]
    walk.tg("outlets", "trust", "--json").json()
    assert walk.tg("add", *words).json()["id"]


@pytest.mark.criterion("O04")
def test_settings_that_anybody_trusts_are_kept_from_agents_of_other_folders(walk: Walk) -> None:
    need_jail()
    ops = walk.folder.parent / "ops" / "truegreen.toml"
    ops.parent.mkdir()
    ops.write_text("[defaults]\nmax_attempts = 1\n")
    walk.tg("outlets", "--once", "--config", str(ops))
    words = [*python(TRIES), str(ops)]
    jailed = walk.run("--isolation", "jail", "--gate", "true", *words)
    said = Path(jailed.latest["facts"]["log"]).read_text().splitlines()
    assert said == ["Read-only file system", *["Device or resource busy"] * 3]
    assert jailed.latest["facts"]["settings"][str(ops)] is True
    more = python(f"open({str(ops)!r}, 'a').write('[gates.x]\\ncommand = [\"true\"]\\n')")
    free = walk.run("--isolation", "reaper", "--gate", "true", *more)
    assert free.latest["facts"]["settings"][str(ops)] is False
    refused = walk.tg("add", "--config", str(ops), "--json", "--", "true").error("refused")
    assert refused["details"]["run"] == free.latest["id"]
