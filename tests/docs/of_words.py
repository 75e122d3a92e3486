"""The pages about the words of truegreen: statuses and edges, events, errors, metrics."""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.markdown import code, page, table, words
from truegreen import errors
from truegreen.assurance import MEANINGS
from truegreen.errors import TruegreenError
from truegreen.faces.cli.states import diagram
from truegreen.model import (
    CELLS,
    DETAILS,
    ENDS,
    MATRIX,
    NO_BLIND_RETRY,
    PALETTE,
    RESCUABLE,
    RUNS,
    AgentStatus,
    Cell,
    ClaimKind,
    Disposition,
    EndedBy,
    FindingOutcome,
    InboxState,
    Light,
    Mode,
    Move,
    NoopPolicy,
    Note,
    Outcome,
    Phase,
    ProofMode,
    ProofStatus,
    Role,
    Severity,
    Standing,
    TaskStatus,
)
from truegreen.outlets import metrics as numbers
from truegreen.outlets.mapping import event_type
from truegreen.record.lifecycle import AGENT_EDGES, EDGES, FINAL, SETTLED, VERB_ROLES, allowed
from truegreen.spelling import ALIASES

NOTES: dict[Note, str] = {
    Note.OPEN: "a task was created, with its frozen contract",
    Note.SEEN: "the process of a run was seen alive",
    Note.CLAIM: "the agent declared something; the first word counts",
    Note.FINDINGS: "checks answered",
    Note.END: "a run ended, and what follows is decided by its checks",
    Note.CHARGE: "a budget paid: a re-entry, an error of a check",
    Note.ADOPT: "a run got another owner, or is checked again",
    Note.SEAL: "terminate met a settled task: it keeps its status, for ever",
    Note.MODE: "another mode; that approves nothing",
    Note.AGENT: "of agents and of the whole house: registered, woken, ended; breaker, freeze, thaw",
    Note.MESSAGE: "a message was left for an agent",
    Note.TOKEN: "a token was made or revoked",
    Note.INBOX: "an item was taken, put off or resolved",
}
"""What the events mean that move nothing; a new one needs its words here."""
CLOSED = (
    ("What an agent may claim", ClaimKind),
    ("What a check finds", FindingOutcome),
    ("When a check ran", Phase),
    ("What a verdict rests on", Standing),
    ("Whether a verdict is proven", ProofStatus),
    ("What a task must show", ProofMode),
    ("What becomes of a declared noop", NoopPolicy),
    ("What happens at a checkpoint", Mode),
    ("Who ended a run", EndedBy),
    ("What became of a message", Disposition),
    ("How far a person got with an inbox item", InboxState),
    ("How urgent an inbox item is", Severity),
)
EXITS = (
    (0, "succeeded, and nothing else; of other commands: done"),
    (1, "failed"),
    (2, "usage, or refused: change the request"),
    (3, "a person is needed: `needs_review`, `blocked`, `awaiting_approval`, or under way"),
    (4, "cap hit"),
    (5, "infrastructure: an outage, a lost run, a gate or a store that can't answer"),
    (6, "canceled or terminated"),
    (70, "a defect; a report is written under `reports/` in the state directory"),
    (75, "deferred, or not settled yet"),
    (130, "interrupted"),
)
OF_THE_COMMAND_LINE = (
    ("usage", "2", "", "The command line itself is wrong; the nearest right word is offered."),
    ("interrupted", "130", "", "Ctrl-C; the message says how far it came."),
    ("internal", "70", "", "A defect that nobody expected; the message names its report."),
)


def statuses() -> str:
    """Both axes, the edges between statuses, and the diagram of them."""
    return page(
        "Statuses and edges",
        "`truegreen states` prints the same, `truegreen states --mermaid` the diagram alone. What"
        " the words are for: [two axes](../concepts/two-axes.md).",
        "## Statuses of a task",
        "*Settled*: nothing automatic leads out. *Final*: nothing leads out.",
        table(
            ("status", "glyph", "colour", "end", "meaning", "leads out"),
            (
                (f"`{s}`", look.glyph, _colour(look.rgb), _end(s), look.meaning, words(allowed(s)))
                for s, look in PALETTE.items()
            ),
        ),
        "Where a status is read (`--status`, `?status=`, tools, `top`), capitals and hyphens are"
        " understood, too, and what other systems call it. What is given out is spelled as above.",
        table(
            ("status", "called elsewhere"),
            (
                (f"`{s}`", words(name for name, own in ALIASES.items() if own == s))
                for s in PALETTE
                if s in ALIASES.values()
            ),
        ),
        "## Edges",
        "Everything else is refused, by the program and by the triggers of the database.",
        table(
            ("event", "from", "to", "by itself", "by"),
            (
                (f"`{e.move}`", words(e.sources), f"`{e.target}`", _yes(e.automatic), e.by)
                for e in EDGES
            ),
        ),
        "## Diagram",
        code(diagram(), "mermaid"),
        "![The same, drawn](states.svg)",
        "## Statuses of a run",
        table(
            ("status", "light", "ended", "meaning"),
            ((f"`{s}`", str(r.light), _yes(r.ended), r.meaning) for s, r in RUNS.items()),
        ),
        *_exits(),
        *_cells(),
        *_agents(),
        *_others(),
    )


def _exits() -> Iterator[str]:
    yield "## Why a run ended"
    yield (
        "`exit_reason` is empty exactly while the run has not ended. *Rescuable*: checks may still"
        " find the work done. *Not blindly*: another attempt would only repeat it."
    )
    yield table(
        ("reason", "run ends as", "detail", "rescuable", "not blindly"),
        (
            (f"`{r}`", words(ENDS[r]), f"`{d}`", _yes(d in RESCUABLE), _yes(d in NO_BLIND_RETRY))
            for r, details in DETAILS.items()
            for d in details
        ),
    )


def _cells() -> Iterator[str]:
    yield "## The matrix"
    yield "Rows are the light of the run, columns the verdict."
    lights = [light for light in Light if (light, Outcome.PASSED) in MATRIX]
    yield table(
        ("run", *(str(outcome) for outcome in Outcome)),
        ((str(light), *(f"`{MATRIX[light, o]}`" for o in Outcome)) for light in lights),
    )
    yield (
        f"A green run over failed work stands in the cell `{Cell.REPORTED_FAILURE}` if its agent"
        " said that the work is not done, by its claim or in its last words."
    )
    yield (
        "A run that ended `blocked`, and whose work did not pass, stands in the cell"
        f" `{Cell.BLOCKED}`, whatever its light."
    )
    yield table(
        ("cell", "title", "light", "inbox", "means"),
        (
            (f"`{c}`", look.title, str(look.light), look.route or "", look.sentence)
            for c, look in CELLS.items()
        ),
    )


def _agents() -> Iterator[str]:
    yield "## Statuses of an agent"
    yield (
        "An agent is a conversation that outlives its runs. `terminated` is the permanent removal"
        " from the resumable pool."
    )
    yield table(
        ("status", "leads to"),
        ((f"`{s}`", words(t for t in AgentStatus if t in AGENT_EDGES[s])) for s in AgentStatus),
    )


def _others() -> Iterator[str]:
    yield "## Levels"
    yield table(
        ("level", "is", "means", "leaves open"),
        ((f"`{level}`", m.word, m.means, m.unproven) for level, m in MEANINGS.items()),
    )
    yield "## Other closed sets"
    yield table(("set", "words"), ((title, words(enum)) for title, enum in CLOSED))
    yield "## Roles"
    yield "Who may use which group of verbs; everybody else is refused."
    yield table(
        ("role", "verbs"),
        ((f"`{r}`", words(v for v, roles in VERB_ROLES.items() if r in roles)) for r in Role),
    )


def events() -> str:
    """Every event of the history."""
    moves = {move: [edge for edge in EDGES if edge.move is move] for move in Move}
    return page(
        "Events",
        "The history is append-only and hash-chained. An event says who did what to which task and"
        " run, from where to where, why and when. `truegreen events TASK` prints it, `GET"
        " /api/v1/events` streams it.",
        "## Events that move a task",
        table(
            ("event", "from", "to", "by"),
            (
                (f"`{move}`", words(edge.sources), f"`{edge.target}`", edge.by)
                for move, edges in moves.items()
                for edge in edges
            ),
        ),
        "## Events that move nothing",
        table(("event", "says"), ((f"`{note}`", NOTES[note]) for note in Note)),
        "An event is `info` or `warn`. A warning is something that a person should see: a"
        " checkpoint in autonomous mode, a hasty approval, a write past the ledger.",
        "## What leaves the house",
        "News of a task ([alerts](../manual/alerts.md)) has one of these types:",
        table(
            ("status", "CloudEvents type"),
            ((f"`{status}`", f"`{event_type(status)}`") for status in TaskStatus),
        ),
    )


def error_codes() -> str:
    """Every code with its exit status and its HTTP status."""
    kinds = [kind for kind in _family(TruegreenError) if kind.__module__ == errors.__name__]
    return page(
        "Errors and exit statuses",
        'With `--json`, and over HTTP, an error is `{"error": {"code", "message", "allowed"}}`.'
        " `allowed` names what would be accepted instead. *Try again*: the same request may work"
        " later.",
        "## Codes",
        table(
            ("code", "family", "exit", "HTTP", "try again", "means"),
            (
                (
                    f"`{kind.code}`",
                    _family_name(kind),
                    str(kind.exit_status),
                    str(kind.http_status),
                    _yes(kind.retryable),
                    (kind.__doc__ or "").strip(),
                )
                for kind in kinds
            ),
        ),
        "*Refused*: change the request. *Unavailable*: wait, or mend the surroundings. *Broken*:"
        " report it.",
        "The command line has three more:",
        table(
            ("code", "exit", "means"),
            ((f"`{c}`", exit_, means) for c, exit_, _, means in OF_THE_COMMAND_LINE),
        ),
        "## Exit statuses",
        "Of `run`, `attempt`, `resume`, `wait` and `verify`; other commands use 0, 2, 5, 70 and"
        " 130. Which status and cell gives which: [mapping](../manual/mapping.md).",
        table(("exit status", "means"), ((str(n), means) for n, means in EXITS)),
    )


def _family(kind: type[TruegreenError]) -> list[type[TruegreenError]]:
    below = [each for child in kind.__subclasses__() for each in _family(child)]
    return below if kind is TruegreenError else [kind, *below]


def _family_name(kind: type[TruegreenError]) -> str:
    return next(k.__name__ for k in reversed(kind.__mro__[:-4]) if k is not TruegreenError)


def metrics() -> str:
    """Every metric with its labels."""
    named = [
        *((f"{each.name}_total", "counter", each) for each in numbers.COUNTERS),
        *(
            (f"{numbers.CHECK_SECONDS.name}_{end}", "summary", numbers.CHECK_SECONDS)
            for end in ("sum", "count")
        ),
        *((each.name, "gauge", each) for each in numbers.GAUGES),
    ]
    return page(
        "Metrics",
        "`GET /metrics`, in Prometheus' text format. How to scrape them, and what they promise:"
        " [metrics](../manual/metrics.md).",
        table(
            ("metric", "kind", "labels", "says"),
            ((f"`{name}`", kind, words(e.labels), e.words) for name, kind, e in named),
        ),
    )


def _colour(rgb: tuple[int, int, int]) -> str:
    return "`#{:02x}{:02x}{:02x}`".format(*rgb)


def _end(status: object) -> str:
    return "final" if status in FINAL else "settled" if status in SETTLED else ""


def _yes(value: bool) -> str:
    return "yes" if value else ""
