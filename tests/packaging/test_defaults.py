"""An installation without extras has what the README and the how-tos use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from email import message_from_bytes
from importlib.metadata import requires
from pathlib import Path

import pytest

from tests.packaging.conftest import Built
from tests.small_environment import python_of
from truegreen.errors import install_command

POSTGRES = "postgresql://nobody@127.0.0.1:1/none"


def spoken(program: Path, *requests: dict[str, object]) -> list[dict[str, object]]:
    """What `truegreen mcp` answers to each request, one after another."""
    with subprocess.Popen(
        [program, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr
        answers = []
        for request in requests:
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
            server.stdin.flush()
            if "id" in request:
                line = server.stdout.readline()
                assert line, server.stderr.read().decode()
                answers.append(json.loads(line))
        server.stdin.close()
        assert server.wait(timeout=30) == 0
    return answers


def handshake(program: Path) -> set[str]:
    """The tools that a client is offered after a whole handshake."""
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    first, listed = spoken(
        program,
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    )
    assert "result" in first, first
    result = listed["result"]
    assert isinstance(result, dict)
    return {tool["name"] for tool in result["tools"]}


@pytest.fixture
def plain(built: Built, tmp_path: Path) -> Path:
    """The folder of programs of an environment with the wheel's own dependencies alone."""
    with zipfile.ZipFile(built.wheel) as wheel:
        (name,) = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
        told = message_from_bytes(wheel.read(name)).get_all("Requires-Dist") or []
    return python_of(
        tmp_path / "plain", tuple(each for each in told if "extra ==" not in each)
    ).parent


@pytest.mark.timeout(120)
def test_without_extras_there_are_the_tools_of_mcp_and_postgres_is_named(plain: Path):
    python = [str(plain / "python"), "-c", "import psycopg"]
    assert subprocess.run(python, check=False, capture_output=True, timeout=60).returncode == 1
    assert {"task_create", "task_run", "task_terminate"} <= handshake(plain / "truegreen")
    words = [str(plain / "truegreen"), "list", "--store", POSTGRES]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 5, done
    assert "PostgreSQL needs the extra postgres: pip install 'truegreen[postgres]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("extra", "package"),
    [
        ("postgres", "psycopg[binary,pool]"),
        ("tui", "textual"),
        ("notify", "apprise"),
        ("ray", "ray"),
    ],
)
def test_in_an_environment_of_pipx_its_own_command_is_named(
    extra: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert install_command(extra) == f"pip install 'truegreen[{extra}]'"
    (tmp_path / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    way = install_command(extra)
    assert way.startswith(f"pipx inject truegreen '{package}>=")
    assert "extra" not in way


def test_every_extra_that_a_message_names_is_one():
    told = requires("truegreen") or []
    source = Path(__file__).parents[2] / "src"
    for folder, _, files in os.walk(source):
        for name in (each for each in files if each.endswith(".py")):
            for part in (Path(folder) / name).read_text().split("install_command(")[1:]:
                extra = part[1:].split(part[0])[0]
                if part[0] in "'\"":
                    assert any(f"extra == '{extra}'" in line for line in told), (name, extra)
