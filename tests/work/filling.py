"""Trees that fill a disk; children load this module, and no pytest."""

from __future__ import annotations

from pathlib import Path

from tests.work.running import launch
from truegreen.contract import Isolation
from truegreen.work.jail import Profile
from truegreen.work.process import Ended, Limits, run

FILL = "while :; do n=$((n + 1)); head -c 4000000 /dev/zero > $n; sleep 0.02; done"
NAMELESS = """
import tempfile, time
with tempfile.TemporaryFile(dir='.') as file:
    while True: file.write(bytes(1 << 20)); file.flush(); time.sleep(0.01)
"""


def filling(folder: Path, script: str, isolation: Isolation, **limits: int) -> Ended:
    """How a script ended that may write to its folder only."""
    profile = Profile(readonly_root=True, writable=(str(folder),), bound=(str(folder),))
    given = {"isolation": isolation, "jail": profile, "limits": Limits(**limits), "time_s": 20.0}
    return run(launch(folder, "bash", "-c", script, **given))
