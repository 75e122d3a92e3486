#!/bin/sh
# A lead over MCP, and a scheduler that carries out what it orders, on a throw-away store.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
scheduler=
trap '[ -z "$scheduler" ] || { kill "$scheduler"; wait "$scheduler" || true; }; rm -rf "$room"' EXIT
mkdir "$room/project" && cd "$room/project"
export TRUEGREEN_STORE="${TRUEGREEN_STORE:-$room/store.db}" XDG_STATE_HOME="${XDG_STATE_HOME:-$room/state}"

truegreen migrate > /dev/null
truegreen scheduler > "$room/scheduler.log" 2>&1 &
scheduler=$!
until truegreen workers --json | grep -q '"state":"ready"'; do sleep 0.1; done
python3 "$here/lead.py"
