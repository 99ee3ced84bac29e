"""Runs pytest on the files that Bazel names: the entry point of every `py_test`."""

from __future__ import annotations

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-c", "setup.cfg", *sys.argv[1:]]))
