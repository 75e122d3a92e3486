"""The gate kind `tap`: any runner that prints TAP on its standard output, on the clean copy.

Errors go elsewhere, so that nothing gets between the lines. What counts is what counts for JUnit:
exit code, report and the tests from before the agent must agree. A2 at most, for the same reason.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from truegreen.contract import Gate
from truegreen.work import process
from truegreen.work.documents import Trouble, read_regular
from truegreen.work.gates.junit import judged, no_answer
from truegreen.work.gates.output import tail_of, text_of
from truegreen.work.gates.reports import REPORT_BYTES, read_tap
from truegreen.work.gates.run import launch_of, located, with_evidence
from truegreen.work.gates.scene import Answer, Scene, gate_error

_ERROR_BYTES = 2048


def check(gate: Gate, scene: Scene) -> Answer:
    """Run the command and judge what it prints."""
    found = located(gate.command, scene)
    launch = launch_of(gate, scene, found)
    errors = os.path.join(scene.scratch, f"errors-{os.urandom(8).hex()}.log")
    launch = replace(launch, stderr_path=errors)
    ended = process.run(launch, tick=scene.tick)
    answer = no_answer(gate, scene, ended) or _answer(scene, launch.stdout_path, ended)
    if said := tail_of(text_of(ended.stderr.tail), _ERROR_BYTES):
        answer = replace(answer, evidence={**answer.evidence, "errors": said})
    return with_evidence(answer, gate.command, found, ended, scene)


def _answer(scene: Scene, path: str, ended: process.Ended) -> Answer:
    found = read_regular(path, within=os.path.dirname(path), limit=REPORT_BYTES)
    if isinstance(found, Trouble) or ended.stdout.truncated:
        why = found.reason if isinstance(found, Trouble) else "is cut off: there was too much of it"
        return gate_error(f"the output {why}")
    cases = read_tap(found.data, (scene.sight, scene.root))
    if isinstance(cases, str):
        return gate_error(f"the output is no TAP report: {cases} (exit {ended.code})")
    return judged(cases, scene, ended.code or 0)
