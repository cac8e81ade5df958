# Two commands on a fresh machine: `make reproduce` and `make test`. Python 3.11 or newer and make are all they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TESTED := $(VENV)/.tested
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup reproduce confirm test test-all release-check mutations check docs bench clean faults slurm-test

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# A marker is written last: an interrupted set-up is simply run again, and a changed dependency list renews it. Modules
# are compiled on all cores, which pip does not, and tests of other packages not at all. What only tests need comes later.
DEPENDENCIES := pyproject.toml plugins/attnlab-icl/pyproject.toml
INSTALL = $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
COMPILE = -@$(BIN)/python -m compileall -qq -j 0 -x '/site-packages/.*/tests?/' $(VENV)/lib

$(READY): $(DEPENDENCIES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "attnlab needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@rm -f $@
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable . --editable plugins/attnlab-icl
	$(COMPILE)
	@touch $@

$(TESTED): $(READY)
	$(INSTALL) --editable '.[dev]' --editable plugins/attnlab-icl
	$(COMPILE)
	@touch $@

setup: $(TESTED) ## create the virtual environment

reproduce: $(READY) ## run every figure at quick scale and write results/report/index.html
	$(BIN)/attnlab reproduce --workers $(WORKERS)

confirm: $(READY) ## run the registered claims of every figure again on fresh seeds
	$(BIN)/attnlab confirm --scale quick --workers $(WORKERS) --ledger results/claims.json

test: $(TESTED) ## the fast test suite
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-all: $(TESTED) ## every test, the slow ones too; ORDER=word runs them in another order
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'slow or not slow' --durations=15 $(if $(ORDER),--order-by $(ORDER))

release-check: test-all docs ## before a release: all tests (a clean install among them), documentation, every claim at paper scale
	$(BIN)/attnlab claims check --measured docs/data/claims_paper.json

mutations: $(TESTED) ## wrong signs in what decides: which tests notice; writes docs/mutations.md
	$(BIN)/python -m benchmarks.mutations

faults: $(TESTED) ## kills, damage, hostile stores; writes docs/faults.md
	FAULT_PAGE=docs/faults.md $(BIN)/python -m pytest tests/faults -m 'slow or not slow'

slurm-test: $(TESTED) ## install SLURM (Debian, root) and run the command line under it
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge
	FAULT_PAGE=docs/faults.md $(BIN)/python -m pytest tests/faults/test_slurm.py -m 'slow or not slow'

check: $(TESTED) ## lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(TESTED) ## the documentation site, warnings are errors
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	$(BIN)/python docs/values.py
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

bench: $(READY) ## side-by-side benchmarks on this machine
	$(BIN)/attnlab bench --json results/bench.json --plot results/bench.png

clean: ## remove what can be made again
	rm -rf $(VENV) results docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
