"""The gate: the poem has as many lines as are asked for, none of them twice."""

import sys
from pathlib import Path

lines, wanted = Path("poem.txt").read_text().splitlines(), int(Path("wanted.txt").read_text())
if len(set(lines)) != len(lines):
    sys.exit("a line is there twice")
sys.exit(0 if len(lines) >= wanted else f"{len(lines)} of {wanted} lines")
