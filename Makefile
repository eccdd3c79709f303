# Every target sets up .venv by itself, once, and again when pyproject.toml changes. The modules' byte code is made there and
# then: commands start in two thirds of the time, also where Python is told to write none (PYTHONDONTWRITEBYTECODE).
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo test slow lint package bench fetch docs clean

help:
	@echo "make demo    train, predict and evaluate on two real data sets"
	@echo "make test    the test suite"
	@echo "make slow    reproductions on large data (needs 'make fetch')"
	@echo "make lint    formatting, lint and types"
	@echo "make package build the wheel, install it in a temporary folder, train there"
	@echo "make bench   svmkit beside every other tool installed (needs 'make fetch')"
	@echo "make fetch   download the public data sets into \$$SVMKIT_DATA, else datasets/cache"
	@echo "make docs    write the commands' help and the tables into README.md"
	@echo "make clean   remove what demo, tests and benchmarks left behind; .venv and datasets/cache stay"

$(READY): pyproject.toml
	@echo "setting up .venv (once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@rm -rf build svmkit.egg-info
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

# What pip makes of the sources, away from them: of a copy, since building leaves files beside what it builds, and in an
# environment of its own. That has .venv's packages by PYTHONPATH, where Python does not follow links to our sources.
package: $(READY)
	@set -e; dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; trap 'exit 1' INT TERM; \
	packages=$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))"); \
	$(BIN)/python -m venv "$$dir/env"; \
	mkdir "$$dir/source"; cp -R pyproject.toml README.md LICENSE svmkit "$$dir/source"; cd "$$dir"; \
	pip() { env/bin/python -m pip --quiet --disable-pip-version-check "$$@"; }; \
	pip wheel --no-deps --wheel-dir . ./source; rm -r source; \
	pip install --no-deps svmkit-*.whl; \
	export PYTHONPATH="$$packages" PATH="$$dir/env/bin:$$PATH" SVMKIT_CACHE="$$dir/cache"; \
	test -f env/lib/python*/site-packages/svmkit/py.typed; \
	svmkit --version; \
	printf '%s\n' '1 1:1 2:.9' '1 1:.8' '-1 2:-1' '-1 1:-1 2:-.7' >data; cut -d ' ' -f 1 data >labels; \
	svmkit train data; svmkit predict data data.model | diff - labels; \
	svm-train -q data; svm-predict data data.model answers; diff answers labels

bench: $(READY)
	@$(BIN)/python scripts/bench.py --markdown

fetch: $(READY)
	@$(BIN)/python scripts/fetch.py

docs: $(READY)
	@$(BIN)/python scripts/readme.py

clean:
	rm -rf demo bench build dist svmkit.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -not -path './svmkit/*' -prune -exec rm -rf {} +
