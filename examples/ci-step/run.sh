#!/usr/bin/env bash
# A step of any CI: run an agent, write a JUnit report, and succeed only if the work is verified.
#
#   COMMAND='my-agent "fix the build"' GATES='make test' ci-step/run.sh
#
# GATES and PROTECT take one per line. The report is $REPORT, else truegreen.xml.
set -euo pipefail
words=()
while IFS= read -r gate; do
  [ -z "$gate" ] || words+=(--gate "$gate")
done <<< "${GATES:-}"
while IFS= read -r glob; do
  [ -z "$glob" ] || words+=(--protect "$glob")
done <<< "${PROTECT:-}"
if [ -z "${GATES:-}" ]; then
  echo "no gate is named, so nothing could be green: set GATES" >&2
  exit 2
fi
status=0
answer=$(truegreen run --json "${words[@]}" -- bash -c "$COMMAND") || status=$?
task=$(python3 -c 'import json, sys; print(json.load(sys.stdin).get("id", ""))' <<< "$answer")
if [ -n "$task" ]; then
  truegreen junit "$task" > "${REPORT:-truegreen.xml}"
  truegreen show "$task"
else
  echo "$answer" >&2
fi
exit "$status"
