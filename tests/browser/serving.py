"""The web face of a folder with a store in it, on a port of its own; it can stop and come back."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.record.lives import OPERATOR
from truegreen.config import load_config
from truegreen.faces.deeds import Deeds
from truegreen.faces.web.house import House
from truegreen.faces.web.live import Live
from truegreen.faces.web.serving import Serving, listening, serving_of
from truegreen.model import Role
from truegreen.record.ledger import Ledger, open_ledger

HERE = "127.0.0.1"


class Site:
    """A server on a store; the ledger is another connection to the same store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        store, state = folder / "store.db", folder / "state"
        environ = {"TRUEGREEN_STORE": f"sqlite://{store}", "XDG_STATE_HOME": str(state)}
        self.config = load_config(environ, str(folder))
        self._anchor = f"{store}.anchor"
        self.ledger: Ledger = self._opened()
        self.url = ""
        self.sessions: dict[Role, Any] = {}
        """The cookies of those who have come in by a link before."""
        self.windows: dict[Any, list[Any]] | None = None
        """Where several tests look at it: their windows, which the next one goes on with."""
        self._port = 0
        self._serving: Serving | None = None
        self._theirs: Ledger | None = None

    def _opened(self) -> Ledger:
        return open_ledger(self.config.store, anchor=self._anchor)

    @property
    def state_dir(self) -> Path:
        """Where runs leave their output."""
        return Path(self.config.state_dir)

    def start(self) -> None:
        """Listen: the first time on any free port, then on the same again."""
        listener, address = listening(HERE, self._port)
        self._port, self.url = address.port, address.url
        self._theirs = self._opened()
        house = House(
            self.config,
            self._theirs,
            Deeds(self._theirs, self.config),
            address,
            Live(self._theirs),
        )
        self._serving = serving_of(house, listener)
        self._serving.start()

    def stop(self) -> None:
        """Answer nobody any more."""
        if self._serving:
            assert self._serving.stop()
            self._serving = None
        if self._theirs:
            self._theirs.close()
            self._theirs = None

    def link(self, role: Role) -> str:
        """What `truegreen login` would print."""
        code = self.ledger.mint_login(role, f"{role}-browser", actor=OPERATOR)[1]
        return f"{self.url}/login/{code}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self.ledger.close()
