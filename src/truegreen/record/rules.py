"""What a rule of the database is, and those about conversations and about routines.

The rules about tasks, runs and the rest are in `guards.py`.
"""

from __future__ import annotations

from truegreen.tuples import NamedTuple


class Rule(NamedTuple):
    """Refuse with this code and message when the condition holds."""

    code: str
    condition: str
    message: str


class Guard(NamedTuple):
    """The rules before, or the effects after, one kind of write to one table."""

    name: str
    table: str
    moment: str
    rules: tuple[Rule, ...] = ()
    effects: tuple[str, ...] = ()
    when: str = ""


def changed(*columns: str) -> str:
    """That one of these columns would change."""
    return " OR ".join(f"NEW.{column} IS DISTINCT FROM OLD.{column}" for column in columns)


CONVERSATIONS = (
    Guard(
        "agents_registered",
        "agents",
        "BEFORE INSERT",
        (
            Rule(
                "terminated",
                "NEW.status <> 'terminated' AND EXISTS (SELECT 1 FROM agents p"
                " WHERE p.key = NEW.parent_key AND p.status = 'terminated')",
                "a child of a terminated agent is terminated",
            ),
        ),
    ),
    Guard(
        "agents_kept",
        "agents",
        "BEFORE UPDATE",
        (
            Rule(
                "terminated",
                "OLD.status = 'terminated' AND ("
                + changed("status", "terminated_at", "session")
                + ")",
                "terminated is final",
            ),
            Rule(
                "illegal_move",
                "NEW.status <> OLD.status AND NOT {legal_agent_step}",
                "no edge leads between these statuses of an agent",
            ),
            Rule(
                "forbidden",
                changed("key", "id", "name", "definition", "parent_key", "registered_by")
                + " OR "
                + changed("created_at", "kind"),
                "the identity of an agent is frozen",
            ),
        ),
    ),
    Guard(
        "messages_heard",
        "messages",
        "BEFORE INSERT",
        (
            Rule(
                "terminated",
                "EXISTS (SELECT 1 FROM agents a WHERE a.key = NEW.agent_key"
                " AND a.status = 'terminated')",
                "a terminated agent gets no messages",
            ),
        ),
    ),
    Guard(
        "messages_kept",
        "messages",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "id", "agent_key", "sender", "body", "idempotency_key", "at"),
                "a message stays as it was sent",
            ),
        ),
    ),
    Guard(
        "wakes_armed",
        "wakes",
        "BEFORE INSERT",
        (
            Rule(
                "terminated",
                "EXISTS (SELECT 1 FROM agents a WHERE a.key = NEW.agent_key"
                " AND a.status = 'terminated')",
                "a terminated agent is never woken",
            ),
            Rule("illegal_move", "NEW.state <> 'armed'", "a wake-up begins armed"),
        ),
    ),
    Guard(
        "wakes_kept",
        "wakes",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "id", "agent_key", "cause", "body", "due_at", "armed_by")
                + " OR "
                + changed("created_at")
                + " OR (OLD.task_key IS NOT NULL AND "
                + changed("task_key")
                + ")",
                "a wake-up stays as it was armed",
            ),
            Rule(
                "illegal_move",
                "OLD.state || '>' || NEW.state NOT IN"
                " ('armed>ready', 'armed>void', 'ready>fired', 'ready>void')",
                "a wake-up is used once",
            ),
            Rule(
                "terminated",
                "NEW.state <> 'void' AND EXISTS (SELECT 1 FROM agents a"
                " WHERE a.key = NEW.agent_key AND a.status = 'terminated')",
                "a terminated agent does not wake",
            ),
        ),
    ),
)

RECURRENCES = (
    Guard(
        "routines_kept",
        "routines",
        "BEFORE UPDATE",
        (
            Rule("forbidden", changed("key", "name", "created_at"), "a routine keeps its name"),
            Rule(
                "stale",
                "NEW.revision <> OLD.revision + 1 OR NEW.generation < OLD.generation"
                " OR (NEW.generation = OLD.generation AND NEW.kind = OLD.kind"
                " AND NEW.iteration < OLD.iteration)",
                "a cycle never goes back",
            ),
            Rule(
                "forbidden",
                f"({changed('settings', 'contract')}) AND NEW.digest = OLD.digest",
                "what a routine does changes only with its digest: settings taken over mend it",
            ),
        ),
    ),
    Guard(
        "occurrences_kept",
        "occurrences",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "routine_key", "slot", "generation", "first_at", "due_at", "times")
                + " OR "
                + changed("actor", "at"),
                "an occurrence stays what it is about",
            ),
            Rule(
                "forbidden",
                "OLD.state <> 'waiting' OR NEW.state = 'waiting'",
                "what became of an occurrence stays; one that waits becomes something once",
            ),
        ),
    ),
)
