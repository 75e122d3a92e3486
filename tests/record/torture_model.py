"""A tiny second truegreen: what each verb must answer, written by hand from the design.

It shares no table and no function with the real one; where they differ, one of them is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CHECKED = ("pending_eval", "failed_pending_eval", "pending_qa")
UNPROVEN = ("running", *CHECKED, "needs_review")
UNSETTLED = ("queued", "awaiting_approval", *UNPROVEN)
EDGES: dict[str, tuple[tuple[str, ...], str]] = {
    "start": (("queued",), "running"),
    "declare": (("running",), "pending_eval"),
    "fall_silent": (("running",), "failed_pending_eval"),
    "pause": (("running",), "awaiting_approval"),
    "resume": (("awaiting_approval",), "running"),
    "block": (("running", "awaiting_approval", "failed_pending_eval"), "blocked"),
    "retry": (UNPROVEN, "queued"),
    "fail": (UNPROVEN, "failed"),
    "review": (CHECKED, "needs_review"),
    "chain": (("pending_eval", "failed_pending_eval"), "pending_qa"),
    "accept": ((*CHECKED, "needs_review"), "succeeded"),
    "unblock": (("blocked",), "queued"),
    "reopen": (("failed", "canceled", "succeeded"), "queued"),
    "cancel": ((*UNSETTLED, "blocked"), "canceled"),
    "terminate": ((*UNSETTLED, "blocked"), "terminated"),
}
SETTLED = ("blocked", "succeeded", "failed", "canceled", "terminated")
HINDERED = ("permission_denied",)
RESCUABLE = ("unclaimed", "agent_error", "turn_cap", *HINDERED)
NOT_RETRIED = ("auth_invalid", "permission_denied", "turn_cap")
EXITS = (
    *("completed", "noop", "unclaimed", "agent_error", "turn_cap", "permission_denied", "refused"),
    *("rate_limited", "signaled", "auth_invalid", "stopped"),
)
DEFERRALS = 3
REENTRIES = 2


TREELESS = {"approval_checkpoint", "canceled", "terminated", "process_lost"}
"""Exits by somebody else than the supervisor of the run: nobody took the digest of a tree."""


class No(Exception):
    """The code of the refusal."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Pass:
    """A ticket: the fence and the lease that it shows, and the run it is for."""

    run: int
    fence: int
    lease: int


@dataclass
class ModelRun:
    """One attempt."""

    seen: bool = False
    exit: str = ""
    claimed: bool = False
    reentries: int = 0
    found: list[str] = field(default_factory=list)


@dataclass
class ModelTask:
    """A task as it should be."""

    mode: str
    attempts_max: int
    status: str = "queued"
    fence: int = 0
    sealed: bool = False
    falsified: bool = False
    rejected: bool = False  # by a person, with the tree that every run leaves
    attempts: int = 0
    deferrals: int = 0
    runs: list[ModelRun] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    lease: int = 0  # of the latest run; 0 is nobody's
    leases: int = 0

    # -- what every verb asks first -------------------------------------------------------------

    def move(self, event: str) -> None:
        """Along an edge, or not at all."""
        if self.sealed:
            raise No("terminated")
        sources, target = EDGES[event]
        if self.status not in sources:
            raise No("illegal_move")
        self.status = target

    def held(self, ticket: Pass, *, by_agent: bool = False) -> ModelRun:
        """The run that a ticket is for, if it still counts."""
        if self.sealed:
            raise No("terminated")
        if ticket.fence != self.fence:
            raise No("stale")
        if not by_agent and not self.owns(ticket):
            raise No("stale")
        return self.runs[ticket.run]

    def owns(self, ticket: Pass) -> bool:
        """Whether a ticket shows the lease of the latest run."""
        latest = ticket.run == len(self.runs) - 1
        return latest and self.lease != 0 and ticket.lease == self.lease

    def live(self, ticket: Pass, *, by_agent: bool = False) -> ModelRun:
        """The same, if the run has not ended."""
        run = self.held(ticket, by_agent=by_agent)
        if run.exit:
            raise No("stale")
        return run

    # -- consequences ---------------------------------------------------------------------------

    def fail_or_retry(self, detail: str) -> None:
        """Another attempt while there is one left and it makes sense."""
        retried = detail not in NOT_RETRIED and self.attempts + 1 < self.attempts_max
        self.move("retry" if retried else "fail")
        self.attempts += 1

    def follow(self, detail: str) -> None:
        """Where an exit leads."""
        if detail == "stopped":
            self.move("cancel")
        elif detail in ("completed", "noop"):
            self.move("declare")
        elif detail in RESCUABLE:
            self.move("fall_silent")
        elif detail in ("refused", "approval_checkpoint", "approval_expired"):
            self.move("block")
        elif detail == "rate_limited" and self.deferrals < DEFERRALS:
            self.move("retry")
            self.deferrals += 1
        elif detail == "rate_limited":
            self.move("fail")
            self.attempts += 1
        else:
            self.fail_or_retry(detail)
        if self.status not in ("pending_eval", "failed_pending_eval"):
            self.lease = 0

    def reject(self) -> None:
        """A red verdict, or a person's no."""
        detail = self.runs[-1].exit
        if self.status == "failed_pending_eval" and detail in HINDERED:
            self.move("block")
        else:
            self.fail_or_retry(detail)
        self.lease = 0

    # -- the verbs ------------------------------------------------------------------------------

    def start(self) -> None:
        self.move("start")
        self.fence += 1
        self.leases += 1
        self.lease = self.leases
        self.runs.append(ModelRun())
        self.passes.append(Pass(len(self.runs) - 1, self.fence, self.lease))

    def seen(self, ticket: Pass) -> None:
        self.live(ticket).seen = True

    def heartbeat(self, ticket: Pass) -> None:
        self.held(ticket)  # also while its checks are under way

    def declare(self, ticket: Pass) -> None:
        run = self.live(ticket, by_agent=True)
        if run.claimed:
            raise No("already_declared")
        run.claimed = True

    def charge(self, ticket: Pass) -> None:
        run = self.held(ticket)
        if run.reentries >= REENTRIES:
            raise No("budget_spent")
        run.reentries += 1

    def end_run(self, ticket: Pass, detail: str, *, move: bool) -> None:
        run = self.live(ticket)
        detail = self.gone(detail)
        if move:
            self.follow(detail)
        run.exit = detail

    def gone(self, detail: str) -> str:
        """A run that ends while it waits for an answer can't be given one any more."""
        waits = self.status == "awaiting_approval"
        return "approval_expired" if waits and detail not in ("refused", "stopped") else detail

    def settle(self, ticket: Pass) -> None:
        run = self.held(ticket)
        if not run.exit:
            raise No("not_running")
        self.follow(run.exit)

    def record(self, ticket: Pass, outcome: str, *, by_judge: bool) -> None:
        run = self.held(ticket, by_agent=by_judge)
        if not run.exit or run.exit in TREELESS:
            raise No("stale")  # it has left no tree
        run.found.append(outcome)

    def judge(self, ticket: Pass, outcome: str) -> None:
        run = self.held(ticket)
        if self.status not in ("pending_eval", "failed_pending_eval"):
            raise No("illegal_move")
        if outcome == "passed":
            if not run.found or "failed" in run.found or run.found[-1] != "passed":
                raise No("refused")
            if self.rejected:
                raise No("refused")
            self.move("accept")
            self.lease = 0
        elif outcome == "failed":
            self.reject()
        else:
            if "failed" in run.found and "passed" not in run.found:
                raise No("refused")  # a check that failed is red, and not undecided
            self.move("review")
            self.lease = 0

    def checkpoint(self, ticket: Pass) -> None:
        run = self.live(ticket, by_agent=True)
        if self.mode == "autonomous":
            self.follow("approval_checkpoint")
            run.exit = "approval_checkpoint"
        else:
            self.move("pause")
            run.seen = True

    def approve(self) -> None:
        self.paused()
        if self.runs[-1].exit:
            raise No("stale")
        self.move("resume")

    def deny(self) -> None:
        self.paused()
        if self.runs[-1].exit:
            raise No("stale")
        self.follow("approval_checkpoint")
        self.runs[-1].exit = "approval_checkpoint"

    def paused(self) -> None:
        if self.sealed:
            raise No("terminated")
        if self.status != "awaiting_approval":
            raise No("not_running")

    def unblock(self) -> None:
        self.move("unblock")
        self.pay()

    def retry(self) -> None:
        status = self.status
        if status in EDGES["reopen"][0]:
            self.reopen()
            return
        self.move("retry")
        if status == "running":
            self.status = status
            raise No("refused")  # it would leave a live run behind
        self.pay()
        self.lease = 0

    def reopen(self) -> None:
        """With a whole budget; green work that is reopened was not."""
        self.falsified = self.falsified or self.status == "succeeded"
        self.move("reopen")
        self.attempts = self.deferrals = 0

    def pay(self) -> None:
        """An attempt; a person grants what is missing for one more."""
        self.attempts_max = max(self.attempts_max, self.attempts + 2)
        self.attempts += 1

    def review(self, *, accept: bool) -> None:
        if accept and self.status in ("pending_eval", "failed_pending_eval"):
            raise No("refused")
        status = self.status
        if status == "succeeded" and not accept:
            self.reopen()
            self.refuse_tree()
            return
        self.move("accept")
        if accept:
            self.lease = 0
            return
        self.status = status
        self.refuse_tree()
        self.reject()

    def refuse_tree(self) -> None:
        """No check makes it green again, where the run left one."""
        self.rejected = self.rejected or self.runs[-1].exit not in TREELESS

    def cancel(self) -> None:
        if self.status == "canceled" and not self.sealed:
            return  # it is already
        self.move("cancel")
        self.end("canceled")

    def terminate(self) -> None:
        if self.sealed:
            return
        if self.status in SETTLED and self.status != "blocked":
            self.fence += 1
        else:
            self.move("terminate")
            self.end("terminated")
        self.sealed = True

    def end(self, detail: str) -> None:
        """From outside."""
        self.fence += 1
        self.lease = 0
        if self.runs and not self.runs[-1].exit:
            self.runs[-1].exit = detail

    def lose(self, ticket: Pass) -> None:
        self.silent(ticket)
        if self.runs[-1].exit:
            raise No("stale")
        detail = self.gone("process_lost")
        self.follow(detail)
        self.runs[-1].exit = detail
        self.fence += 1

    def adopt(self, ticket: Pass) -> None:
        self.silent(ticket)
        self.leases += 1
        self.lease = self.leases
        self.passes.append(Pass(ticket.run, self.fence, self.lease))

    def silent(self, ticket: Pass) -> None:
        """Whoever shows this lease has not been heard of."""
        if self.sealed:
            raise No("terminated")
        if not self.owns(ticket):
            raise No("stale")
