"""Incidents of the sources, from the first command to the last figure."""

from __future__ import annotations

import pytest

from tests.walk.conftest import Walk
from tests.walk.judging import Judge, settings

HAIKU = """\
[agents.poet]
command = ["sh", "-c", "<poem>"]
[evaluators.critic]
command = <critic>
[gates.written]
command = ["test", "-s", "haiku.txt"]
[tasks.haiku]
agent = "poet"
gates = ["written"]
evaluators = ["critic"]
max_attempts = 1
"""
THREE_LINES = """\
lines = open(os.path.join(tree, "haiku.txt")).read().splitlines()
print(json.dumps({"score": 0.9 if len(lines) % 3 == 0 else 0.2, "reason": f"{len(lines)} lines"}))
"""
POEM = "printf 'old pond\\\\na frog jumps in\\\\nwater sounds\\\\n' >> haiku.txt; exit 1"


def chain(walk: Walk, config: str) -> tuple[str, str]:
    """Two iterations; the second waits for the first."""
    first = walk.tg("add", "--config", config, "--task", "haiku").out.strip()
    after = ("--depends-on", first)
    second = walk.tg("add", "--config", config, "--task", "haiku", *after).out.strip()
    return first, second


@pytest.mark.criterion("P04", "F02", "F23", "F26")
def test_autohaiku_a_rescued_iteration_lets_the_next_one_start_once(walk: Walk) -> None:
    """The poet writes its haiku and dies without a word; the cycle used to stop there."""
    critic = Judge(walk, THREE_LINES)
    config = str(settings(walk, HAIKU.replace("<poem>", POEM), critic=critic.command))
    first, second = chain(walk, config)
    early = walk.tg("attempt", second)
    assert (early.status, f"waits for {first}" in early.err) == (2, True)
    done = walk.tg("attempt", first, "--json").json()
    assert (done["task_status"], done["rescued"], done["cell"]) == ("succeeded", True, "rescued")
    assert (done["exit_reason"], done["exit_detail"]) == ("fatal_error", "agent_error")
    next_one = walk.tg("attempt", second, "--json").json()
    assert (next_one["task_status"], next_one["rescued"]) == ("succeeded", True)
    again = walk.tg("attempt", second)
    assert (again.status, "is not queued" in again.err) == (2, True)
    assert (walk.folder / "haiku.txt").read_text().count("old pond") == 2


@pytest.mark.criterion("P04", "F03", "F23")
def test_autohaiku_a_rejected_iteration_lets_nothing_start(walk: Walk) -> None:
    critic = Judge(walk, THREE_LINES)
    bad = POEM.replace("water sounds\\\\n", "")
    config = str(settings(walk, HAIKU.replace("<poem>", bad), critic=critic.command))
    first, second = chain(walk, config)
    done = walk.tg("attempt", first, "--json").json()
    assert (done["task_status"], done["rescued"]) == ("failed", False)
    refused = walk.tg("attempt", second)
    assert (refused.status, f"waits for {first} (status: failed)" in refused.err) == (2, True)
    assert (walk.folder / "haiku.txt").read_text().count("old pond") == 1
