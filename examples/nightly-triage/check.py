"""The gate: every open issue has a priority. Yesterday's file does not do."""

import json
import sys
from pathlib import Path

issues, triaged = (json.loads(Path(n).read_text()) for n in ("issues.json", "triage.json"))
missing = [name for name in issues if name not in triaged]
sys.exit(f"{len(missing)} of {len(issues)} without a priority: {missing}" if missing else 0)
