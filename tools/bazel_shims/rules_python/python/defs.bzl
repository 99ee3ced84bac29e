"""Stands for @rules_python where nothing can be downloaded: the rules that are built into Bazel 4."""

py_library = native.py_library
py_test = native.py_test
py_binary = native.py_binary
