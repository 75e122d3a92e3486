"""The gate kind `http`: a probe from outside, if need be of a server started from the clean copy.

Looks at the status and the body, bounded in size and time. It asks nobody but the host that the
contract names, and nobody but this machine unless the gate may use the network.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Gate
from truegreen.model import Level
from truegreen.work import process
from truegreen.work.gates.output import last_line, one_line, text_of
from truegreen.work.gates.probe import REFUSED, Probe, Response, Target, free_port, target_of
from truegreen.work.gates.run import (
    killed_in_shell,
    launch_of,
    located,
    seconds,
    trouble,
    with_evidence,
)
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error, passed

_ANSWERED = "answered"
_TICK_S = 0.05
_NOT_OURS = "the server was not started from the clean copy: nobody knows which code answered"


def check(gate: Gate, scene: Scene) -> Answer:
    """Passed if the address answers with the status, and with the text where one is asked for."""
    port = free_port() if gate.command else 0
    target = target_of(_filled(gate.url, port))
    if isinstance(target, str):
        return gate_error(target)
    if not (target.local or gate.network):
        return gate_error(f"{target.host} is not this machine; the gate needs network = true")
    if gate.command:
        return _served(gate, scene, target, port)
    return _asked(gate, scene, target)


def _asked(gate: Gate, scene: Scene, target: Target) -> Answer:
    """Ask a server that somebody else runs."""
    probe = Probe(target, gate.status, seconds(gate.timeout), patient=False)
    probe.start()
    try:
        while probe.is_alive():
            probe.join(_TICK_S)
            if scene.tick and (word := scene.tick()):
                return gate_error(f"stopped ({word})")
    finally:
        probe.stop()
    answer = _judged(gate, target, probe.response)
    return replace(answer, evidence={**answer.evidence, "short": [_NOT_OURS]})


def _filled(text: str, port: int) -> str:
    return re.sub(r"\$PORT\b|\$\{PORT\}", str(port), text) if port else text


def _served(gate: Gate, scene: Scene, target: Target, port: int) -> Answer:
    """Start the server, ask until it answers, and end it; all of its processes."""
    if target.taken():
        return gate_error(f"something else answers at {target.host}:{target.port} already")
    words = tuple(_filled(word, port) for word in gate.command)
    found = located(words, scene)
    # A network of its own would hide the server from the probe, too.
    launch = launch_of(gate, scene, found, network=True, PORT=str(port))
    probe = Probe(target, gate.status, seconds(gate.timeout), patient=True)
    probe.start()
    try:
        ended = process.run(
            launch,
            tick=lambda: f"!{_ANSWERED}" if probe.done else scene.tick and scene.tick(),
            tick_s=_TICK_S,
        )
    finally:
        probe.stop()
    answer = _of_server(gate, target, probe, ended, scene)
    answer = with_evidence(answer, words, found, ended, scene)
    # Whatever the server does to itself, it is judged by a process that it can't reach.
    return replace(answer, level=Level.A4)


def _of_server(
    gate: Gate, target: Target, probe: Probe, ended: process.Ended, scene: Scene
) -> Answer:
    if probe.done:
        return _judged(gate, target, probe.response)
    if killed := killed_in_shell(gate.command, ended.code, scene):
        return gate_error(killed, lasting=False)
    if ended.code is not None and not ended.stopped and not ended.launch_error:
        said = last_line(text_of(ended.stdout.tail))
        return failed(f"the server ended with exit {ended.code} before it answered: {said}")
    return gate_error(trouble(ended, gate.timeout) or "the server did not answer", lasting=False)


def _judged(gate: Gate, target: Target, response: Response | str | None) -> Answer:
    if not isinstance(response, Response):
        return _unanswered(gate, target, response)
    evidence: dict[str, Any] = {
        "url": str(target),
        "status": response.status,
        "body_bytes": len(response.body),
        "body": one_line(response.body[:2000].decode("utf-8", "replace"), 500),
        "cut": response.cut,
    }
    if response.status != gate.status:
        onward = f" (and redirects to {response.elsewhere})" if response.elsewhere else ""
        said = f"{target} answered {response.status}{onward}, not {gate.status}"
        return failed(said, **evidence)
    if gate.contains and gate.contains.encode() not in response.body:
        what = "the first part of its answer" if response.cut else "its answer"
        give_up = gate_error if response.cut else failed
        return give_up(f"{target}: {what} does not contain {gate.contains[:80]!r}", **evidence)
    return passed(f"{target} answered {response.status}", **evidence)


def _unanswered(gate: Gate, target: Target, why: str | None) -> Answer:
    if why == REFUSED:
        return failed(f"{target}: {why}")
    return gate_error(f"{target}: {why or f'no answer within {gate.timeout}'}", lasting=False)
