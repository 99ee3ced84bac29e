# Everything runs in .venv, made here from locked versions; nothing is installed elsewhere.
# A fresh machine needs python3 (3.11 or later, with venv), make, git and a package index.
#
#   make curves [OUT=DIR]   figures and tables of the three papers: printed bound beside exact one
#   make test               the tests (PYTEST_ARGS="-k name" passes arguments on)
#   make slow               the long tests
#   make check              all that CI runs
#   make speed              the accountants beside their peers' (installs the peers)
#   make soundness          10 000 random configurations against an independent reference

PYTHON ?= python3
VENV ?= .venv
OUT ?= curves
PYTEST_ARGS ?=
JOBS ?= 2

BIN := $(VENV)/bin
RUN := $(VENV)/.stamp-run
DEV := $(VENV)/.stamp-dev
PACKAGE := setup.cfg pyproject.toml
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Tests that need data sets look here; without it they are skipped by name.
ifneq ($(wildcard ../shared/data),)
export EXACTDP_DATA ?= $(abspath ../shared/data)
endif

PEERS := .venv-peers/.stamp

.PHONY: curves test slow peers speed soundness lint types contracts docs docs-serve wheel bazel bazel-test build-files lock check clean distclean

curves: $(RUN)
	$(BIN)/exactdp curves --out "$(OUT)"

# XLA takes half the time to compile a step for the CPU by its older emitters of fused loops. What depends on
# rounding is compiled as for users: all of tests/mechanisms. PYTEST_ARGS may select no test of one part.
FIRST := tests/accounting tests/mechanisms
OLDER := XLA_FLAGS="$$XLA_FLAGS --xla_cpu_use_fusion_emitters=false"
# A file's tests in one process, where they share fixtures and what is compiled.
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)
SOME := $(if $(PYTEST_ARGS),|| [ $$? = 5 ])

test: $(DEV)
	$(PYTEST) $(FIRST) $(SOME)
	$(OLDER) $(PYTEST) tests $(FIRST:%=--ignore=%) $(SOME)

slow: $(DEV)
	$(PYTEST) -m slow tests

lint: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV)
	$(BIN)/pyright --pythonpath $(BIN)/python

contracts: $(DEV)
	$(BIN)/lint-imports

docs: $(DEV)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

docs-serve: $(DEV)
	$(BIN)/mkdocs serve

wheel: $(DEV)
	tools/wheel_check.sh $(BIN)/python

bazel: $(DEV)
	tools/bazel_check.sh $(BIN)/python

# All tests once more, each in Bazel's sandbox with its declared dependencies only.
bazel-test: $(DEV)
	BAZEL_TESTS=//... tools/bazel_check.sh $(BIN)/python

build-files: $(DEV)
	$(BIN)/python tools/build_targets.py --write

lock:
	tools/lock.sh

check: test lint types contracts docs wheel bazel

# One environment serves both: the locks agree, and dev is a superset of run.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "exactdp needs Python 3.11 or later: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(RUN): requirements/run.txt $(PACKAGE) | $(VENV)/bin/python
	$(PIP) -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt requirements/run.txt $(PACKAGE) | $(VENV)/bin/python
	$(PIP) -r requirements/dev.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $(RUN) $@

# The peers' libraries, in an environment of their own (torch among them: gigabytes).
$(PEERS): requirements/peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/peers.txt
	@touch $@

peers: $(PEERS)

# Side by side with every peer that is installed; about six minutes on two quiet cores.
speed: $(RUN) $(PEERS)
	$(BIN)/python -m exactdp.benchmarks.accountant_speed --out "$(OUT)/speed" --peers_python .venv-peers/bin/python

# 10 000 random configurations against an independent reference; hours on two cores, resumes where it stopped.
soundness: $(DEV)
	$(BIN)/python -m exactdp.benchmarks.soundness.run --count 10000 --out soundness.csv --resume

clean:
	rm -rf build dist site src/exactdp.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find accounting mechanisms train benchmarks tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) .venv-peers
