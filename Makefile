# Every target sets up what it needs. Python 3.11 or newer, make, git and a package registry are enough.

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CODE := src tests $(wildcard benchmarks examples)
# In a new clone each of the workers would compile all tests, and all that they load: one does it before them.
COMPILED := find tests -name 'test_*-pytest-*.pyc' | grep -q . || $(BIN)/python -m pytest -n 0 -qq --collect-only >/dev/null

# A missing interpreter must fail at once, not start a download.
export UV_PYTHON_DOWNLOADS := never
# Trust whom the machine trusts, as pip does: behind a company's proxy that is not the built-in list.
export UV_SYSTEM_CERTS := true
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check nightly mutants attacks truth journeys clients jail runners browser slurm hosts chaos redis bench docs golden criteria format lock man sbom dist clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
	  | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: $(READY) ## set up, then watch scripted agents fail and be caught (about a minute)
	@echo "== demo: truegreen demo"
	@$(BIN)/truegreen demo $(ARGS)

# These need the real agent clients, Chromium, Slurm, Ray, several hosts or package installers.
EXTRA := $(addprefix tests/,browser chaos engines realclient packaging/test_installers.py)

test: $(READY) jail ## set up, then run the tests, without the parts that test-all installs (ARGS="-k name" chooses)
	@echo "== tests"
	@$(BIN)/python -m pytest $(EXTRA:%=--ignore=%) $(ARGS)

test-all: $(READY) jail runners browser slurm hosts clients ## every test: also real clients (0.8 GB), Chromium, Slurm, Ray, three hosts
	@echo "== every test"
	@$(BIN)/python -m pytest $(ARGS)

check: $(READY) jail runners browser slurm hosts clients ## what CI runs: format, lint, types, layers, every test
	@echo "== format: ruff format --check"
	@$(BIN)/ruff format --check $(CODE)
	@echo "== lint: ruff check"
	@$(BIN)/ruff check $(CODE)
	@echo "== layers: lint-imports"
	@$(BIN)/lint-imports
	@echo "== types: mypy --strict, beside the tests: make test, then the rest of make test-all"
	@$(BIN)/mypy $(CODE) & types=$$!; $(COMPILED); \
	  $(MAKE) --no-print-directory test; tests=$$?; \
	  $(BIN)/python -m pytest $(EXTRA); extra=$$?; \
	  wait $$types && exit $$((tests || extra))

nightly: $(READY) jail runners browser slurm hosts clients ## every test, with races, kills, random cases and attacks repeated far more often (hours)
	@echo "== every test, repeated"
	@REPEAT=50 HYPOTHESIS_PROFILE=thorough RACES=100000 TRUEGREEN_KILLS=500 ATTACKS=full \
	  $(BIN)/python -m pytest $(ARGS)

mutants: $(READY) jail ## change the code in a fixed sample of places and list the changes that no test notices (ARGS="gates policy" chooses)
	@echo "== mutants"
	@$(BIN)/python -m tests.mutation $(ARGS)

attacks: $(READY) jail ## play all listed attacks and twins (ARGS=--full: the generated ones, ARGS=--table: into the docs)
	@echo "== attacks on gates, and honest twins"
	@$(BIN)/python -m tests.attacks $(ARGS)

truth: $(READY) jail ## measure false green and false red over bug-fix tasks (ARGS=--table: into the docs)
	@echo "== scripted agents on bug-fix tasks"
	@$(BIN)/python -m tests.truth $(ARGS)

journeys: $(READY) jail ## trace three journeys, print files, functions, transactions (ARGS="--list run": one in order)
	@echo "== journeys through the program"
	@$(BIN)/python -m tests.journeys $(ARGS)

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

# Gates for other languages are tested with their own runners, completion in every shell, papers by who reads them.
runners: ## install node, npm, cargo, zsh, fish, groff and systemd-analyze where that needs no password
	@for program in node:nodejs npm:npm cargo:cargo zsh:zsh fish:fish groff:groff-base \
	  systemd-analyze:systemd; do command -v $${program%:*} >/dev/null || { \
	  echo "== $${program%:*}"; { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -qq -y $${program#*:} >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -qq -y $${program#*:} >/dev/null; }; }; } || \
	  echo "   install $${program%:*}; tests that need it are skipped, and fail in CI"; }; done

# The dashboard is tested in the machine's own Chromium; playwright drives it and downloads none.
browser: ## install Chromium where that needs no password
	@command -v chromium >/dev/null || { echo "== chromium"; \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -qq -y chromium >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -qq -y chromium >/dev/null; }; }; } || \
	  echo "   install chromium; tests that need it are skipped, and fail in CI"; }

# A real Slurm of two nodes on loopback holds what is said of engines; the tests start it and end it.
SLURM := slurmctld slurmd slurm-client munge
slurm: ## install Slurm where that needs no password
	@command -v sbatch >/dev/null && command -v slurmctld >/dev/null && command -v munged >/dev/null || { \
	  echo "== slurm"; { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -qq -y --no-install-recommends $(SLURM) >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -qq -y --no-install-recommends $(SLURM) >/dev/null; }; }; } || \
	  echo "   install $(SLURM); tests that need it are skipped, and fail in CI"; }

# Three hosts are three network namespaces, and one of them has a wall clock that can be set.
hosts: ## install iproute2 and libfaketime where that needs no password
	@command -v ip >/dev/null && ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || { \
	  echo "== iproute2, libfaketime"; { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -qq -y iproute2 libfaketime >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -qq -y iproute2 libfaketime >/dev/null; }; }; } || \
	  echo "   install iproute2 and libfaketime; tests that need them are skipped, and fail in CI"; }

chaos: $(READY) jail hosts ## three hosts, one database, a fault each round (ARGS="--rounds 200", half an hour)
	@echo "== chaos"
	@$(BIN)/python -m tests.chaos $(ARGS)

# Job systems that keep their queue in Redis are measured beside the others.
redis: ## install a Redis server where that needs no password
	@command -v redis-server >/dev/null || { echo "== redis"; \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -qq -y redis-server >/dev/null 2>&1 || \
	      { apt-get update -qq && apt-get install -qq -y redis-server >/dev/null; }; }; } || \
	  echo "   install redis-server; what needs it is named as not measured"; }

bench: $(READY) redis ## measure beside the field, write docs/performance.md (ARGS="name ... --quick" chooses)
	@echo "== benchmarks"
	@$(BIN)/python -m benchmarks --page docs/performance.md $(ARGS)

docs: $(READY) ## write the pages of docs/reference anew from the code
	@echo "== reference pages"
	@$(BIN)/python -m tests.docs

golden: $(READY) ## record the golden files of tests/golden again; review what changed with git diff
	@echo "== golden files"
	@$(BIN)/python -m tests.golden

criteria: $(READY) jail runners browser slurm hosts clients ## run the tests, then print which acceptance criteria they hold
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
	@echo "== lock: other job systems, for the benchmarks"
	@for wanted in benchmarks/peers/pins/*.in; do $(BIN)/uv pip compile -q --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate $(ARGS) $$wanted -o $${wanted%.in}.txt; done

man: ## write packaging/truegreen.1 from the catalogue of commands
	@echo "== manual page"
	@$(PYTHON) scripts/man

sbom: ## write what truegreen is made of into dist/truegreen.cdx.json (CycloneDX, from the lock)
	@echo "== bill of materials: dist/truegreen.cdx.json"
	@mkdir -p dist && $(PYTHON) scripts/sbom > dist/truegreen.cdx.json

# The same commit gives the same bytes: no time but the commit's goes in.
dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
dist: $(READY) sbom ## build wheel and sdist into dist, reproducibly, with their bill of materials
	@echo "== wheel and sdist in dist"
	@$(BIN)/python -m hatchling build -d dist
	@cd dist && sha256sum truegreen*

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
	  echo "   pip does the work, slower"; $(BIN)/pip install -q --require-hashes -r requirements-dev.txt; } || { \
	  echo "the libraries can't be fetched: the first set-up needs a package registry. Behind a proxy, set HTTPS_PROXY" \
	       "or PIP_INDEX_URL; then say make again, it goes on where it was." >&2; exit 1; }
	@echo "== set-up: truegreen itself, editable"
	@$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@
