# One door: every target sets up what it needs on a fresh machine and can be run again at no cost.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test quick check bench format clean setup

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: setup tor  ## watch it work: a private Tor network, ten relays, messages that arrive
	$(BIN)/hushcast testnet demo

test: setup tor java  ## all tests, those with a real Tor, Spark, real processes and whole networks included
	$(BIN)/pytest

quick: setup  ## the tests that take no Tor, no Java, no processes and no patience
	$(BIN)/pytest -m "not tor and not processes and not network and not spark"

check: setup  ## style, types and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup java  ## speed beside what people would use instead; CHECK=1 fails where a target is missed
	$(BIN)/python -m benchmarks.bench $(if $(CHECK),--check)

format: setup  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove what the other targets made
	rm -rf .venv .venv-bench .mypy_cache .ruff_cache .pytest_cache .hypothesis

setup: .venv/installed

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: install it, or name it with make PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv is missing: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --use-pep517 --editable '.[dev]'
	@touch $@

.PHONY: tor
tor:
	@tools/require-tor

.PHONY: java
java:
	@tools/require-java
