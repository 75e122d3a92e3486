"""A scripted poet: writes a line in each iteration, dies after the second, and stops at three."""

import json
import os
import sys
from pathlib import Path

LINES = ["An old silent pond", "A frog jumps into the pond", "Splash! Silence again"]
poem = Path("poem.txt")
have = poem.read_text().splitlines()
if len(have) == len(LINES):
    said = {"task_status": "noop", "reason": "the poem is whole"}
    Path(os.environ["TRUEGREEN_RESULT"]).write_text(json.dumps(said))
    sys.exit(0)
poem.write_text("".join(f"{line}\n" for line in LINES[: len(have) + 1]))
if len(have) == 1:
    sys.exit("out of context")  # the line is written; nothing was declared
