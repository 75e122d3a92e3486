"""The words of claims: what a statement is about, what became of it, and how much of it is kept.

Only names and limits. Who reads messages, files and findings finds the same words here.
"""

from __future__ import annotations

LIMIT = 65536
MOST_STATEMENTS = 50
REASON_BYTES = 4000
STATEMENT_CHARACTERS = 200

TESTS, BUILD, LINT, DEPLOY = "tests", "build", "lint", "deploy"
FILE, COMMIT, PUSH, BRANCH, PR = "file", "commit", "push", "branch", "pr"
URL, COUNT = "url", "count"
ADMISSION = "admission"
"""That the work is not done, in the agent's own words."""
EFFECT = "effect"
"""What earlier records call pushes and deployments alike."""

CONFIRMED, CONTRADICTED, UNVERIFIABLE = "confirmed", "contradicted", "unverifiable"
