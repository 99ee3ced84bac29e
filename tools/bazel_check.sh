#!/usr/bin/env bash
# Checks the BUILD files: true to the tree, formatted (buildifier, where npm can fetch it), and, where Bazel is
# installed (Debian's bazel-bootstrap 4.2.3 will do), that every target builds and accounting cannot see train.
# Usage: tools/bazel_check.sh PYTHON
# BAZEL_TESTS names the tests to run under Bazel besides building; //... is all of them, which pytest runs as well.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$root"
tests=${BAZEL_TESTS:-//:accounting_boundary}

"$python" tools/build_targets.py --check
echo "BUILD files: true to the import graph"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

buildifier=(npx --yes --prefix "$work" @bazel/buildifier@8.2.1)
if ! command -v npx >/dev/null; then
  echo "buildifier: NOT CHECKED, there is no npx here"
elif ! timeout 180 "${buildifier[@]}" --version >"$work/log" 2>&1; then
  echo "buildifier: NOT CHECKED, it could not be fetched: $(tail -1 "$work/log")"
else
  git ls-files --cached --others --exclude-standard -z -- 'BUILD' '*/BUILD' '*.bazel' '*.bzl' WORKSPACE '*/WORKSPACE' |
    xargs -0 "${buildifier[@]}" -mode=check -lint=warn
  echo "buildifier: formatted and without warnings"
fi

if ! command -v bazel >/dev/null; then
  echo "bazel: NOT CHECKED, it is not installed"
  exit 0
fi
major=$(bazel --version | grep -oE '[0-9]+' | head -1 || true)
if [ "${major:-4}" -ge 7 ]; then
  bazel build //...
  # shellcheck disable=SC2086
  bazel test $tests
  exit 0
fi

# Offline: rules_python and the rule sets that Bazel's own files load are re-exports of the built-in rules, and
# @pypi//NAME stands for what the environment of PYTHON has.
shims=$work/shims
cp -r tools/bazel_shims "$shims"
mkdir "$shims/pypi"
echo 'workspace(name = "pypi")' >"$shims/pypi/WORKSPACE"
git ls-files --cached --others --exclude-standard -z -- 'BUILD' '*/BUILD' |
  xargs -0 grep -ohE '@pypi//\w+' | sort -u | while read -r label; do
    name=${label#@pypi//}
    mkdir "$shims/pypi/$name"
    printf 'py_library(name = "%s", visibility = ["//visibility:public"])\n' "$name" >"$shims/pypi/$name/BUILD"
  done
overrides=()
for shim in "$shims"/*/; do overrides+=("--override_repository=$(basename "$shim")=${shim%/}"); done
bazel=(bazel "--output_user_root=$work/output")
trap '"${bazel[@]}" shutdown >/dev/null 2>&1; chmod -R u+w "$work"; rm -rf "$work"' EXIT
options=("${overrides[@]}" --noincompatible_use_python_toolchains "--python_path=$python"
  --noshow_progress --symlink_prefix=/
  --test_env=OPENBLAS_CORETYPE --test_env=OPENBLAS_L2_SIZE)
"${bazel[@]}" build //... "${options[@]}"
# shellcheck disable=SC2086  # BAZEL_TESTS is a list of patterns
"${bazel[@]}" test $tests "${options[@]}" --test_output=errors --build_tests_only \
  --jobs=2 --local_test_jobs=2
