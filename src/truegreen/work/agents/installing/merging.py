"""Our hooks in a client's settings: put in beside everybody else's, found again, taken out.

Text goes in and text comes out. Ours are known by the file that they call, wherever it lies now.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from truegreen.tuples import NamedTuple
from truegreen.work.agents.hooks import CODEX
from truegreen.work.agents.installing.jsontext import (
    Malformed,
    Node,
    appended,
    parsed,
    removed,
)

HOOK_FILE = "truegreen/doors/hook.py"
_SWITCHES = ("enabled", "disabled", "notifications")
"""What stood beside the events in older settings of Gemini and its kin."""

_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text"}


class Ours(NamedTuple):
    """A hook of ours as it stands in a file."""

    event: str
    words: list[str]
    """The interpreter, its switches, hook.py, the client, the event and the state directory."""


def installed(text: str, settings: Mapping[str, Any], client: str) -> str:
    """The settings with our hooks in them, each once; unchanged if they are there already.

    Malformed, with its place, if the client would not take such settings.
    """
    wanted: dict[str, list[Any]] = settings["hooks"]
    text = text if text.strip() else "{}\n"
    check(text, client)
    if stands(text, settings):
        return text
    text = uninstalled(text)
    for event, groups in wanted.items():
        for group in groups:
            text = _added(text, event, group)
    return text


def uninstalled(text: str) -> str:
    """The settings without any hook of ours, nor what it alone kept there."""
    while (place := next(_places(parsed(text)), None)) is not None:
        text = removed(text, *place.smallest)
    return text


def found(text: str) -> list[Ours]:
    """Our hooks in the order in which they stand."""
    return [place.ours for place in _places(parsed(text))] if text.strip() else []


def stands(text: str, settings: Mapping[str, Any]) -> bool:
    """Whether exactly our hooks are there, as they are wanted."""
    return _as_wanted(parsed(text), settings["hooks"])


def switched_off(text: str) -> str:
    """The switch in these settings that keeps every hook from firing; empty if there is none."""
    plain = parsed(text).plain if text.strip() else {}
    if not isinstance(plain, dict):
        return ""
    if plain.get("disableAllHooks") is True:
        return "disableAllHooks"
    for name in ("hooksConfig", "hooks"):
        group = plain.get(name)
        if isinstance(group, dict) and group.get("enabled") is False:
            return f"{name}.enabled"
    return ""


def check(text: str, client: str) -> None:
    """Malformed, with its place, if a client would take these settings for none."""
    root = parsed(text)
    _expect(text, root, dict, "the settings")
    _once(text, root, "hooks")
    if client == CODEX:
        for each in root.children:
            if each.key not in ("hooks", "description"):
                raise Malformed(text, each.start, f"Codex knows no «{each.key}» here")
    hooks = root.child("hooks")
    if hooks is None:
        return
    _expect(text, hooks, dict, "hooks")
    for event in hooks.children:
        _once(text, hooks, event.key)
        if event.key not in _SWITCHES:
            _check_event(text, event.key, event.node)


def _check_event(text: str, event: str, groups: Node) -> None:
    name = f"hooks.{event}"
    _expect(text, groups, list, name)
    for group in groups.children:
        _expect(text, group.node, dict, f"an entry of {name}")
        hooks = group.node.child("hooks")
        if hooks is None:
            raise Malformed(text, group.start, f"an entry of {name} has no «hooks»")
        _expect(text, hooks, list, f"«hooks» in {name}")
        for hook in hooks.children:
            _expect(text, hook.node, dict, f"a hook of {name}")
            for key in ("type", "command", "matcher"):
                value = hook.node.child(key) or group.node.child(key)
                if value is not None:
                    _expect(text, value, str, f"«{key}» in {name}")


def _expect(text: str, node: Node, kind: type, name: str) -> None:
    if not isinstance(node.plain, kind):
        is_now = _KINDS.get(type(node.plain), "something else")
        raise Malformed(text, node.start, f"{name} must be {_KINDS[kind]} and is {is_now}")


def _once(text: str, node: Node, key: str) -> None:
    places = [each.start for each in node.children if each.key == key]
    if len(places) > 1:
        raise Malformed(text, places[1], f"«{key}» stands there twice; only the last one counts")


# -- putting in ------------------------------------------------------------------------------------


def _added(text: str, event: str, group: Any) -> str:
    root = parsed(text)
    hooks = root.child("hooks")
    if hooks is None:
        return _added(appended(text, root, "hooks", {}), event, group)
    groups = hooks.child(event)
    if groups is None:
        return appended(text, hooks, event, [group])
    return appended(text, groups, "", group)


def _as_wanted(root: Node, wanted: Mapping[str, list[Any]]) -> bool:
    """Whether exactly these entries of ours are there."""
    ours: dict[str, list[Any]] = {}
    for place in _places(root):
        ours.setdefault(place.ours.event, []).append(place.group)
    return ours == wanted


# -- finding again ---------------------------------------------------------------------------------


class _Place(NamedTuple):
    ours: Ours
    group: Any
    smallest: tuple[Node, int]
    """Which child of which container goes with the hook: itself, or what it alone fills."""


def _places(root: Node) -> Iterator[_Place]:
    hooks = root.child("hooks") if isinstance(root.plain, dict) else None
    if hooks is None or not isinstance(hooks.plain, dict):
        return
    for n, event in enumerate(hooks.children):
        for m, group in enumerate(event.node.children):
            inner = group.node.child("hooks")
            for k, hook in enumerate(inner.children if inner else ()):
                words = words_of(hook.node.plain)
                if inner and words:
                    path = [(root, _at(root, "hooks")), (hooks, n), (event.node, m), (inner, k)]
                    yield _Place(Ours(event.key, words), group.node.plain, _smallest(path))


def _at(root: Node, key: str) -> int:
    return next(n for n, child in enumerate(root.children) if child.key == key)


def _smallest(path: list[tuple[Node, int]]) -> tuple[Node, int]:
    """From the inside out, as long as nothing else is in the way."""
    container, place = path.pop()
    while len(container.children) == 1 and path:
        container, place = path.pop()
    return container, place


def words_of(hook: Any) -> list[str]:
    """The command of a hook word by word if it is ours; nothing else is looked at twice."""
    if not isinstance(hook, dict) or not isinstance(hook.get("command"), str):
        return []
    args = hook.get("args")
    if isinstance(args, list):
        words = [hook["command"], *(str(word) for word in args)]
    elif HOOK_FILE in hook["command"]:
        words = _split(hook["command"])
    else:
        return []
    return words if any(word.endswith(f"/{HOOK_FILE}") for word in words) else []


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quote that does not end: not written by us
        return []
