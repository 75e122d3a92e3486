"""Manual page, bill of materials, notices, service and container: each is what the source says."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.conftest import missing
from tests.packaging.conftest import ROOT
from truegreen.contract.web import Web
from truegreen.faces.cli.catalogue import COMMANDS

PAGE = ROOT / "packaging" / "truegreen.1"
SERVICE = ROOT / "examples" / "systemd" / "truegreen.service"
CONTAINER = ROOT / "Containerfile"
VENDOR = ROOT / "src/truegreen/faces/web/static/vendor/vendor.json"


def script(name: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / name, *words],
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    )
    return done.stdout


# --- the manual page


def test_the_manual_page_is_what_the_catalogue_says() -> None:
    script("man", "--check")


def test_the_manual_page_names_every_command_and_formats_without_a_warning() -> None:
    text = PAGE.read_text()
    assert [name for name in COMMANDS if f"\n.B {name}\n" not in text] == []
    if shutil.which("groff") is None:
        missing("groff")
    words = ["groff", "-man", "-Tutf8", "-ww", "-z", str(PAGE)]
    assert subprocess.run(words, capture_output=True, check=True, timeout=20).stderr == b""


# --- the bill of materials


def bill() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(script("sbom"))
    return found


def names_of(lines: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", line)[0] for line in lines}


def test_the_bill_lists_all_that_is_shipped_and_no_tool() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = names_of(project["project"]["dependencies"])
    wanted |= {
        name
        for extra in ("postgres", "tui", "mcp", "notify", "fast")
        for name in names_of(extras[extra])
    }
    libraries = {each["name"] for each in bill()["components"] if each["type"] == "library"}
    assert wanted <= libraries
    assert {"anyio", "h11", "markupsafe", "pydantic-core"} <= libraries, "what those need, too"
    assert libraries & {"pytest", "ruff", "mypy", "hypothesis", "ray", "hatchling"} == set()


def test_versions_and_digests_in_the_bill_are_those_of_the_lock() -> None:
    lock = (ROOT / "requirements-dev.txt").read_text()
    libraries = [each for each in bill()["components"] if each["type"] == "library"]
    assert libraries
    for each in libraries:
        entry = re.search(
            rf"^{re.escape(each['name'])}(?:\[.*\])?=={re.escape(each['version'])}[ \n]"
            r"(?:.*\\\n)*.*",
            lock,
            re.MULTILINE,
        )
        assert entry, each["name"]
        (archives,) = each["externalReferences"]
        digests = {digest["content"] for digest in archives["hashes"]}
        assert digests == set(re.findall(r"sha256:(\w+)", entry[0]))


def test_what_the_bill_says_depends_on_what_is_in_it() -> None:
    document = bill()
    known = {each["bom-ref"] for each in document["components"]}
    known.add(document["metadata"]["component"]["bom-ref"])
    links = document["dependencies"]
    assert {link["ref"] for link in links} <= known
    assert {ref for link in links for ref in link["dependsOn"]} <= known
    (own,) = [link for link in links if link["ref"] == "pkg:pypi/truegreen"]
    assert any(ref.startswith("pkg:pypi/apsw@") for ref in own["dependsOn"])


def test_the_same_lock_makes_the_same_bill_and_names_no_address() -> None:
    text = script("sbom")
    assert script("sbom") == text
    addresses = set(re.findall(r"https?://[^\"]*", text))
    assert addresses == {"http://cyclonedx.org/schema/bom-1.6.schema.json"}


def test_a_lock_for_running_it_has_a_digest_for_each_entry() -> None:
    entries = re.split(r"^(?=\S)", script("sbom", "--requirements"), flags=re.MULTILINE)[1:]
    assert len(entries) > 20
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    builder = script("sbom", "--requirements", "hatchling")
    assert re.findall("^(hatchling|packaging|apsw)==", builder, re.MULTILINE) == [
        "hatchling",
        "packaging",
    ]


# --- notices


def test_the_notices_list_every_vendored_file_with_licence_and_digest() -> None:
    rows = (ROOT / "THIRD_PARTY.md").read_text().splitlines()
    listed = json.loads(VENDOR.read_text())
    for each in listed:
        (row,) = [row for row in rows if row.startswith(f"| `{each['file']}` |")]
        for fact in (f"{each['name']} {each['version']}", each["from"], each["sha256"]):
            assert fact in row
        assert f"| {each['licence']}" in row
    assert sum(row.startswith("| `") for row in rows) == len(listed)


# --- the service and the container


def test_systemd_accepts_the_service(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        missing("systemd-analyze")
    unit = tmp_path / SERVICE.name
    program = "/usr/local/bin/truegreen"
    unit.write_text(SERVICE.read_text().replace(program, shutil.which("true") or ""))
    words = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_service_is_bounded_and_leaves_the_jail_its_namespaces() -> None:
    said = dict(re.findall(r"^(\w+)=(.*)$", SERVICE.read_text(), re.MULTILINE))
    bounds = {"NoNewPrivileges": "yes", "ProtectSystem": "strict", "CapabilityBoundingSet": ""}
    assert bounds.items() <= said.items()
    assert said["User"] not in ("", "root")
    assert said.keys() & {"RestrictNamespaces", "ProtectProc", "ProtectKernelTunables"} == set()
    command = said["ExecStart"].split()
    assert command[1] in COMMANDS
    assert said["Environment"] == "XDG_STATE_HOME=/var/lib"
    assert said["StateDirectory"] == "truegreen", "which is where XDG_STATE_HOME leads"


def steps() -> list[list[str]]:
    text = re.sub(r"^#.*\n", "", CONTAINER.read_text(), flags=re.MULTILINE)
    return [line.split() for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def test_the_container_copies_only_what_is_there_and_enough_to_build() -> None:
    copied = {
        word
        for step in steps()
        if step[0] == "COPY" and not step[1].startswith("--from")
        for word in step[1:-1]
    }
    assert [word for word in copied if not (ROOT / word).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    wanted = {*project["project"]["license-files"], *wheel["packages"], *wheel["shared-data"]}
    wanted |= {project["project"]["readme"], "pyproject.toml", "requirements-dev.txt"}
    tops = {name.split("/")[0] for name in wanted}
    assert tops <= copied, "what the build reads is copied"


def test_what_the_container_starts_answers_the_question_after_its_health(tmp_path: Path) -> None:
    said = {step[0]: " ".join(step[1:]) for step in steps()}
    start = [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"]), "--port", "0", "--json"]
    with subprocess.Popen(
        [Path(sys.executable).with_name(start[0]), *start[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    ) as server:
        assert server.stdout
        try:
            port = json.loads(server.stdout.readline())["port"]
            asked = json.loads(said["HEALTHCHECK"].removeprefix("CMD "))
            asked = [sys.executable, *(word.replace(":8787/", f":{port}/") for word in asked[1:])]
            assert ":8787/" in said["HEALTHCHECK"]
            assert said["EXPOSE"] == str(Web().port) == "8787"
            assert subprocess.run(asked, check=False, timeout=20).returncode == 0
        finally:
            server.send_signal(getattr(signal, said["STOPSIGNAL"]))
        assert server.wait(20) == 0
    assert subprocess.run(asked, check=False, capture_output=True, timeout=20).returncode != 0


def test_the_container_runs_a_known_command_as_nobody_special() -> None:
    said = {step[0]: step[1:] for step in steps()}
    assert said["USER"] == ["truegreen"]
    assert json.loads(" ".join(said["ENTRYPOINT"])) == ["truegreen"]
    assert json.loads(" ".join(said["CMD"]))[0] in COMMANDS
    assert all(step[1].startswith("python:") for step in steps() if step[0] == "FROM")
    (install,) = [step for step in steps() if step[0] == "RUN" and "/builder" in step]
    assert install.count("--require-hashes") == 2
