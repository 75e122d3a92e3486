"""Runs pytest inside of a gate's jail: given to the pinned interpreter as text, with `-I -B -c`.

Stands alone: Python 3.8 and pytest 7 are enough, and nothing of truegreen is there. What it is to
do comes by standard input. The tree comes onto the path only when pytest and its plugins are
loaded, and may not bring modules of its own for names that Python and its packages have.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import random
import sys
from typing import Any

NO_PYTEST = 86


class Keeper:
    """The first finder: a name of the pinned environment comes from there, not from the tree.

    Unless the tree had it already at that place before the agent: then it is meant so.
    """

    def __init__(self, spec: Any) -> None:
        self._tree = spec["tree"].rstrip("/") + "/"
        self._own = tuple(place.rstrip("/") + "/" for place in spec["own"])
        self._known = {place: frozenset(names) for place, names in spec["names"].items()}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A spec where the tree would have won and must not."""
        if path is not None or "." in name:
            return None
        finder = importlib.machinery.PathFinder
        found = finder.find_spec(name, None, target)
        if found is None or not self._intrudes(name, self._origin(found)):
            return None
        elsewhere = [entry for entry in sys.path if not self._in_tree(os.path.abspath(entry))]
        return finder.find_spec(name, elsewhere, target)

    @staticmethod
    def _origin(found: Any) -> str:
        places = list(found.submodule_search_locations or ())
        origin: str = places[0] if places else found.origin or ""
        return os.path.dirname(os.path.abspath(origin))

    def _in_tree(self, place: str) -> bool:
        whole = place + "/"
        return whole.startswith(self._tree) and not whole.startswith(self._own)

    def _intrudes(self, name: str, place: str) -> bool:
        if not self._in_tree(place):
            return False
        return name not in self._known.get(os.path.relpath(place, self._tree), ())


class Host:
    """Our part of the session: which tests run, the canaries, and exact ids in the report."""

    def __init__(self, spec: Any) -> None:
        self._paths = spec["paths"]
        self._canary = spec["canary"]
        self._ignored = frozenset(spec["ignored"])
        self._left_out = frozenset(spec["left_out"])
        self._listing = spec["listing"]

    def pytest_plugin_registered(self, plugin: Any) -> None:
        """The plugins before us are loaded: now the tree may come onto the path."""
        if plugin is self:
            sys.path[:0] = [os.getcwd(), *self._paths]

    def pytest_configure(self) -> None:
        """What the tests start is not meant."""
        os.environ.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)

    def pytest_ignore_collect(self, collection_path: Any) -> Any:
        """Files that the agent added are run apart."""
        return True if str(collection_path) in self._ignored else None

    def pytest_collection_modifyitems(self, session: Any, config: Any, items: Any) -> Any:
        """Last of all, so that no selection leaves the canaries out."""
        yield
        if self._listing:
            with open(self._listing, "w") as file:
                json.dump([item.nodeid for item in items], file)
        left_out = [item for item in items if _function(item.nodeid) in self._left_out]
        if left_out:
            items[:] = [item for item in items if _function(item.nodeid) not in self._left_out]
            config.hook.pytest_deselected(items=left_out)
        if self._canary:
            for canary in self._canaries(session):
                # Not in between: fixtures of a module are set up once for all of its tests.
                items.insert(random.SystemRandom().choice((0, len(items))), canary)

    def _canaries(self, session: Any) -> Any:
        import pathlib  # noqa: PLC0415 - loaded by pytest already

        import pytest  # noqa: PLC0415 - as above

        module = pytest.Module.from_parent(session, path=pathlib.Path(self._canary))
        return list(session.genitems(module))

    def pytest_runtest_makereport(self, item: Any) -> Any:
        """A test that is inherited is reported where it runs, not where it is written."""
        outcome = yield
        report = outcome.get_result()
        report.location = (item.nodeid.split("::")[0], *report.location[1:])


def _function(nodeid: str) -> str:
    file, colons, rest = nodeid.partition("::")
    return file + colons + rest.partition("[")[0]


def _moved(spec: Any) -> None:
    """Without a jail the copy is not where the workspace is, but editable installs point there."""
    place, tree = spec["place"].rstrip("/"), spec["tree"].rstrip("/")
    own = tuple(spec["own"])

    def moved(path: str) -> str:
        inside = path == place or path.startswith(place + "/")
        return tree + path[len(place) :] if inside and not path.startswith(own) else path

    if place and place != tree:
        sys.path[:] = [moved(entry) for entry in sys.path]
        for name, module in list(sys.modules.items()):
            mapping = getattr(module, "MAPPING", None)
            if name.startswith("__editable__") and isinstance(mapping, dict):
                mapping.update({key: moved(value) for key, value in mapping.items()})


def main() -> None:
    """Run what standard input says, and leave without a last word to anybody."""
    leave = os._exit
    spec = json.loads(sys.stdin.buffer.read().decode("utf-8", "surrogateescape"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        import pytest  # noqa: PLC0415 - of the pinned environment, before the tree is in sight
    except ImportError as error:
        sys.stdout.write(f"{error}\n")
        sys.stdout.flush()
        leave(NO_PYTEST)
    _moved(spec)
    sys.meta_path.insert(0, Keeper(spec))
    wrapper = pytest.hookimpl(hookwrapper=True, tryfirst=True)
    for name in ("pytest_collection_modifyitems", "pytest_runtest_makereport"):
        wrapper(getattr(Host, name))
    pytest.hookimpl(tryfirst=True)(Host.pytest_configure)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.argv = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py"), *spec["args"]]
    code = pytest.main(spec["args"], plugins=[*spec["plugins"], Host(spec)])
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    leave(int(code))


if __name__ == "__main__":
    main()
