"""Metrics where Prometheus looks for them, by the lines that the documentation gives."""

from __future__ import annotations

import re
from pathlib import Path

from tests.faces.web.conftest import Web
from truegreen.faces.web.routes import API
from truegreen.model import Role

DOCS = Path(__file__).parents[3] / "docs" / "manual"
PROMETHEUS_PATH = "/metrics"
"""Where it looks unless its settings say otherwise."""


def test_prometheus_set_up_as_documented_gets_metrics(web: Web):
    text = (DOCS / "metrics.md").read_text()
    (block,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", text, re.DOTALL)
    said = re.search(r"^ *metrics_path: *(\S+)$", block, re.MULTILINE)
    path = said[1] if said else PROMETHEUS_PATH
    answer = web.client(Role.VIEWER).get(path)
    assert answer.status_code == 200
    assert "# TYPE truegreen_runs_total counter" in answer.text
    assert "authorization: { credentials_file:" in block


def test_metrics_are_for_those_who_may_read_and_say_so_in_a_document(web: Web):
    for path in (PROMETHEUS_PATH, f"{API}/metrics"):
        refused = web.client().get(path)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert refused.json()["error"]["code"] == "unauthenticated"
    assert web.client().post(PROMETHEUS_PATH).json()["error"]["code"]
