"""The dead stay dead: real clients that come back after «success», and act, unless terminated.

Each case is first the client's own: it acts, so that what follows is known to prevent something.
The witnesses are the files that it writes and how often the model was asked.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import missing
from tests.realclient.clients import CLAUDE_CODE, CODEX, Client
from tests.realclient.drive import carriers
from tests.realclient.endpoint import Call, Endpoint, Json, Said, Step
from tests.walk.conftest import Walk, until
from truegreen.doors import hook, marks
from truegreen.record.ledger.tripwires import Fenced
from truegreen.work.agents.hooks import hook_command, settings

pytestmark = pytest.mark.realclient

SUBAGENT = "SUBMARK"
TRUST = "--dangerously-bypass-hook-trust"
AHEAD_S = 180
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
/* The wall clock is ahead by as many seconds as a certain file has bytes. */
int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  struct stat file;
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, at);
  const char *ahead = getenv("CLOCK_AHEAD");
  if (!failed && clock == CLOCK_REALTIME && ahead && stat(ahead, &file) == 0)
    at->tv_sec += file.st_size;
  return failed;
}
"""


class Grave(NamedTuple):
    """A client in surroundings of its own, with truegreen beside it."""

    client: Client
    walk: Walk
    endpoint: Endpoint
    environ: dict[str, str]

    @property
    def state(self) -> str:
        """Where truegreen keeps its marks."""
        return os.path.join(os.environ["XDG_STATE_HOME"], "truegreen")

    @property
    def settings(self) -> Path:
        """The client's own folder."""
        return Path(self.environ["HOME"]) / self.client.settings

    def argv(self, *words: str) -> list[str]:
        """The client as a person calls it, with these words after its program."""
        return [self.client.package.path, *words]

    def alone(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """The client without truegreen, to its end."""
        return subprocess.run(
            self.argv(*words),
            cwd=cwd or self.walk.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def has(self, name: str) -> bool:
        return (self.walk.folder / name).exists()

    def install_hooks(self) -> None:
        """Put truegreen's hooks into the user's own settings."""

        def call(event: str) -> list[str]:
            python, file = sys.executable, hook.__file__
            return hook_command(python, file, self.client.name, event, self.state)

        text = json.dumps(settings(self.client.name, call, 30))
        name = "settings.json" if self.client is CLAUDE_CODE else "hooks.json"
        (self.settings / name).write_text(text)

    def fence(self, *sessions: str) -> None:
        """Mark conversations as terminated."""
        marks.write(self.state, Fenced((), sessions, ()))

    def tripped(self) -> list[Json]:
        """What hooks left word of."""
        return [json.loads(path.read_text()) for path in Path(self.state).glob("tripped/*.json")]


Dig = Callable[..., Grave]


@pytest.fixture
def dig(walk: Walk) -> Iterator[Dig]:
    """Makes a grave: a client, and what its model will say."""
    open_: list[Endpoint] = []

    def make(
        client: Client, script: list[Said], others: dict[str, list[Said]] | None = None
    ) -> Grave:
        endpoint = Endpoint(script, others)
        open_.append(endpoint)
        endpoint.__enter__()
        home = walk.folder.parent / "home"
        environ = client.surroundings(str(home), endpoint.url, {})
        return Grave(client, walk, endpoint, environ)

    yield make
    for endpoint in open_:
        endpoint.__exit__()


# -- the zombie subagent ------------------------------------------------------------------------


def agent_id(body: Json) -> str:
    """What the client calls the subagent, as it tells the model."""
    found = re.search(r"agentId: (\w+)", json.dumps(body))
    assert found
    return found[1]


def subagents(client: Client, interfere: Callable[[str], object] = lambda _: None) -> list[Any]:
    """A model that has a subagent do something, stops it when it is over, and thanks it."""
    task = {"description": "job", "prompt": f"{SUBAGENT} go", "subagent_type": "general-purpose"}

    def stop(body: Json) -> Step:
        interfere(agent_id(body))
        return Step("", (Call("TaskStop", {"task_id": agent_id(body)}),))

    def thank(body: Json) -> Step:
        message = {"to": agent_id(body), "message": "thank you", "summary": "thanks"}
        return Step("", (Call("SendMessage", message),))

    own = [
        Step("On it.", (client.shell("echo one >> sub.txt"),)),
        Step("The subagent is done."),
        Step("Up again.", (client.shell("echo two >> sub.txt"),)),
        Step("Done again."),
    ]
    waits = [Step("I wait."), Step("All is done.")]
    main = [Step("", (Call("Agent", task),)), waits[0], stop, thank, *waits]
    return [main, {SUBAGENT: own}]


TOOLS = ("--allowedTools", "Bash Task Agent SendMessage TaskStop ScheduleWakeup")
STREAM = ("--output-format", "stream-json", "--verbose")


def test_a_completed_subagent_is_not_stopped_and_wakes_by_a_message(claude_code: Client, dig: Dig):
    """The client's own: nothing that it offers ends a subagent that is over."""
    grave = dig(claude_code, *subagents(claude_code))

    done = grave.alone("-p", "go", *STREAM, *TOOLS)

    assert "is not running (status: completed)" in done.stdout
    assert (grave.walk.folder / "sub.txt").read_text() == "one\ntwo\n"
    assert len(grave.endpoint.turns_of(SUBAGENT)) == 4


@pytest.mark.criterion("G03", "G19")
def test_a_subagent_that_is_marked_does_not_wake_where_hooks_are_installed(
    claude_code: Client, dig: Dig
):
    def fence(name: str) -> None:
        grave.fence(name)

    grave = dig(claude_code, *subagents(claude_code, fence))
    grave.install_hooks()

    done = grave.alone("-p", "go", *STREAM, *TOOLS)

    assert "is terminated" in done.stdout
    assert (grave.walk.folder / "sub.txt").read_text() == "one\n"
    assert len(grave.endpoint.turns_of(SUBAGENT)) == 2


@pytest.mark.criterion("G03", "G17", "G19")
def test_a_terminated_subagent_of_a_run_does_not_wake_while_its_parent_lives(
    claude_code: Client, dig: Dig
):
    """Found in the stream, registered below its parent, terminated by its client's own name."""

    def terminate(name: str) -> None:
        with closing(walk.ledger()) as ledger:
            until(lambda: any(agent.session == name for agent in ledger.agents()))
        answer = walk.tg("terminate", name, "--json")
        assert answer.status == 0, answer

    grave = dig(claude_code, *subagents(claude_code, terminate))
    walk = grave.walk
    outcome = walk.run(
        *("--max-attempts", "1", "--gate", "grep -q one sub.txt"),
        *("--", "claude", "-p", "go", *TOOLS),
        **grave.environ,
    )

    assert outcome.axes == ("exited", "succeeded"), outcome.task
    assert (walk.folder / "sub.txt").read_text() == "one\n"
    assert len(grave.endpoint.turns_of(SUBAGENT)) == 2
    assert "is terminated" in json.dumps(grave.endpoint.turns[-1].body)


# -- the wake-up after «success» ----------------------------------------------------------------


@pytest.fixture(scope="session")
def clock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A wall clock that a test can move; the shortest wake-up takes more than a minute."""
    compiler = shutil.which("cc")
    if compiler is None:
        missing("a C compiler, for a clock that tests can move")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(CLOCK)
    library = str(folder / "clock.so")
    command = [compiler, "-shared", "-fPIC", "-o", library, str(folder / "clock.c"), "-ldl"]
    subprocess.run(command, check=True)
    return library


class Sleeper(NamedTuple):
    """A client that has said that it is done, and sleeps until its wake-up."""

    grave: Grave
    ahead: Path

    def wake(self) -> None:
        """Let the time of the wake-up come."""
        with self.ahead.open("wb") as file:
            file.truncate(AHEAD_S)


@pytest.fixture
def sleeper(claude_code: Client, dig: Dig, clock: str) -> Sleeper:
    arguments = {"delaySeconds": 60, "reason": "poll", "prompt": "look again and act"}
    script: list[Said] = [
        Step("", (Call("ScheduleWakeup", arguments),)),
        Step("I am done."),
        Step("Up again.", (claude_code.shell("echo woke > zombie.txt"),)),
        Step("Done again."),
    ]
    grave = dig(claude_code, script)
    ahead = grave.walk.folder.parent / "ahead"
    grave.environ.update(LD_PRELOAD=clock, CLOCK_AHEAD=str(ahead))
    return Sleeper(grave, ahead)


def started(grave: Grave) -> subprocess.Popen[bytes]:
    """The client without truegreen, while the test goes on."""
    return subprocess.Popen(
        grave.argv("-p", "go", *STREAM, *TOOLS),
        cwd=grave.walk.folder,
        env=grave.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def session_of(process: subprocess.Popen[bytes]) -> str:
    """The conversation of a client that says a first success and lives on."""
    assert process.stdout
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == "result":
            assert (event["subtype"], process.poll()) == ("success", None)
            session: str = event["session_id"]
            return session
    raise AssertionError("it ended without a result")


def test_a_client_wakes_up_by_itself_after_success_and_acts(sleeper: Sleeper):
    """The client's own: one process, two results."""
    with started(sleeper.grave) as process:
        session_of(process)
        assert not sleeper.grave.has("zombie.txt")
        sleeper.wake()
        process.communicate(timeout=60)

    assert sleeper.grave.has("zombie.txt")
    assert len(sleeper.grave.endpoint.turns) == 4


@pytest.mark.criterion("G04")
def test_a_wake_up_of_a_marked_conversation_asks_no_model_where_hooks_are_installed(
    sleeper: Sleeper,
):
    grave = sleeper.grave
    grave.install_hooks()
    with started(grave) as process:
        session = session_of(process)
        grave.fence(session)
        sleeper.wake()
        process.communicate(timeout=60)

    assert not grave.has("zombie.txt")
    assert len(grave.endpoint.turns) == 2
    (word,) = grave.tripped()
    assert (word["event"], word["session"]) == ("UserPromptSubmit", session)


@pytest.mark.criterion("G04", "G15")
def test_terminate_ends_a_client_that_sleeps_until_its_wake_up(sleeper: Sleeper):
    grave, walk = sleeper.grave, sleeper.grave.walk
    command = ("--json", "--pass-env", "LD_PRELOAD", "--pass-env", "CLOCK_AHEAD")
    with walk.start(*command, "--", "claude", "-p", "go", *TOOLS, **grave.environ) as running:
        until(lambda: len(grave.endpoint.turns) == 2)
        with closing(walk.ledger()) as ledger:
            (task,) = ledger.page().tasks
        answer = walk.tg("terminate", task.id, "--json")
        assert (answer.status, answer.json()["outcome"]) == (0, "interrupted"), answer
        assert answer.json()["killed"]
        sleeper.wake()
        running.communicate(timeout=30)

    assert carriers(grave.environ["HOME"]) == {}
    assert not grave.has("zombie.txt")
    assert len(grave.endpoint.turns) == 2


# -- conversations that are taken up again ------------------------------------------------------


class Way(NamedTuple):
    """A way to take a conversation up again."""

    words: Callable[[Client, str], list[str]]
    elsewhere: bool = False


def _resume(client: Client, session: str) -> list[str]:
    if client is CODEX:
        flags = ("--skip-git-repo-check", *client.free, TRUST)
        return ["exec", *flags, "resume", session, "go on"]
    return ["-p", "go on", "--resume", session, *STREAM, *client.free]


def _fork(client: Client, session: str) -> list[str]:
    return [*_resume(client, session), "--fork-session"]


RESUME, FORK, ELSEWHERE = Way(_resume), Way(_fork), Way(_resume, elsewhere=True)
WAYS = [
    pytest.param(CLAUDE_CODE, RESUME, id="claude-resume"),
    pytest.param(CLAUDE_CODE, FORK, id="claude-fork"),
    pytest.param(CLAUDE_CODE, ELSEWHERE, id="claude-elsewhere"),
    pytest.param(CODEX, RESUME, id="codex-resume"),
    pytest.param(CODEX, ELSEWHERE, id="codex-elsewhere"),
]


class Buried(NamedTuple):
    """A task whose work is done, and the conversation that did it."""

    grave: Grave
    task: str
    session: str
    way: Way

    def take_up(self) -> tuple[subprocess.CompletedProcess[str], int]:
        """Somebody goes on with it without truegreen; says how often the model was asked then."""
        grave = self.grave
        folder = grave.walk.folder
        if self.way.elsewhere:
            folder = folder.parent / "elsewhere"
            folder.mkdir(exist_ok=True)
        before = len(grave.endpoint.asked)
        done = grave.alone(*self.way.words(grave.client, self.session), cwd=folder)
        return done, len(grave.endpoint.asked) - before

    def terminate(self) -> list[str]:
        """For ever; says what was sealed."""
        answer = self.grave.walk.tg("terminate", self.task, "--json")
        assert answer.status == 0, answer
        sealed: list[str] = answer.json()["sealed"]
        return sealed


@pytest.fixture
def buried(request: pytest.FixtureRequest, client: Client, dig: Dig) -> Buried:
    """Work that succeeded in a real run."""
    script: list[Said] = [
        Step("I write.", (client.shell("echo hello > out.txt"),)),
        Step("I am done."),
        Step("Up again.", (client.shell("echo more >> acts.txt"),)),
        Step("Done again."),
    ]
    grave = dig(client, script)
    command = [word.replace("{goal}", "go") for word in client.command]
    outcome = grave.walk.run(
        *("--gate", "grep -q hello out.txt"), "--", *command, *client.free, **grave.environ
    )
    assert outcome.axes == ("exited", "succeeded"), outcome.task
    with closing(grave.walk.ledger()) as ledger:
        (agent,) = [agent for agent in ledger.agents() if agent.session]
    assert agent.session
    return Buried(grave, outcome.task["id"], agent.session, request.param)


ways = pytest.mark.parametrize(("client", "buried"), WAYS, indirect=True)


@pytest.mark.criterion("G02", "G19")
@ways
def test_a_conversation_goes_on_until_it_is_terminated_and_then_asks_no_model(buried: Buried):
    """Neither when it was sealed, nor when it could not be and a hook is installed."""
    grave = buried.grave
    alive, asked = buried.take_up()
    assert asked > 0, alive  # the client's own: it acts again
    assert list(grave.walk.folder.parent.glob("*/acts.txt"))

    sealed = buried.terminate()
    dead, asked = buried.take_up()

    assert sealed
    assert asked == 0
    assert dead.returncode != 0
    assert re.search(r"No conversation found|no rollout found", dead.stdout + dead.stderr)
    assert all(os.path.exists(path) for path in sealed)  # kept, for whoever wants to look

    for path in sealed:  # as if it could not have been sealed
        os.rename(path, path.removesuffix(".terminated"))
    for acts in grave.walk.folder.parent.glob("*/acts.txt"):
        acts.unlink()
    grave.install_hooks()
    kept, asked = buried.take_up()

    assert asked == 0, kept
    assert not list(grave.walk.folder.parent.glob("*/acts.txt"))
    assert {word["session"] for word in grave.tripped()} == {buried.session}
