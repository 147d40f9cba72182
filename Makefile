# `make demo` and `make test` need nothing but make and Python 3.11 or newer; `make help` lists the rest.
# PYTHON=/path/to/python names the interpreter that .venv is made from.

BIN := .venv/bin
export PYTHON
# Tests start hundreds of programs, which need not be compiled each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-long check format pictures run-env test-env lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: run-env ## a scripted session, without a key and without a network
	@$(BIN)/deepagent demo

test: test-env ## the tests; four at a time, since many of them wait
	@$(BIN)/pytest -n 4 --dist loadscope

test-long: test-env ## the tests with heavy volumes
	@$(BIN)/pytest -n 2 -m long

check: test-env ## format, lint, types, layers, sizes
	@scripts/check

format: test-env ## formats the sources and mends what the linter can
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

pictures: test-env ## the pictures of the README, made from the demo
	@$(BIN)/python scripts/pictures.py

run-env:
	@scripts/venv run

test-env:
	@scripts/venv test

lock: ## re-makes requirements/ from pyproject.toml (needs uv; UPGRADE=--upgrade takes the newest)
	@scripts/lock $(UPGRADE)

clean: ## removes .venv, caches and what was built
	@rm -rf .venv build dist *.egg-info .*_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
