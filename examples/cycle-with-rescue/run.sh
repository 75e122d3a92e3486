#!/bin/sh
# A cycle to its end on a throw-away store: an agent that dies half-way does not stop it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
mkdir "$room/project" && cd "$room/project"
cp "$here"/agent.py "$here"/check.py "$here"/truegreen.toml .
: > poem.txt
export TRUEGREEN_STORE="${TRUEGREEN_STORE:-$room/store.db}" XDG_STATE_HOME="${XDG_STATE_HOME:-$room/state}"

for wanted in 1 2 3 3 3; do
  echo "$wanted" > wanted.txt               # one more line each time, until there are three
  truegreen scheduler --once
done
cat poem.txt
truegreen routine show poem
