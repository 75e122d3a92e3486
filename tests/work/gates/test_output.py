"""The line of a check's output that people read as its reason."""

from __future__ import annotations

from truegreen.work.gates.output import last_line


def test_the_version_of_node_is_no_reason():
    text = "/app/a.js:1\nlet = ;\n    ^\n\nSyntaxError: Unexpected token ';'\n\nNode.js v20.20.2\n"
    assert last_line(text) == "SyntaxError: Unexpected token ';'"
