"""Public output is what was recorded: a redesign of the inside changes none of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forking import Forge
from tests.golden.comparing import FILES, HINT, Documents, differences, read, write
from tests.golden.record import POSTGRES, TOPICS, not_covered, of_postgres
from tests.golden.scratch import Scratch, scratch

pytestmark = pytest.mark.timeout(
    300
)  # one test runs hundreds of commands, and a machine may be busy


@pytest.fixture(scope="module")
def place(forge: Forge) -> Iterator[Scratch]:
    """A scratch folder for all topics."""
    with scratch(forge) as made:
        yield made


def compare(owned: tuple[str, ...], produced: Documents) -> None:
    """Fail with every difference at once."""
    found = differences(FILES, owned, produced)
    if found:
        pytest.fail("\n\n".join([*found, HINT]), pytrace=False)


@pytest.mark.parametrize("name", TOPICS)
def test_output_is_what_was_recorded(name: str, place: Scratch):
    compare(TOPICS[name].owned, TOPICS[name].produce(place))


def test_schema_of_postgres_is_what_was_recorded(postgres_url: str):
    compare(POSTGRES, of_postgres(postgres_url))


def test_every_command_that_has_help_has_a_scene():
    """The recorded help is that of every command which the program lists."""
    heads = [read(path).splitlines()[0] for path in (FILES / "help").iterdir()]
    known = {" ".join(head.split()[2:-1]) for head in heads} - {""}
    assert len(known) > 80
    assert not_covered(known) == set(), "add it to a scene of tests/golden/of_commands.py"


def test_every_recorded_file_belongs_to_one_topic():
    owned = [prefix for topic in TOPICS.values() for prefix in topic.owned] + list(POSTGRES)
    names = [path.relative_to(FILES).as_posix() for path in FILES.rglob("*") if path.is_file()]
    assert names
    assert {name for name in names if sum(name.startswith(each) for each in owned) != 1} == set()


# --- the comparison itself


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Two files of a topic, and one of another."""
    write(tmp_path, ("cli/",), {"cli/list.txt": "one\ntwo\n", "cli/show.txt": "shown\n"})
    write(tmp_path, ("help/",), {"help/list.txt": "help\n"})
    return tmp_path


def test_equal_documents_have_no_difference(recorded: Path):
    produced = {"cli/list.txt": "one\ntwo\n", "cli/show.txt": "shown\n"}
    assert differences(recorded, ("cli/",), produced) == []


def test_an_altered_a_missing_and_a_superfluous_file_are_each_reported(recorded: Path):
    produced = {"cli/list.txt": "one\n2\n", "cli/new.txt": "new\n"}
    missing, superfluous, altered = differences(recorded, ("cli/",), produced)
    assert missing == "missing file: cli/new.txt is produced, but not recorded"
    assert superfluous == "superfluous file: cli/show.txt is recorded, but not produced any more"
    assert altered.splitlines() == [
        "--- recorded/cli/list.txt",
        "+++ produced/cli/list.txt",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+2",
    ]


@pytest.mark.parametrize("text", ["one\ntwo", "one\r\ntwo\n", "one\ntwo\n\n", "one \ntwo\n"])
def test_a_difference_in_white_space_alone_is_reported(recorded: Path, text: str):
    produced = {"cli/list.txt": text, "cli/show.txt": "shown\n"}
    (altered,) = differences(recorded, ("cli/",), produced)
    assert altered.startswith("--- recorded/cli/list.txt")


def test_a_failure_shows_all_differences_and_the_way_on(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tests.golden.test_golden.FILES", recorded)
    with pytest.raises(pytest.fail.Exception) as failed:
        compare(("cli/",), {"cli/list.txt": "other\n", "cli/show.txt": "another\n"})
    words = str(failed.value)
    assert "produced/cli/list.txt" in words
    assert "produced/cli/show.txt" in words
    assert "make golden" in words


def test_a_recorded_file_that_somebody_changed_is_reported(place: Scratch, tmp_path: Path):
    owned, produce = TOPICS["sqlite"]
    produced = produce(place)
    assert write(tmp_path, owned, produced) == ["added schema/sqlite.sql"]
    assert differences(tmp_path, owned, produced) == []
    path = tmp_path / "schema/sqlite.sql"
    path.write_text(read(path).replace("CREATE TABLE tasks", "CREATE TABLE task", 1))
    (altered,) = differences(tmp_path, owned, produced)
    assert "+CREATE TABLE tasks" in altered
    assert write(tmp_path, owned, produced) == ["changed schema/sqlite.sql"]
    assert write(tmp_path, owned, {}) == ["removed schema/sqlite.sql"]
