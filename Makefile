# Each target makes .venv when it is missing, installs what it needs and does its whole job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# What of the unpacked sdist's tests `make dist` runs against the wheel; the whole is DIST_TESTS=tests.
DIST_TESTS ?= tests/test_architecture.py tests/test_packaging.py tests/linalg tests/learning tests/cli/test_real_files.py

.PHONY: help demo test coverage lint format bench docs dist clean
help:
	@echo "make demo    measure some targets, predict the rest: print the comparison, write demo-report/index.html"
	@echo "make test    run the tests (make coverage: with their coverage)"
	@echo "make lint    ruff (lint and format) and mypy"
	@echo "make format  rewrite the sources in the house format"
	@echo "make bench   run the benchmarks (about ten minutes), tables and JSON in benchmarks/results"
	@echo "make docs    build the site in docs/_build/html and check it (GALLERY=none leaves the examples out)"
	@echo "make dist    build sdist and wheel, and test the wheel with the tests of the unpacked sdist"
	@echo "make clean   remove .venv and everything that was made"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.cli: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[cli]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

$(VENV)/.dist: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "build>=1.2"
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@touch $@

demo: $(VENV)/.cli
	$(BIN)/entangled-kernels demo --out demo-report --force

test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

coverage: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --cov --cov-fail-under=95

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/running_times.py
	$(BIN)/python benchmarks/output_kernel.py
	$(BIN)/python benchmarks/learners.py
	$(BIN)/python benchmarks/certificates.py --problems 10
	$(BIN)/python benchmarks/selection.py
	$(BIN)/python benchmarks/scale.py --quick

# Which examples are run, by a regular expression on their paths.
GALLERY ?= /plot_

docs: $(VENV)/.docs
	DOCS_GALLERY='$(GALLERY)' $(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

dist: $(VENV)/.dist
	rm -rf dist $(VENV)-dist
	$(BIN)/python -m build
	mkdir dist/unpacked
	tar -xzf dist/*.tar.gz -C dist/unpacked --strip-components=1
	$(PYTHON) -m venv $(VENV)-dist
	$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[dev]"
	cd dist/unpacked && ../../$(VENV)-dist/bin/python -m pytest -p no:cacheprovider $(DIST_TESTS)

clean:
	rm -rf $(VENV) $(VENV)-dist build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage benchmarks/results \
		demo-report docs/_build docs/auto_examples docs/api/generated docs/api/backreferences
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
