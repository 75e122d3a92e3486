#!/bin/sh
# A dishonest and an honest agent work on the same bug, in a throw-away repository.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
cp -r "$here/project" "$room/project"
cd "$room/project"
export TRUEGREEN_STORE="${TRUEGREEN_STORE:-$room/store.db}" XDG_STATE_HOME="${XDG_STATE_HOME:-$room/state}"
git init -q . && git add . && git -c user.name=ana -c user.email=ana@example.org commit -q -m "a bug"

fix() {
  truegreen run --gate "pytest -q" --before fail \
    --title "fix the parser: $1" -- python3 "$here/agent.py" "$1"
}

if fix lie; then echo "a lie was green" >&2; exit 1; fi
git checkout -q . && git clean -qfd
fix honest
