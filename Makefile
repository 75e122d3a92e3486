# Every target sets up what it needs. Python 3.11 or newer, make, git and a package registry are enough.

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CODE := src tests $(wildcard benchmarks examples)

# A missing interpreter must fail at once, not start a download.
export UV_PYTHON_DOWNLOADS := never
# Trust whom the machine trusts, as pip does: behind a company's proxy that is not the built-in list.
export UV_SYSTEM_CERTS := true
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test check attacks clients jail runners bench criteria format lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
	  | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: $(READY) ## set up, then watch scripted agents fail and be caught (about a minute)
	@echo "== demo: truegreen demo"
	@$(BIN)/truegreen demo $(ARGS)

test: $(READY) jail runners clients ## set up, then run all tests (ARGS="-k name" chooses)
	@echo "== tests"
	@$(BIN)/python -m pytest $(ARGS)

check: $(READY) jail runners clients ## what CI runs: format, lint, types, layers, all tests
	@echo "== format: ruff format --check"
	@$(BIN)/ruff format --check $(CODE)
	@echo "== lint: ruff check"
	@$(BIN)/ruff check $(CODE)
	@echo "== types: mypy --strict"
	@$(BIN)/mypy $(CODE)
	@echo "== layers: lint-imports"
	@$(BIN)/lint-imports
	@echo "== tests: pytest"
	@$(BIN)/python -m pytest

attacks: $(READY) jail ## play all listed attacks and twins (ARGS=--full: the generated ones, ARGS=--table: into the docs)
	@echo "== attacks on gates, and honest twins"
	@$(BIN)/python -m tests.attacks $(ARGS)

clients: $(READY) ## fetch the real agent clients that tests drive into your cache (once; 0.8 GB)
	@echo "== real agent clients"
	@$(BIN)/python -m tests.realclient.provision || echo "   tests that need them are skipped, and fail in CI"

# The jail of agents is bubblewrap. Debian and its kin have it as a package; elsewhere it is for you to install.
jail: ## install bubblewrap where that needs no password
	@command -v bwrap >/dev/null || { echo "== bubblewrap"; \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -qq -y bubblewrap >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -qq -y bubblewrap >/dev/null; }; }; } || \
	  echo "   install bubblewrap for the jail; tests that need it are skipped, and fail in CI"; }

# Gates for other languages are tested with their own runners.
runners: ## install node, npm and cargo where that needs no password
	@for program in node:nodejs npm:npm cargo:cargo; do command -v $${program%:*} >/dev/null || { \
	  echo "== $${program%:*}"; { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -qq -y $${program#*:} >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -qq -y $${program#*:} >/dev/null; }; }; } || \
	  echo "   install $${program%:*}; tests that need it are skipped, and fail in CI"; }; done

bench: $(READY) ## run the benchmarks (ARGS="name ..." chooses)
	@echo "== benchmarks"
	@$(BIN)/python -m benchmarks $(ARGS)

criteria: $(READY) jail runners clients ## run all tests, then print which acceptance criteria they hold
	@echo "== criteria held by passing tests"
	@$(BIN)/python -m pytest -q --criteria $(ARGS)

format: $(READY) ## rewrite the code in the house format, with the safe lint fixes
	@echo "== format"
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix --exit-zero $(CODE)

lock: $(READY) ## compile requirements-dev.txt from pyproject.toml (ARGS="--upgrade" for newer versions)
	@echo "== lock: requirements-dev.txt, with hashes and without addresses"
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-emit-index-url --no-header \
	  --extra all --group dev $(ARGS) pyproject.toml -o requirements-dev.txt

clean: ## remove the environment, caches and build results
	@echo "== clean"
	@rm -rf $(VENV) build dist .coverage htmlcov .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# uv comes from the same hashed lock as everything else; where it can't be had, pip does the work, slower.
$(READY): requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "truegreen needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || echo missing)." \
	       "Try: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "== set-up: environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "== set-up: uv, at the locked version"
	@awk '/^uv==/ { on = 1 } on { print; if (!/\\$$/) exit }' requirements-dev.txt > $(VENV)/uv.txt
	@$(BIN)/pip install -q --require-hashes -r $(VENV)/uv.txt || echo "   uv is not to be had here"
	@echo "== set-up: locked dependencies"
	@{ test -x $(BIN)/uv && $(BIN)/uv pip install -q -p $(BIN)/python --require-hashes -r requirements-dev.txt; } || { \
	  echo "   pip does the work, slower"; $(BIN)/pip install -q --require-hashes -r requirements-dev.txt; }
	@echo "== set-up: truegreen itself, editable"
	@$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@
