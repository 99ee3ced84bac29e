#!/usr/bin/env bash
# Builds sdist and wheel, installs the wheel in a clean environment, and tests it from outside the tree.
# Usage: tools/wheel_check.sh PYTHON   (a Python that has `build` and the locked setuptools)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The sdist is built from the tree and the wheel from that sdist, as an index user would get them.
(cd "$root" && "$python" -m build --no-isolation --outdir "$work/dist" . >"$work/build.log" 2>&1) || {
  tail -40 "$work/build.log"
  exit 1
}
"$python" "$root/tests/packaging/archives.py" "$root" "$work"/dist/*.tar.gz "$work"/dist/*.whl

"$python" -m venv "$work/clean"
"$work/clean/bin/python" -m pip install --quiet --disable-pip-version-check \
  --constraint "$root/requirements/run.txt" "$work"/dist/*.whl
cp "$root/tests/packaging/smoke.py" "$work/smoke.py"
cd "$work"
PATH="$work/clean/bin:$PATH" PYTHONPATH='' "$work/clean/bin/python" -W error smoke.py "$root"
