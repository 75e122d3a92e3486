"""Checks that can't run are refused before an agent is paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.record.lives import contract
from truegreen.contract import Gate, GateKind
from truegreen.errors import InvalidInput
from truegreen.supervisor.preflight import check_programs


@pytest.mark.parametrize("line", [("jq", ".ok", "report.json"), ("shellcheck", "page.sh")])
def test_a_missing_program_that_only_reads_files_is_found_too(
    tmp_path: Path, line: tuple[str, ...]
):
    terms = contract(gates=(Gate(name="read", kind=GateKind.RUN, command=line),))
    with pytest.raises(InvalidInput, match=f"runs {line[0]}, which is not installed"):
        check_programs(terms, str(tmp_path), "", lambda _: True)
    program = tmp_path / line[0]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    check_programs(terms, str(tmp_path), "", lambda _: True)
