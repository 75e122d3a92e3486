"""What agents say about their work, and what was observed of it. Read, never believed.

`files` reads declarations, `statements` finds what a message states, `checking` holds both against
what the host found. Whether the work is done is the gates' to say, not this room's.
"""

from __future__ import annotations

from truegreen.work.claims.checking import checked_statements
from truegreen.work.claims.files import (
    CLOCK_SLACK_NS,
    KINDS,
    Rejected,
    counted,
    read_claim_file,
)
from truegreen.work.claims.history import History
from truegreen.work.claims.kinds import (
    BRANCH,
    BUILD,
    COMMIT,
    CONFIRMED,
    CONTRADICTED,
    COUNT,
    DEPLOY,
    EFFECT,
    FILE,
    LIMIT,
    LINT,
    MOST_STATEMENTS,
    PR,
    PUSH,
    REASON_BYTES,
    STATEMENT_CHARACTERS,
    TESTS,
    UNVERIFIABLE,
    URL,
)
from truegreen.work.claims.observed import Left, left_of
from truegreen.work.claims.statements import statements_in, statements_of

__all__ = [
    "BRANCH",
    "BUILD",
    "CLOCK_SLACK_NS",
    "COMMIT",
    "CONFIRMED",
    "CONTRADICTED",
    "COUNT",
    "DEPLOY",
    "EFFECT",
    "FILE",
    "KINDS",
    "LIMIT",
    "LINT",
    "MOST_STATEMENTS",
    "PR",
    "PUSH",
    "REASON_BYTES",
    "STATEMENT_CHARACTERS",
    "TESTS",
    "UNVERIFIABLE",
    "URL",
    "History",
    "Left",
    "Rejected",
    "checked_statements",
    "counted",
    "left_of",
    "read_claim_file",
    "statements_in",
    "statements_of",
]
