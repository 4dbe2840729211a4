# One door: every target sets up what it needs on a fresh machine and can be run again at no cost.

PYTHON ?= python3
BIN := .venv/bin
PIP := .venv/bin/pip install --quiet --disable-pip-version-check --use-pep517

# Tests start Python hundreds of times: what each loads is compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

# Tests come in two sizes: `make test` has all that is quick and one of each real thing, `make test-all` the rest, too.
REAL := tor or processes or containers or spark
QUICK := not ($(REAL) or slow or first or soak)
# What waits for real things runs beside what only computes, which goes by all cores, behind whoever waits. What is dear
# to start, a testnet or a JVM, is started once: all tests that share it go to one worker. What waits longest begins.
WAITING := $(BIN)/pytest --dist loadfile --no-loadscope-reorder
PARALLEL := $(BIN)/pytest --numprocesses auto --dist worksteal
# A quarter of the time of quick tests is waiting, for timeouts and for programs: room for one more worker.
ONE_MORE := --numprocesses $$(($$(getconf _NPROCESSORS_ONLN) + 1))
BESIDE := --no-print-directory --jobs --output-sync=target --keep-going

.PHONY: help demo test test-all quick check bench soak fuzz dist deb image release release-check lock format clean setup setup-dev

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

demo: .venv/base tor  ## watch it work: a private Tor network, ten relays, messages that arrive
	$(BIN)/hushcast testnet demo

test: setup-dev  ## all that is quick, and one of each real thing: within five minutes on two cores
	@for each in tor java mqtt-clients; do \
		tools/require-$$each || echo "Without $$each: its tests are skipped." >&2; \
	done
	@echo "Tests run in two lanes; each is shown when it has ended."
	@$(MAKE) $(BESIDE) test-first test-quick

test-all: test .venv/judges tor java podman machine chromium mqtt-clients  ## all tests, those of `make test` before the others
	@echo "Tests run in two lanes; each is shown when it has ended."
	@$(MAKE) $(BESIDE) test-real test-slow

# Each test runs in one lane.
.PHONY: test-first test-quick test-real test-slow
test-first:
	$(WAITING) --numprocesses 2 -m "first"

test-quick:
	nice -n 5 $(PARALLEL) -m "$(QUICK)"

test-real:
	$(WAITING) --numprocesses 4 -m "($(REAL)) and not (first or soak)"

test-slow:
	nice -n 5 $(PARALLEL) -m "slow and not ($(REAL) or first or soak)"

quick: setup-dev  ## the tests that take no Tor, Java, processes, containers or patience
	$(PARALLEL) $(ONE_MORE) --durations 5 --durations-min 1 -m "$(QUICK)"

check: setup-dev  ## style, types and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup-dev tor java  ## speed beside what people would use instead; CHECK=1 fails where a target is missed
	$(BIN)/python -m benchmarks.bench $(if $(CHECK),--check)

soak: setup-dev tor java  ## five hours of faults, kills, lies and steady traffic on real daemons; SEED=n for another
	$(BIN)/pytest -m "soak"
	$(BIN)/python -m soak.soak $(if $(SEED),--seed $(SEED))

fuzz: .venv/fuzz  ## a million hostile inputs for every decoder and machine; INPUTS=n, MOVES=n, SEED=n, ONLY="frame roster"
	$(BIN)/python tests/fuzz --inputs $(or $(INPUTS),1000000) --seed $(or $(SEED),1) $(if $(MOVES),--moves $(MOVES)) $(if $(ONLY),--only $(ONLY)) $(if $(REPLAY),--replay $(REPLAY))

dist: setup-dev  ## wheel and sdist, in dist/
	rm -f dist/*.whl dist/*.tar.gz
	$(BIN)/python -m build --no-isolation --outdir dist

release:  ## all files of a release of a signed tag, TAG=v0.1.0 KEY=~/.ssh/id, built twice; without a tag a rehearsal
	tools/release $(TAG)

release-check:  ## build TAG=v0.1.0 once more, and compare with the release in FROM=folder; KEY=~/.ssh/id signs it, too
	tools/release --check "$(FROM)" $(TAG)

lock: setup-dev  ## the newest versions of all that releases are made of, with hashes, in tools/lock/
	@$(PIP) --editable '.[release]'
	tools/lock-requirements

deb: dist  ## a Debian package that needs no registry, in dist/; DEBIAN=13 MACHINE=arm64 for others than this one
	tools/build-deb dist "$(DEBIAN)" "$(MACHINE)"

image: deb  ## an image of it for operators, `hushcast`, with docker or podman
	tools/build-image

format: setup-dev  ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove what the other targets made
	rm -rf .venv .venv-bench .node dist findings .mypy_cache .ruff_cache .pytest_cache .hypothesis

setup: .venv/base  ## what a daemon, a gateway, a testnet and the demo need: 75 MB

setup-dev: .venv/installed  ## and what tests, checks and the analysis need: 1.3 GB

# What a daemon, a testnet and the demo need.
.venv/base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: install it, or name it with make PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv is missing: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing Hushcast and what it runs with into .venv" >&2
	@# One that works stays with its Python: of two in one environment neither works.
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(PIP) --editable '.[gateway,tui,watch]'
	@touch $@

.venv/installed: .venv/base
	@echo "Installing what tests, checks and the analysis need besides: PySpark alone is 400 MB to fetch" >&2
	@$(PIP) --editable '.[dev]'
	@touch $@

.venv/judges: .venv/installed
	@$(PIP) --editable '.[judges]'
	@touch $@

.venv/fuzz: .venv/installed
	@$(PIP) --editable '.[fuzz]' \
		|| echo "atheris is not made for this Python or machine: going on without coverage to lead" >&2
	@touch $@

.PHONY: tor java podman machine chromium mqtt-clients
tor:
	@tools/require-tor

podman:
	@tools/require-podman

chromium:
	@tools/require-chromium

mqtt-clients:
	@tools/require-mqtt-clients

machine:
	@tools/require-machine

java:
	@tools/require-java
