"""What an agent says about its work, in the words of the run's door; the same from every face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COUNTS = ("passed", "failed", "skipped")


def declared(
    kind: str,
    reason: str,
    *,
    tests: Mapping[str, int] | None = None,
    evidence: Sequence[str] = (),
    detail: str | None = None,
) -> dict[str, Any]:
    """A claim: tests as they were counted, files that show it, what is in the way."""
    statements = [{"text": path, "kind": "file"} for path in evidence]
    extra: dict[str, Any] = {"evidence": list(evidence)} if evidence else {}
    if tests:
        words = ", ".join(f"{number} {name}" for name, number in tests.items())
        statements.insert(0, {"text": words, "kind": "tests"})
        extra["tests"] = dict(tests)
    if detail:
        extra["detail"] = detail
    return {"kind": kind, "reason": reason, "statements": statements, "extra": extra}
