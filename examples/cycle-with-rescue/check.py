"""The gate: the poem has lines, none of them twice."""

import sys
from pathlib import Path

lines = Path("poem.txt").read_text().splitlines()
sys.exit(0 if lines and len(set(lines)) == len(lines) else f"{len(lines)} lines, some twice")
