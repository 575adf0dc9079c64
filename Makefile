# `make demo` and `make test` need only python3, venv and make: everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-elsewhere test-lowest test-pythons coverage check dist bench league soak figures docs clean

demo: .venv/installed
	$(BIN)/isingkit demo

# Each process of the tests has a core of its own: threads of matrix products would wait for each other, spinning.
test: .venv/tested
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal

# What computes, as on other processors: another set of matrix products, no vectors or no AVX-512, other numbers of threads.
test-elsewhere: .venv/tested
	$(BIN)/python tests/elsewhere.py

# The core with the lowest versions that pyproject.toml allows, in a venv of its own, from the wheel.
test-lowest: .venv/bin/python
	$(BIN)/python tests/lowest_versions.py

# The same with the newest versions, under other Pythons: PYTHONS="python3.13 python3.14".
PYTHONS ?= python3.12 python3.13
test-pythons: .venv/bin/python
	$(BIN)/python tests/lowest_versions.py --newest $(PYTHONS)

# An sdist, and a wheel made from it, in dist/.
dist: .venv/bin/python
	rm -rf dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "build>=1.2"
	$(BIN)/python -m build --outdir dist

# Branches of src/ that tests run, and what they leave out: compiled from nothing, so that code which makes vector code
# runs, too, and once without compilation (tests/uncompiled.py), for only then kernels can be seen.
coverage: .venv/tested
	rm -rf .coverage .coverage.* .venv/coverage
	OPENBLAS_NUM_THREADS=1 NUMBA_CACHE_DIR=$(CURDIR)/.venv/coverage $(BIN)/python -m pytest -q -n auto --dist worksteal --cov --cov-report= --cov-fail-under=0
	$(BIN)/python -m coverage report

check: .venv/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layout.py

figures: .venv/tested
	$(BIN)/isingkit reproduce all --workers 2

# Pages are made anew from nothing, so that none is left of what is gone. A warning is an error; nothing is fetched.
docs: .venv/documented
	rm -rf docs/_build docs/gallery docs/reference/generated
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "written: docs/_build/html/index.html"

bench: .venv/benched
	$(BIN)/python benchmarks/run.py

# What has no record yet, then tables and page; ARGS="--final" runs what is reserved.
league: .venv/tested
	PYTHONPATH=benchmarks $(BIN)/python -m league --workers 2 $(ARGS)

# Whatever may happen, drawn at random, for 20 minutes; ARGS="--minutes 5 --seed 3" for others.
soak: .venv/tested
	PYTHONPATH=benchmarks $(BIN)/python -m soak $(ARGS)

clean:
	rm -rf .venv dist isingkit-demo docs/_build docs/gallery docs/reference/generated

# One venv, installed anew only when pyproject.toml changes. Editable, so that the code of the checkout is what runs.
.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	@echo "installing isingkit and what it needs into .venv (about half a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/tested: pyproject.toml | .venv/bin/python
	@echo "installing isingkit and what its tests need into .venv (about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	touch $@ .venv/installed

.venv/documented: pyproject.toml | .venv/bin/python
	@echo "installing isingkit and what its pages need into .venv (about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@ .venv/installed

.venv/benched: pyproject.toml | .venv/bin/python
	@echo "installing isingkit and its peers into .venv (about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	touch $@ .venv/tested .venv/installed
