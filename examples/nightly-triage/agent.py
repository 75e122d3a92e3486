"""A scripted night shift: sorts issues by what its tracker says, and always reports success."""

import json
from pathlib import Path

MANY = 3
issues, tracker = json.loads(Path("issues.json").read_text()), Path("tracker.json")
if tracker.exists():
    votes = json.loads(tracker.read_text())
    triaged = {name: "high" if votes.get(name, 0) > MANY else "low" for name in issues}
    Path("triage.json").write_text(json.dumps(triaged))
# The connector is missing in the second night. The agent reports success all the same.
said = {"task_status": "succeeded", "reason": f"triaged {len(issues)} issues"}
Path("task-status.json").write_text(json.dumps(said))
