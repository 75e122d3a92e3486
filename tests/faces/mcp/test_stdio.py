"""`truegreen mcp` on standard input and output: a child of the client, spoken to by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faces.conftest import Run
from tests.faces.mcp.conftest import Office
from tests.faces.mcp.talking import Talk
from tests.faces.mcp.test_tools import LEADING, OWN, READING
from tests.record.lives import OPERATOR
from tests.walk.conftest import Walk, own, shell, walk
from tests.walk.test_people import BARE
from truegreen.faces import mcp as room
from truegreen.model import Role

__all__ = ["walk"]
Environ = Callable[..., dict[str, str]]


@pytest.mark.criterion("O03")
def test_who_is_logged_in_acts_as_a_lead_of_that_name(
    office: Office, environ: Environ, tg: Run, tmp_path: Path
) -> None:
    with Talk(environ(), cwd=tmp_path) as talk:
        assert talk.tools() == LEADING
        made = talk.call("task_create", command=["true"], title="over a wire")
        refused = talk.call("task_create", command=["true"], isolation="none")
        of_gate = talk.call("task_create", command=["true"], gates=["true"], gate_env=["A_KEY"])
        for garbage in (b"no json\n", b'{"jsonrpc":"2.0","id":"\\ud800"}\n', b"[]\n", b"\xff\n"):
            talk.throw(garbage)
        assert talk.call("task_show", task=made["id"])["title"] == "over a wire"
        status, err = talk.end()
    assert made["created_by"].startswith("lead:")
    assert refused["error"]["code"] == of_gate["error"]["code"] == "forbidden"
    assert (status, "Traceback" in err) == (0, False)
    shown = tg("show", made["id"], "--json").json()
    assert shown["task_status"] == "queued"


def test_a_token_in_a_file_says_who_it_is_until_it_is_revoked(
    office: Office, environ: Environ, tmp_path: Path
) -> None:
    (tmp_path / "viewer").write_text(office.key(Role.VIEWER, "watcher") + "\n")
    with Talk(environ(TRUEGREEN_TOKEN_FILE=str(tmp_path / "viewer")), cwd=tmp_path) as talk:
        assert talk.tools() == READING
        assert talk.call("task_create", command=["true"])["error"]["code"] == "forbidden"
        assert talk.call("inbox_list") == {"inbox": [], "after": None}
        token = next(t for t in office.ledger.tokens() if t.name == "watcher")
        office.ledger.revoke_token(token.id, actor=OPERATOR)
        assert talk.call("inbox_list")["error"]["code"] == "unauthenticated"


@pytest.mark.parametrize(
    ("words", "environment", "code"),
    [
        (["--token-file", "nowhere"], {}, "not_running"),
        (["--token-file", "dead"], {}, "unauthenticated"),
        (["--as", "operator", "--token-file", "dead"], {}, "usage"),
        (["--http", "--as", "operator"], {}, "usage"),
        (["--as", "judge"], {}, "usage"),
        ([], {"TRUEGREEN_RUN": "run_1"}, "not_running"),
        (
            ["--as", "operator"],
            {"TRUEGREEN_SOCKET": "/s", "TRUEGREEN_TOKEN_FILE": "/t", "TRUEGREEN_RUN": "run_1"},
            "forbidden",
        ),
        (["--http"], {"TRUEGREEN_RUN": "run_1"}, "forbidden"),
    ],
)
def test_who_is_nobody_is_served_nothing(
    tg: Run, tmp_path: Path, words: list[str], environment: dict[str, str], code: str
) -> None:
    (tmp_path / "dead").write_text("tg_lead_nobody")
    answer = tg("mcp", *words, "--json", **environment)
    answer.error(code)
    assert answer.status == 2


def test_without_the_sdk_the_command_says_how_to_get_it(
    tg: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "find_spec", lambda _: None)
    assert not room.is_installed()
    with pytest.raises(Exception, match=r"pip install 'truegreen\[mcp\]'"):
        room.check_installed()


def test_help_loads_no_sdk(environ: Environ, tmp_path: Path) -> None:
    code = "import sys; from truegreen.faces.cli import mcp; print('mcp' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


AGENT = """
import json, sys
sys.path.insert(0, {root!r})
from tests.faces.mcp.talking import Talk
import os
with open("report.txt", "w") as file:
    file.write("all fine")
with Talk(dict(os.environ)) as talk:
    seen = {{"tools": sorted(talk.tools()), "task": talk.call("my_task")}}
    seen["attached"] = talk.call("attach", name="report.txt", path="report.txt")
    seen["declared"] = talk.call("declare", kind="done", reason="wrote it", evidence=["report.txt"])
    seen["task_list"] = talk.call("task_list")
with open("seen.json", "w") as file:
    json.dump(seen, file)
"""


@pytest.mark.criterion("N02", "O01", "O02")
def test_inside_a_run_the_agents_tools_reach_its_supervisor_and_nothing_else(walk: Walk) -> None:
    """The real thing: a supervisor, its door, and the agent's own `truegreen mcp` beside it."""
    root = str(Path(__file__).parents[3])
    (walk.folder / "agent.py").write_text(textwrap.dedent(AGENT.format(root=root)))
    outcome = walk.run(
        *("--gate", "grep -q fine report.txt", "--goal", "write a report", "--max-attempts", "1"),
        *("--", sys.executable, "agent.py"),
    )
    seen = json.loads((walk.folder / "seen.json").read_text())
    assert set(seen["tools"]) == OWN
    assert seen["task"]["goal"] == "write a report"
    assert seen["task"]["checks"] == ["grep"]
    assert seen["task_list"]["error"]["code"] == "forbidden"
    assert seen["declared"]["task_status"] == "running"
    assert (outcome.status, outcome.axes) == (0, ("exited", "succeeded"))
    assert outcome.task["claim"]["source"] == "mcp"
    (artifact,) = walk.ledger().artifacts(outcome.latest["id"])
    assert (artifact.name, artifact.size) == ("report.txt", 8)
    kept = Path(os.environ["XDG_STATE_HOME"], "truegreen", "artifacts", outcome.latest["id"])
    assert (kept / artifact.sha256).read_text() == "all fine"


@pytest.mark.criterion("O02")
def test_an_agent_that_dropped_its_environment_is_no_lead_and_uses_no_token(
    walk: Walk, office: Office
) -> None:
    """Neither as somebody who is logged in, nor with a token that it found."""
    (walk.folder / "found").write_text(office.key(Role.LEAD))
    acts = [
        own("mcp", *words, "--store", walk.store)
        for words in ([], ["--as", "operator"], ["--token-file", "found"])
    ]
    line = "; ".join(f"{BARE} {act} </dev/null >>tried 2>&1; echo $? >>tried" for act in acts)
    walk.run("--isolation", "reaper", "--gate", "true", *shell(line))
    lines = (walk.folder / "tried").read_text().splitlines()
    assert [line for line in lines if line.isdigit()] == ["2", "2", "2"], lines
    assert sum("this is inside run_" in line for line in lines) == 3, lines
