"""The gate, which knows nothing of the agent: the mean of the numbers, by hand."""

import json
import sys
from pathlib import Path

ALMOST = 1e-9
numbers = [float(line) for line in Path("numbers.txt").read_text().splitlines()]
mean = json.loads(Path("report.json").read_text())["mean"]
sys.exit(0 if abs(mean - sum(numbers) / len(numbers)) < ALMOST else f"the mean is not {mean}")
