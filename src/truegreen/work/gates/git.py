"""The gate kind `git`: something was committed, all of it, on the right branch, and pushed.

The agent's repository is only ever read as data: our own git looks at its objects through an empty
repository of ours, so that no setting, hook or filter of the agent has a say. What was pushed is
read from the remote, at the address that was there before the agent started.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from msgspec.structs import replace

from truegreen.contract import Gate
from truegreen.model import Level
from truegreen.work import process
from truegreen.work.documents import inside
from truegreen.work.gates.output import last_line, text_of
from truegreen.work.gates.run import seconds
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error, passed
from truegreen.work.workspace.dotgit import repository_of
from truegreen.work.workspace.objects import COMMIT, name_of

_LOCAL_S = 60.0
_OBJECT_BYTES = 1024 * 1024
_REFS_BYTES = 16 * 1024 * 1024
_PROTOCOLS = "file:git:http:https:ssh"
# Where a remote is reached through these, there is no other way; they name no program.
_PASSED_ON = (
    "SSH_AUTH_SOCK",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
)


def check(gate: Gate, scene: Scene) -> Answer:
    """Passed if HEAD is a new commit that holds the whole tree, and is where it should be."""
    if scene.base.kind != "git":
        return gate_error("the workspace is no git repository")
    asked: list[Callable[[Gate, Scene], Answer]] = [_committed, _on_branch]
    if gate.pushed:
        asked.append(_pushed)
    answers: list[Answer] = []
    for ask in asked:
        answers.append(ask(gate, scene))
        if not answers[-1].green:
            break
    worst, head = answers[-1], scene.left
    evidence = {"commit": head.commit, "branch": head.branch, "base": scene.base.commit}
    reason = worst.reason if not worst.green else "; ".join(a.reason for a in answers if a.reason)
    return replace(worst, reason=reason, evidence={**evidence, **worst.evidence})


def _committed(gate: Gate, scene: Scene) -> Answer:  # noqa: ARG001 - all questions have one shape
    commit = scene.left.commit
    if not commit:
        return failed("there is no commit")
    if commit == scene.base.commit:
        return failed(f"nothing was committed since {commit[:12]}")
    tree = _tree_of(commit, scene)
    if isinstance(tree, Answer):
        return tree
    if f"tree:{tree}" != scene.left.digest:
        if scene.left.refused:
            return gate_error(f"can't compare the tree with HEAD: {scene.left.refused[0]}")
        return failed(f"not everything is committed: the files differ from {commit[:12]}")
    return passed(f"committed {commit[:12]}")


def _tree_of(commit: str, scene: Scene) -> str | Answer:
    """The tree of a commit in the agent's objects, which are read and hashed, not believed."""
    repository = repository_of(scene.workspace.root)
    if repository is None or "\n" in repository.common:
        return failed("the repository is gone")
    own = os.path.join(scene.scratch, "look.git")
    os.makedirs(os.path.join(own, "objects", "info"))
    os.makedirs(os.path.join(own, "refs"))
    objects = os.path.realpath(os.path.join(repository.common, "objects"))
    for name, text in (
        ("HEAD", "ref: refs/heads/none\n"),
        ("config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"),
        ("objects/info/alternates", f"{objects}\n"),
    ):
        with open(os.path.join(own, name), "w", encoding="utf-8") as file:
            file.write(text)
    said = _git(scene, "cat-file", "commit", commit, cwd=own, limit=_OBJECT_BYTES)
    if said.timed_out:
        return gate_error("git did not answer in time", lasting=False)
    if said.code != 0 or name_of(COMMIT, said.stdout).hex() != commit:
        return failed(f"HEAD names {commit[:12]}, which is no commit of the repository")
    found = re.match(rb"tree ([0-9a-f]{40})\n", said.stdout)
    return found[1].decode() if found else failed(f"{commit[:12]} is no usable commit")


def _on_branch(gate: Gate, scene: Scene) -> Answer:
    branch = scene.left.branch
    if not gate.branch:
        return passed(f"on {branch}" if branch else "on no branch")
    if branch.startswith(gate.branch):
        return passed(f"on {branch}")
    where = f"on {branch}" if branch else "on no branch"
    return failed(f"{where}, not on a branch that starts with {gate.branch}")


def _pushed(gate: Gate, scene: Scene) -> Answer:
    name = gate.remote or "origin"
    address = name if _is_address(name) else scene.remotes.get(name, "")
    if not address:
        return gate_error(f"there was no remote {name} before the agent started")
    if "::" in address or address.startswith("-"):
        return gate_error(f"{name} is no address that is safe to ask")
    if not _is_address(address):
        address = os.path.join(scene.workspace.root, address)
    said = _git(
        scene,
        *("ls-remote", "--heads", "--", address),
        cwd=scene.scratch,
        limit=_REFS_BYTES,
        timeout=seconds(gate.timeout),
        more=gate.env,
    )
    if said.timed_out or said.code != 0:
        why = "no answer in time" if said.timed_out else last_line(text_of(said.stderr))
        return gate_error(f"the remote {name} can't be read: {why}", lasting=False)
    answer = _found_there(said.stdout.decode("utf-8", "replace"), name, scene)
    if os.path.isabs(address) and inside(address, scene.workspace.root):
        doubt = f"the agent could have changed the check: the remote {name} lies in the workspace"
        return replace(answer, level=Level.A1, evidence={**answer.evidence, "doubt": doubt})
    return answer


def _found_there(listed: str, name: str, scene: Scene) -> Answer:
    rows = re.findall(r"^([0-9a-f]+)\trefs/heads/(.*)$", listed, re.MULTILINE)
    heads = {ref: commit for commit, ref in rows}
    branch, commit = scene.left.branch, scene.left.commit
    there = [ref for ref, found in heads.items() if found == commit and ref == (branch or ref)]
    if there:
        return passed(f"pushed to {name}/{there[0]}", remote=name)
    if branch in heads:
        return failed(f"{name}/{branch} is at {heads[branch][:12]}, not at {commit[:12]}")
    return failed(f"{name} has no {f'branch {branch}' if branch else 'branch with this commit'}")


def _is_address(text: str) -> bool:
    """Whether a remote is given by its address, not by its name in the repository."""
    return os.path.isabs(text) or bool(re.match(r"[a-z+]+://|[^/:]+@?[^/:]+:[^:]", text))


def _git(
    scene: Scene,
    *arguments: str,
    cwd: str,
    limit: int,
    timeout: float = _LOCAL_S,
    more: dict[str, str] | None = None,
) -> process.Done:
    """Our git, with nothing that anybody else could have set."""
    env = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CEILING_DIRECTORIES": scene.scratch,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
        "GIT_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": "ssh -F /dev/null -o BatchMode=yes",
        "HOME": scene.scratch,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
    }
    env.update({name: os.environ[name] for name in _PASSED_ON if name in os.environ})
    argv = [scene.workspace.mirror.git, *arguments]
    return process.tool(argv, cwd=cwd, env={**env, **(more or {})}, timeout=timeout, limit=limit)
