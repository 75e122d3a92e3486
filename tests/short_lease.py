"""The command line with a shorter lease, for tests that wait until one runs out.

`python tests/short_lease.py SECONDS worker …`: the lease of a user's worker can't be shortened.
"""

from __future__ import annotations

import sys
from pathlib import Path

from truegreen import app
from truegreen.__main__ import main
from truegreen.config import Config
from truegreen.supervisor.place import Place


def command(seconds: float) -> list[str]:
    """The words that start `truegreen` with a lease of so many seconds."""
    return [sys.executable, str(Path(__file__).resolve()), str(seconds)]


def shorten(seconds: float) -> None:
    """Let every supervisor of this process hold its runs for so long; never longer."""
    place_of = app.place_of

    def shortened(config: Config) -> Place:
        place = place_of(config)
        return place._replace(lease=min(place.lease, seconds))

    app.place_of = shortened


if __name__ == "__main__":
    shorten(float(sys.argv.pop(1)))
    sys.argv[0] = "truegreen"
    main()
