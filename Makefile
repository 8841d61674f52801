# Each target is complete by itself: it makes .venv with the interpreter PYTHON and installs what it needs there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS := cli test dev docs
STAMPS := $(EXTRAS:%=$(VENV)/installed-%)
PACKAGE := $(VENV)/installed-package
BUILD_REQUIREMENTS := scikit-build-core nanobind setuptools-scm cmake ninja
NATIVE := --config-settings=cmake.define.GSNMF_NATIVE=ON --config-settings=build-dir=build/kernels
KERNELS := $(wildcard src/gsnmf/_kernels/*.?pp)
KERNEL_TESTS := tests/kernels
LOWEST := .venv-lowest
LOWEST_TESTS := $(addprefix tests/,kernels core estimator commands dask/test_dask.py docs/test_package.py docs/test_public_names.py)
TOOLS := .venv-tools
SANITIZED := .venv-sanitized
BUILDS := .venv-builds

# A module is compiled when it is first imported, and its bytecode is kept: pip would compile thousands that nobody
# imports, which takes longer than installing them, and tests start dozens of processes that all import the package
export PYTHONDONTWRITEBYTECODE :=
PIP := -m pip install --quiet --disable-pip-version-check --no-compile

# $(call install,ENVIRONMENT,REQUIREMENTS): uv takes seconds where pip takes a minute; where uv cannot be had, pip does it
export UV_SYSTEM_CERTS ?= true
install = { $(1)/bin/python $(PIP) uv && $(1)/bin/python -m uv pip install --quiet --python $(1)/bin/python $(2); } || \
	$(1)/bin/python $(PIP) $(2)

.PHONY: demo reproduce bench test test-all coverage test-lowest test-builds sanitize hostile lint types format docs dist clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo    factorize Python's documentation and scikit-learn's digits; reports in report/"
	@echo "make reproduce NAMES='documents faces' ARGS=--quick  figures and tables of the paper, by default all; an interrupted run goes on"
	@echo "make bench NAME=selection ARGS=--quick  run a benchmark; without a name they are listed"
	@echo "make test    run the quick tests"
	@echo "make test-all  run all tests, those that take minutes too"
	@echo "make coverage  run all tests and print which lines and branches of the package none of them reaches"
	@echo "make test-lowest  run the quick tests with the lowest versions that pyproject.toml allows"
	@echo "make test-builds  run the tests of the kernels with every build of a wheel"
	@echo "make sanitize  run the tests of the kernels with address and undefined-behaviour sanitizers"
	@echo "make hostile MINUTES=30  draw matrices and files that try to break it"
	@echo "make lint    check style, format, and the layers of the package"
	@echo "make types   check types"
	@echo "make format  put the code in the house format"
	@echo "make docs    build the site in build/site"
	@echo "make dist    build and check the distributions in dist/"
	@echo "make clean   remove .venv, the site, the report and all caches"

demo: $(VENV)/installed-cli
	$(BIN)/gsnmf demo

reproduce: $(VENV)/installed-test
	$(BIN)/python -m reproduction $(NAMES) $(ARGS)

bench: $(VENV)/installed-test
	$(BIN)/python -m benchmarks$(NAME:%=.%) $(ARGS)

# One process per core, each with one thread: faster than one process whose kernels share the cores
PYTEST := pytest -n auto --dist worksteal
RUN_TESTS := GSNMF_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m $(PYTEST)

test: $(VENV)/installed-test
	$(RUN_TESTS) -m "not long" $(PYTEST_ARGS)

test-all: $(VENV)/installed-test
	$(RUN_TESTS) $(PYTEST_ARGS)

coverage: $(VENV)/installed-test
	rm -rf build/coverage
	mkdir -p build/coverage
	GSNMF_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m coverage run -m $(PYTEST) $(PYTEST_ARGS)
	$(BIN)/python -m coverage combine
	$(BIN)/python -m coverage report

# Old versions warn of what is newer than they are, so warnings are no errors here; scikit-learn 1.6 has its tests ask
# SciPy for the array API
test-lowest: $(LOWEST)/installed
	SCIPY_ARRAY_API=1 GSNMF_NUM_THREADS=1 OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -W default -n auto --dist worksteal $(or $(PYTEST_ARGS),$(LOWEST_TESTS))

# The tests of the kernels with every build of a wheel that this processor runs
test-builds: $(BUILDS)/installed
	for build in $$($(BUILDS)/bin/python -c 'from gsnmf._kernels.native import available_builds; print(*available_builds())'); do \
	  echo "== $$build" && GSNMF_KERNELS=$$build OMP_NUM_THREADS=1 $(BUILDS)/bin/python -m pytest -q -p no:cacheprovider $(KERNEL_TESTS) $(PYTEST_ARGS) || exit 1; \
	done

# The tests of the kernels with a build that stops at the first bad address or undefined operation
sanitize: $(SANITIZED)/installed
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libubsan.so)" \
	  OMP_NUM_THREADS=1 $(SANITIZED)/bin/python -m pytest -p no:cacheprovider $(KERNEL_TESTS) $(PYTEST_ARGS)

hostile: $(VENV)/installed-test
	$(BIN)/python tests/hostile/campaign.py $(or $(MINUTES),30) $(or $(SEED),1000)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/installed-dev
	$(BIN)/mypy

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Sources are copied, so that generated pages lie in build/ only; pages that no longer exist go, the gallery is kept
docs: $(VENV)/installed-docs
	mkdir -p build/docs
	find build/docs -mindepth 1 -maxdepth 1 ! -name gallery -exec rm -rf {} +
	cp -R docs/. build/docs
	cp CHANGELOG.md CONTRIBUTING.md build
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html -d build/doctrees -c docs build/docs build/site

# The sdist, and a wheel with kernels for all processors of this kind
dist: $(TOOLS)/installed
	rm -rf dist
	packaging/with_compiler $(TOOLS) python -m build
	$(TOOLS)/bin/twine check --strict dist/*

clean:
	rm -rf $(VENV) $(LOWEST) $(TOOLS) $(SANITIZED) $(BUILDS) build dist report .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found; name a Python >= 3.11: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python >= 3.11 is needed, $(PYTHON) is $$($(PYTHON) -V); name another: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The package itself, with kernels for the processor of this machine; build/kernels keeps what is compiled
$(PACKAGE): pyproject.toml CMakeLists.txt $(KERNELS) | $(BIN)/python
	$(call install,$(VENV),$(BUILD_REQUIREMENTS))
	packaging/with_compiler $(VENV) sh -c "$(call install,$(VENV),--no-build-isolation --editable . $(NATIVE))"
	@touch $@

# dev includes test, and test includes cli; the package is there already, so only what they add is installed
$(STAMPS): $(VENV)/installed-%: $(PACKAGE)
	$(call install,$(VENV),'gsnmf[$*]')
	@touch $@

$(LOWEST)/installed: pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python $(PIP) uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[test]'
	@touch $@

$(SANITIZED)/installed: OPTIONS := --config-settings=cmake.define.GSNMF_SANITIZE=ON
$(SANITIZED)/installed $(BUILDS)/installed: pyproject.toml CMakeLists.txt $(KERNELS)
	$(PYTHON) -m venv $(@D)
	$(call install,$(@D),'.[test]' $(OPTIONS))
	@touch $@

$(TOOLS)/installed:
	$(PYTHON) -m venv $(TOOLS)
	$(call install,$(TOOLS),build twine)
	@touch $@
