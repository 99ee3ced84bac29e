#!/usr/bin/env bash
# Writes requirements/*.txt from setup.cfg: every version, transitively, for Python 3.11 and later.
# Versions already in a lock stay unless setup.cfg forbids them; `tools/lock.sh --upgrade` moves all to the newest.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet uv

lock() { # lock OUT EXTRA...
  local out=$1
  shift
  local extras=()
  for extra in "$@"; do extras+=(--extra "$extra"); done
  "$venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --allow-unsafe \
    --no-annotate --custom-compile-command tools/lock.sh "${extras[@]}" "${upgrade[@]}" "${constraints[@]}" \
    setup.cfg requirements/build.in --output-file "requirements/$out.txt"
}

upgrade=("$@")
constraints=()
lock dev train test soundness docs lint
# The smaller and the larger environments agree with the one that the tests run in.
constraints=(--constraint requirements/dev.txt)
lock run
lock train train
lock peers peers
