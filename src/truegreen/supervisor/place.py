"""Where a supervisor keeps what is not in the record: logs, mirrors, and what an agent may see.

Everything lies under the state directory, for the owner's eyes only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from os import path as paths

from truegreen.contract import Contract
from truegreen.facts import Ticket
from truegreen.supervisor.pulse import LEASE_SECONDS
from truegreen.tuples import NamedTuple
from truegreen.work.environment import agent_environment

_OWNER = "owner"
_INSIDE, _HOME = "agent", "home"
_OWNER_CHARACTERS = 1000


class Place(NamedTuple):
    """The supervisor's surroundings."""

    state_dir: str
    hidden: tuple[str, ...]
    """What no agent may see: the store, its neighbours, and the state directory itself."""
    environ: Mapping[str, str]
    program: str = "truegreen"
    """This program, as an agent can call it."""
    held: str = ""
    """Where held-out cases are kept; one folder, wherever the rest of the state is for now."""
    settings: str = ""
    """The settings file in force, if there is one."""
    lease: float = LEASE_SECONDS
    """For how many seconds a run is owned without a renewal."""

    @property
    def mirrors(self) -> str:
        """Where copies of workspaces are kept."""
        return paths.join(self.state_dir, "mirrors")

    @property
    def remotes(self) -> str:
        """What has been fetched of remotes."""
        return paths.join(self.state_dir, "remotes")

    @property
    def checkouts(self) -> str:
        """Private work trees of tasks: beside the state, for nobody works inside of it."""
        return f"{self.state_dir.rstrip('/')}-checkouts"

    @property
    def rooms(self) -> str:
        """Where gates get their clean copies, a folder for each run."""
        return paths.join(self.state_dir, "rooms")

    @property
    def tools(self) -> str:
        """Copies of what gates run with."""
        return paths.join(self.state_dir, "tools")

    @property
    def baselines(self) -> str:
        """What gates said about trees before an agent came."""
        return paths.join(self.state_dir, "baselines")

    @property
    def reviews(self) -> str:
        """Where QA agents get their copies: beside the state, for nobody works inside of it."""
        return f"{self.state_dir.rstrip('/')}-reviews"

    def make_rooms(self, run: str, owner: str) -> str:
        """The folder for a run's rooms; it says whose it is."""
        return _owned(paths.join(self.rooms, run), owner)

    def make_review(self, task: str, owner: str) -> str:
        """A folder for one attempt at a review: nobody else's, whoever tries at the same time."""
        folder = paths.join(self.reviews, f"{task}-{os.urandom(4).hex()}")
        return _owned(folder, owner)

    def run_dir(self, run: str) -> str:
        """Where the files of a run are."""
        return paths.join(self.state_dir, "runs", run)

    def make(self, ticket: Ticket) -> RunPlace:
        """The folders of a new run."""
        folder = self.run_dir(ticket.run)
        inside = paths.join(folder, _INSIDE)
        os.makedirs(paths.join(folder, "gates"), mode=0o700, exist_ok=True)
        os.makedirs(inside, mode=0o700, exist_ok=True)
        return RunPlace(folder, inside)


def private_home_of(state_dir: str, run: str) -> str:
    """Where the home directory of a run is, if it has one of its own."""
    return paths.join(state_dir, "runs", run, _INSIDE, _HOME)


def owner_of(folder: str) -> str:
    """Who made a room; empty if that is not to be known."""
    try:
        with open(paths.join(folder, _OWNER), encoding="utf-8") as file:
            return file.read(_OWNER_CHARACTERS)
    except OSError:
        return ""


def _owned(folder: str, owner: str) -> str:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(paths.join(folder, _OWNER), "w", encoding="utf-8") as file:
        file.write(owner)
    return folder


class RunPlace(NamedTuple):
    """The files of one run; `inside` is the part that its agent can see."""

    folder: str
    inside: str

    @property
    def stdout(self) -> str:
        """The agent's output."""
        return paths.join(self.folder, "stdout.log")

    @property
    def stderr(self) -> str:
        """What a client with a machine-readable output says besides."""
        return paths.join(self.folder, "stderr.log")

    @property
    def door(self) -> str:
        """The socket that the agent declares through."""
        return paths.join(self.inside, "door")

    @property
    def result(self) -> str:
        """The file that the agent may declare by."""
        return paths.join(self.inside, "result.json")

    def private_home(self) -> str:
        """A home directory of the run's own."""
        home = paths.join(self.inside, _HOME)
        os.makedirs(home, mode=0o700, exist_ok=True)
        return home

    def write(self, name: str, text: str) -> str:
        """A small file for the agent, readable by its owner alone."""
        path = paths.join(self.inside, name)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        return path


def own_variables(
    ticket: Ticket, files: RunPlace, token_file: str, feedback_file: str
) -> dict[str, str]:
    """What an agent is told about its run."""
    return {
        "TRUEGREEN_TASK": ticket.task,
        "TRUEGREEN_RUN": ticket.run,
        "TRUEGREEN_FENCE": str(ticket.fence),
        "TRUEGREEN_SOCKET": files.door,
        "TRUEGREEN_TOKEN_FILE": token_file,
        "TRUEGREEN_RESULT": files.result,
        **({"TRUEGREEN_FEEDBACK": feedback_file} if feedback_file else {}),
    }


def environment(
    place: Place, contract: Contract, passes: tuple[str, ...], own: dict[str, str]
) -> tuple[dict[str, str], tuple[bytes, ...]]:
    """The agent's environment; this program can be called in it."""
    path = place.environ.get("PATH", os.defpath)
    folder = paths.dirname(place.program)
    if folder and folder not in path.split(os.pathsep):
        path = f"{path}{os.pathsep}{folder}"
    return agent_environment(place.environ, (*passes, *contract.pass_env), {"PATH": path, **own})
