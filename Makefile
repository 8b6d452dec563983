.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make the environment in .venv from the locked, hashed requirements

$(STAMP): requirements/dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Expunge needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $(STAMP)

demo: setup ## Forget for real in five stores: a worker killed, a hold, a kept copy, a restore; every claim checked
	$(BIN)/expunge demo

test: setup ## Run the tests with branch coverage
	$(BIN)/pytest -n 2 --dist worksteal --cov --cov-report=
	$(BIN)/coverage report --skip-covered --fail-under=100

check: setup ## Format, lint, types, import contracts, tests; CI runs it, and then `crash` and `chaos`
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) test
	$(MAKE) requirements

requirements: setup ## Print which tests show each requirement; fail where one has none
	$(BIN)/python tests/requirements.py

crash: setup ## Kill processes at every named point, stop brokers and databases
	PYTHONPATH=. $(BIN)/python tests/chaos/matrix.py
	$(BIN)/pytest -q -n 2 --dist worksteal tests/properties/test_protocol.py tests/chaos --hypothesis-profile=thorough

SCHEDULES ?= 500
schedules: setup ## Try five stores under schedules of new seeds (SCHEDULES=), and the memory store under 500 of its own
	PYTHONPATH=. $(BIN)/python -m tests.properties.explore --schedules $(SCHEDULES)
	$(BIN)/pytest -q -n 2 tests/properties/test_memory_machine.py --hypothesis-profile=thorough

mutants: setup ## Change one rule at a time, and see that the tests named for it fail
	PYTHONPATH=. $(BIN)/python tests/mutants/run.py

JOBS ?= 1000
KILLS ?= 102
SETUPS ?= sqlite-filesystem postgresql-redis postgresql-rabbitmq
chaos: setup ## Kill processes at random on three deployments, with a printed seed (JOBS=, KILLS=, SETUPS=)
	PYTHONPATH=. $(BIN)/python tests/chaos/chaos.py --jobs $(JOBS) --kills $(KILLS) --setup $(SETUPS)

bench: setup ## Compare the engine with scripts written by hand, as ratios in one run (BENCH="--subjects 500")
	PYTHONPATH=. $(BIN)/python benchmarks/run.py --json $(BENCH)

run: setup ## Run dispatcher, worker and embedded services on the state directory .expunge
	$(BIN)/expunge init
	$(BIN)/expunge up

lock: setup ## Renew the locked requirements after a change of pyproject.toml
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile -q --generate-hashes --strip-extras --allow-unsafe --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra embedded -o requirements/run.lock pyproject.toml
	$(BIN)/pip-compile -q --generate-hashes --strip-extras --allow-unsafe --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra embedded --extra dev -o requirements/dev.lock pyproject.toml

.PHONY: help setup demo test check requirements crash schedules mutants chaos bench run lock
