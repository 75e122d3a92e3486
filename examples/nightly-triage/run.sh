#!/bin/sh
# Two nights of a routine, played at once on a throw-away store.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
mkdir "$room/project" && cd "$room/project"
cp "$here"/agent.py "$here"/check.py "$here"/truegreen.toml .
export TRUEGREEN_STORE="${TRUEGREEN_STORE:-$room/store.db}" XDG_STATE_HOME="${XDG_STATE_HOME:-$room/state}"

echo '["crash on start"]' > issues.json
echo '{"crash on start": 9}' > tracker.json
truegreen scheduler --once > /dev/null      # reads the routine; nothing is due yet
truegreen routine run nightly
truegreen scheduler --once

rm tracker.json                             # in the second night the connector is missing
echo '["crash on start", "typo in the help"]' > issues.json
truegreen routine run nightly
truegreen scheduler --once

truegreen routine list
truegreen inbox
