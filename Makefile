# Every target sets up .venv by itself, once, and again when pyproject.toml changes. The modules' byte code is made there and
# then: commands start in two thirds of the time, also where Python is told to write none (PYTHONDONTWRITEBYTECODE).
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo test slow lint bench fetch docs clean

help:
	@echo "make demo    train, predict and evaluate on two real data sets"
	@echo "make test    the test suite"
	@echo "make slow    reproductions on large data (needs 'make fetch')"
	@echo "make lint    formatting, lint and types"
	@echo "make bench   svmkit beside every other tool installed (needs 'make fetch')"
	@echo "make fetch   download the public data sets into \$$SVMKIT_DATA, else datasets/cache"
	@echo "make docs    write the commands' help and the tables into README.md"
	@echo "make clean   remove what demo, tests and benchmarks left behind; .venv and datasets/cache stay"

$(READY): pyproject.toml
	@echo "setting up .venv (once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@$(BIN)/python -m compileall -q svmkit
	@touch $@

demo: $(READY)
	@$(BIN)/python scripts/demo.py

test: $(READY)
	$(BIN)/python -m pytest

slow: $(READY)
	$(BIN)/python -m pytest -m slow

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY)
	@$(BIN)/python scripts/bench.py --markdown

fetch: $(READY)
	@$(BIN)/python scripts/fetch.py

docs: $(READY)
	@$(BIN)/python scripts/readme.py

clean:
	rm -rf demo bench build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
