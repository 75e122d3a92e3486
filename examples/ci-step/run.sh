#!/usr/bin/env bash
# A step of any CI: run an agent, write a JUnit report, and succeed only if the work is verified.
#
#   COMMAND='claude -p "$GOAL"' GOAL='fix the build' PASS_ENV=GOAL GATES='make test' ci-step/run.sh
#
# GATES, PASS_ENV and PROTECT take one per line. The report is $REPORT, else truegreen.xml.
set -euo pipefail
words=()
while IFS= read -r gate; do
  [ -z "$gate" ] || words+=(--gate "$gate")
done <<< "${GATES:-}"
if [ "${#words[@]}" -eq 0 ]; then
  echo "no gate is named, so nothing could be green: set GATES" >&2
  exit 2
fi
while IFS= read -r name; do
  [ -z "$name" ] || words+=(--env "$name")
done <<< "${PASS_ENV:-}"
while IFS= read -r glob; do
  [ -z "$glob" ] || words+=(--protect "$glob")
done <<< "${PROTECT:-}"
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
