"""`install`: our hooks and our tools in a client's own settings; shown, tried, taken out again."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from truegreen import __version__
from truegreen.app import check_outside, is_missing, ledger_of, operator
from truegreen.app import place_of as work_place_of
from truegreen.config import Config
from truegreen.contract import Contract
from truegreen.doors.event import SCRIPT
from truegreen.errors import InvalidInput, install_command
from truegreen.faces.axes import LIGHTS
from truegreen.faces.cli.faults import USAGE as REFUSED
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.outcome import OK, PERSON
from truegreen.faces.cli.paper import Ink, Paper, tint
from truegreen.faces.mcp import is_installed
from truegreen.faces.times import instant
from truegreen.model import Light
from truegreen.tuples import NamedTuple
from truegreen.work.agents import ADAPTERS, hooks, installing
from truegreen.work.agents.installing import (
    CLIENTS,
    Install,
    Plan,
    Scope,
    kept,
    merging,
    place_of,
    server_place_of,
    servers,
)
from truegreen.work.agents.installing.beacon import Sighting, look
from truegreen.work.agents.installing.checking import Fault, again, faults
from truegreen.work.agents.versions import versions_of

_MARGIN_S = 600.0
"""What a hook may take beyond the time for which a person is waited for."""
_FAIL_CLOSED_SINCE = (2, 1, 325)
_UNSEEN = Sighting(verified=None, why="not verified: --no-verify was given")
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@command(
    "install",
    "truegreen install claude-code              into your own settings: shows, asks, tries",
    "truegreen install codex --project --yes    into the settings of the project in this folder",
    "truegreen install gemini --dry-run         only the diff",
    "truegreen install qwen --no-mcp            hooks alone, without the tools",
    "truegreen install claude-code --uninstall  as it was before",
)
@click.argument("client", type=click.Choice(CLIENTS), metavar="|".join(CLIENTS))
@click.option("--project", is_flag=True, help="Into the project's settings in this folder.")
@click.option("--managed", is_flag=True, help="For the whole machine (Claude Code; needs root).")
@click.option("--uninstall", is_flag=True, help="Take our hooks out again.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody sits at a terminal.")
@click.option("--no-verify", is_flag=True, help="Do not start the client to see the hooks fire.")
@click.option("--no-mcp", is_flag=True, help="Hooks alone: leave the tools (truegreen mcp) out.")
def install(
    frame: Frame,
    client: str,
    *,
    project: bool,
    managed: bool,
    uninstall: bool,
    dry_run: bool,
    yes: bool,
    no_verify: bool,
    no_mcp: bool,
) -> int:
    """Write truegreen's hooks and tools into the settings of a client; see whether hooks fire.

    With the hooks every session of the client refuses to act for whom truegreen has terminated,
    also sessions that truegreen did not start. The tools are those of `truegreen mcp`. Everything
    else in the files stays as it is.
    Exit status: 0 when done, 3 when the client does not call the hooks.
    """
    if project and managed:
        raise click.UsageError("--project and --managed exclude each other.")
    scope = Scope.PROJECT if project else Scope.MANAGED if managed else Scope.USER
    errand = _Errand(frame, client, scope, tools=not no_mcp)
    if uninstall:
        return errand.undo(yes=yes, dry_run=dry_run)
    return errand.do(yes=yes, dry_run=dry_run, verify=not no_verify)


class _Errand:
    """One install: for a client, in a scope, with a state directory."""

    def __init__(self, frame: Frame, client: str, scope: Scope, *, tools: bool = True) -> None:
        operator()  # refuses whoever is inside a run
        self.frame, self.client, self.scope = frame, client, scope
        self.config = frame.load()
        _check_outside(self.config)
        self.cwd = os.getcwd()
        self.place = place_of(client, scope, os.environ, self.cwd)
        self.tools_place = server_place_of(client, scope, os.environ, self.cwd) if tools else None
        self.state_dir = self.config.state_dir

    def do(self, *, yes: bool, dry_run: bool, verify: bool) -> int:
        if self.scope is Scope.MANAGED and os.geteuid() and not dry_run:
            step = f"sudo truegreen install {self.client} --managed"
            raise InvalidInput(f"{self.place.path} belongs to root: {step}", allowed=("--project",))
        plans = self._planned()
        notes = [*self._notes(plans)]
        document = self._document(plans, notes, dry_run=dry_run)
        if dry_run:
            return self._give(document, lambda paper: _draw_plans(paper, plans, notes))
        if any(plan.changes for plan in plans) and not self._is_meant(plans, notes, yes=yes):
            return REFUSED
        for plan in plans:
            installing.install(plan, self.state_dir, cwd=self.cwd, version=__version__, at=_now())
        seen = self._seen(plans[0]) if verify else _UNSEEN
        notes += _version_notes(self.client) if verify else []
        document |= {**seen._asdict(), "installed": True, "notes": notes}
        self._give(document, lambda paper: _draw_installed(paper, plans, notes, seen))
        return PERSON if seen.verified is False else OK

    def _planned(self) -> list[Plan]:
        """What becomes of each file; nothing is written before all of them can be."""
        settings = hook_settings(self.client, sys.executable, SCRIPT, self.state_dir)
        place, own = self.tools_place, self._server()
        if place is None or own is None or place == self.place:
            return [installing.to_install(self.place, settings, self.state_dir, own)]
        return [
            installing.to_install(self.place, settings, self.state_dir),
            installing.to_install(place, None, self.state_dir, own),
        ]

    def _server(self) -> servers.Entry | None:
        if self.tools_place is None or not is_installed():
            return None
        return servers.entry(self.client, work_place_of(self.config).program)

    def undo(self, *, yes: bool, dry_run: bool) -> int:
        places = dict.fromkeys(filter(None, (self.place, self.tools_place)))
        plans = [installing.to_uninstall(place, self.state_dir) for place in places]
        plans = plans[:1] + [plan for plan in plans[1:] if plan.changes or plan.known]
        document = self._document(plans, [], dry_run=dry_run)
        if not dry_run:
            if any(plan.changes for plan in plans) and not self._is_meant(plans, [], yes=yes):
                return REFUSED
            for plan in plans:
                installing.uninstall(plan, self.state_dir)
        word = "would" if dry_run else "done"
        document[word] = _undone(plans[0])
        if document["mcp"]:
            document["mcp"][word] = _undone(plans[-1])
        return self._give(document, lambda paper: _draw_undone(paper, plans, dry_run=dry_run))

    def _seen(self, plan: Plan) -> Sighting:
        if not self.frame.json:
            click.echo("starting the client once to see the hooks fire …", err=True)
        switch = merging.switched_off(plan.after or "")
        return look(self.client, self.scope, os.environ, self.cwd, switch)

    def _is_meant(self, plans: list[Plan], notes: list[str], *, yes: bool) -> bool:
        """Show what would be written, and ask; a no is said."""
        if not self.frame.json:
            _draw_plans(self.frame.paper(), plans, [] if yes else notes)
        if yes:
            return True
        if self.frame.json or not sys.stdin.isatty():
            line = f"truegreen {' '.join(w for w in self.frame.words if w != '--json')} --yes"
            raise click.UsageError(f"Nothing is written without a yes: {line}")
        files = " and ".join(plan.found.path for plan in plans if plan.changes)
        if click.confirm(f"Write {files}?", err=True):
            return True
        click.echo("truegreen: nothing was written", err=True)
        return False

    def _notes(self, plans: list[Plan]) -> Iterator[str]:
        yield from (plan.found.note for plan in plans if plan.found.note)
        if self.tools_place is not None and not is_installed():
            yield f"the tools are left out, their SDK is missing: {install_command('mcp')}"
        if self.scope is Scope.MANAGED:
            yield (
                f"every session on this machine will look into {self.state_dir}/fenced: who may not"
                " is refused. Open it to all users: chmod a+rx, and a+x on the folders above it"
            )

    def _document(self, plans: list[Plan], notes: list[str], *, dry_run: bool) -> dict[str, Any]:
        tools = plans[-1] if len(plans) > 1 or self.place == self.tools_place else None
        return {
            "client": self.client,
            "scope": self.scope.value,
            "dry_run": dry_run,
            **_change(plans[0]),
            "notes": notes,
            "mcp": _change(tools) if tools else None,
        }

    def _give(self, document: dict[str, Any], draw: Any) -> int:
        self.frame.give(document, draw)
        return OK


def _change(plan: Plan) -> dict[str, Any]:
    return {"file": plan.found.path, "changed": plan.changes, "diff": plan.diff}


def hook_settings(client: str, python: str, file: str, state_dir: str) -> dict[str, Any]:
    """The settings with which a client calls the hook of this program."""

    def call(event: str) -> list[str]:
        return hooks.hook_command(python, file, client, event, state_dir)

    return hooks.settings(client, call, Contract(title="any").approval_within / 1e6 + _MARGIN_S)


def _check_outside(config: Config) -> None:
    """Nobody inside a run loosens what holds it, also where it has dropped its environment."""
    if is_missing(config):
        return
    ledger = ledger_of(config)
    try:
        check_outside(ledger)
    finally:
        ledger.close()


def _now() -> str:
    return instant(time.time_ns() // 1000) or ""


def _version_notes(client: str) -> list[str]:
    """What the installed version is known not to do."""
    if client != hooks.CLAUDE_CODE:
        return []
    found = versions_of([ADAPTERS[client]])[0].version or ""
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[:3])
    if not numbers or numbers >= _FAIL_CLOSED_SINCE:
        return []
    since = ".".join(map(str, _FAIL_CLOSED_SINCE))
    open_then = f"claude {found} may ignore onFailure: a hook that can't start lets the tool run"
    return [f"{open_then}; {since} was seen to refuse it"]


# --- for the doctor


class Examined(NamedTuple):
    """What the doctor saw of installed hooks."""

    files: list[str]
    faults: list[Fault]
    warnings: list[str]


def examined(config: Config, *, start: bool) -> Examined:
    """Look at every recorded install, and with `start` at what its client makes of it."""

    def settings(client: str, python: str, file: str) -> Mapping[str, Any]:
        return hook_settings(client, python, file, config.state_dir)

    seen = Examined([], [], [])
    try:
        for each in kept.every(config.state_dir):
            seen.files.append(f"{each.client} in {each.file}")
            found = [*faults(each, config.state_dir, settings)]
            seen.faults.extend(found)
            if start and not found and kept.HOOKS in each.parts:
                _note(seen, each, sighted(each))
    except InvalidInput as error:
        seen.faults.append(Fault(error.message, "truegreen doctor"))
    return seen


def _note(seen: Examined, each: Install, sighting: Sighting) -> None:
    if sighting.verified is None:
        seen.warnings.append(f"hooks of {each.client}: {sighting.why}")
    elif not sighting.verified:
        said = f" ({' '.join(sighting.said.split())})" if sighting.said else ""
        seen.faults.append(Fault(f"{each.file}: {sighting.why}{said}", sighting.next))


def sighted(each: Install) -> Sighting:
    """What the client itself does with an install."""
    place = place_of(each.client, each.scope, os.environ, each.cwd)
    if os.path.realpath(place.path) != each.file:
        return Sighting(
            verified=None, why=f"not looked: {each.client} would read {place.path} here"
        )
    if not os.path.isdir(each.cwd) and each.scope is Scope.PROJECT:
        step = f"in {each.cwd}: {again(each)} --uninstall"
        return Sighting(verified=False, why=f"{each.cwd} is gone", next=step)
    switch = merging.switched_off(kept.read(place).text)
    return look(each.client, each.scope, os.environ, each.cwd, switch)


# --- on paper


def _draw_plans(paper: Paper, plans: list[Plan], notes: list[str]) -> None:
    for plan in plans:
        if not plan.changes:
            paper.say(f"nothing to change in {plan.found.path}")
        for line in plan.diff.splitlines():
            paper.say(Ink(line, _DIFF_STYLES.get(line[:1], "")))
    for note in notes:
        paper.hanging([Ink("note  ", "bold")], note)


def _draw_installed(paper: Paper, plans: list[Plan], notes: list[str], seen: Sighting) -> None:
    plan, *others = plans
    done = "our hooks are in" if plan.changes else "our hooks were in already:"
    paper.say(Ink(f"{done} {plan.found.path}", "bold"))
    for other in others:
        done = "our tools are in" if other.changes else "our tools were in already:"
        paper.say(Ink(f"{done} {other.found.path}", "bold"))
    for note in notes:
        paper.hanging([Ink("  note  ", "bold")], note)
    if seen.verified:
        glyph, rgb = LIGHTS[Light.GREEN]
        fired = " and ".join(seen.fired)
        paper.say(Ink(f"{glyph} they fire", tint(rgb)), f"  {fired}, {seen.seconds:.1f} s")
    elif seen.verified is None:
        paper.say(f"  {seen.why}")
    else:
        glyph, rgb = LIGHTS[Light.RED]
        paper.say(Ink(f"{glyph} they do not fire", f"bold {tint(rgb)}"), f"  {seen.why}")
        for line in seen.said.splitlines():
            paper.say(Ink(f"    {line}", "dim"))
        paper.hanging([Ink("  next  ", "dim")], seen.next)


def _undone(plan: Plan) -> str:
    if not plan.changes:
        return "gone already" if plan.known else "nothing"
    if plan.after is None:
        return "removed"
    whole = plan.known is not None and plan.after == plan.known.original
    return "restored" if whole else "entries taken out"


def _draw_undone(paper: Paper, plans: list[Plan], *, dry_run: bool) -> None:
    if dry_run:
        _draw_plans(paper, plans, [])
        return
    for plan in plans:
        paper.say(_undone_words(plan))


def _undone_words(plan: Plan) -> str:
    path = plan.found.path
    words = {
        "nothing": f"nothing of ours is in {path}",
        "gone already": f"nothing of ours is in {path} any more; its record is removed",
        "removed": f"{path} is removed: it was not there before",
        "restored": f"{path} is as it was before, to the byte",
        "entries taken out": f"{path} was changed by others since: only our entries are taken out",
    }
    return words[_undone(plan)]


COMMANDS = {"install": install}
