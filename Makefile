# All commands for development and continuous integration. `make help` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

# A small master with the session library, built by `cpp`, which tests run against real sidecars.
# `cpp-all` also builds it with the address sanitizer.
export MESOS_ALLOCATOR_DRIVER ?= $(CURDIR)/.cache/module/plain/tests/session_driver
SANITIZED_DRIVER := $(CURDIR)/.cache/module/address/tests/session_driver
# The module's brain as a library, for the simulation.
export MESOS_ALLOCATOR_BRAIN ?= $(CURDIR)/.cache/module/plain/brain/liballocator_brain_c.so

# Declarations of the two distributions.
DECLARED := pyproject.toml laboratory/pyproject.toml laboratory/setup.py

# The stamp's name contains a hash of its inputs, so a change of branch is noticed whatever the files'
# times are.
STAMP := $(VENV)/.installed-$(shell cat requirements-dev.lock $(DECLARED) | sha256sum | cut -c1-16)
# The dependencies of the package itself, which suffice to compile its loops.
RUNTIME_STAMP := $(VENV)/.runtime-$(shell sha256sum requirements.lock | cut -c1-16)

# Runs targets in parallel, also without -j.
SIDE_BY_SIDE = $(MAKE) --no-print-directory --silent $(if $(filter -j%,$(MAKEFLAGS)),,-j4)

PROTOS := $(sort $(wildcard proto/allocator/v1/*.proto))
SERVICES := $(shell grep -l '^service' $(PROTOS) /dev/null)

# Options for pytest: `make test ARGS='-k drf'`.
ARGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## create the virtual environment .venv with locked versions, and compile the loops
	+@$(SIDE_BY_SIDE) $(STAMP) loops

# For targets that run loops: installs everything, and compiles the loops.
.PHONY: warm
warm: setup

.PHONY: loops
loops: $(RUNTIME_STAMP)
	@$(BIN)/python -m allocator warm

$(BIN)/pip:
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || .ci/debian-packages python3-venv
	@.ci/quietly $(PYTHON) -m venv --clear $(VENV)

$(RUNTIME_STAMP): | $(BIN)/pip
	@echo 'installing $(shell grep -c '^[a-z]' requirements.lock) packages that the allocator needs'
	@.ci/quietly $(BIN)/pip install --require-hashes --requirement requirements.lock
	@rm -f $(VENV)/.runtime-*
	@touch $@

$(STAMP): | $(RUNTIME_STAMP)
	@echo 'installing $(shell grep -c '^[a-z]' requirements-dev.lock) packages for development (a minute)'
	@.ci/quietly $(BIN)/pip install --require-hashes --requirement requirements-dev.lock
	@.ci/quietly $(BIN)/pip install --no-deps --no-build-isolation --editable . --editable laboratory
	@rm -f $(VENV)/.installed-*
	@touch $@

# Programs of the system that tests need: .ci/tools.txt.
.PHONY: tools
tools: | $(BIN)/pip
	@.ci/tools $(BIN)

.PHONY: lint
lint: $(STAMP) ## check style, import contracts, the project's own rules, and plain English
	ruff check
	ruff format --check
	lint-imports
	pytest -q tests/test_tidy.py tests/docs/test_prose.py
	.ci/lint-module

.PHONY: types
types: $(STAMP) ## check types (mypy)
	mypy

TESTS := --ignore tests/test_tidy.py --ignore tests/docs/test_prose.py
# More workers than processors, because many tests wait for processes.
PYTEST := pytest --numprocesses $(shell expr $$(nproc) + 2) --dist worksteal $(TESTS)

# pytest rewrites and compiles each test file on import. Do this once, instead of in every worker.
TESTS_COMPILED := $(VENV)/.tests-compiled
$(TESTS_COMPILED): $(STAMP)
	@.ci/quietly pytest --collect-only -q $(TESTS)
	@touch $@

# With ARGS, only Python tests run, of either tier; the C++ is not rebuilt.
.PHONY: test
test: ## run the first tier of tests, for every change; ARGS='-k drf' selects tests of both tiers
	+@$(SIDE_BY_SIDE) $(STAMP) loops tools $(if $(ARGS),,cpp $(TESTS_COMPILED))
	$(PYTEST) $(or $(ARGS),-m 'not long')

.PHONY: test-all
test-all: ## run both tiers: also long, repeated and statistical tests, sanitizers, torture
	+@$(SIDE_BY_SIDE) $(STAMP) loops tools $(TESTS_COMPILED)
	+@$(MAKE) --no-print-directory cpp-all gate-times
	HYPOTHESIS_PROFILE=all MESOS_ALLOCATOR_DRIVER=$(SANITIZED_DRIVER) \
	  $(PYTEST)

# Neither target needs Python.
.PHONY: cpp
cpp:
	.ci/module plain

.PHONY: cpp-all
cpp-all: ## run the C++ tests, also optimised, with sanitizers, and with more random tests
	.ci/module all

.PHONY: coverage-module
coverage-module: cpp ## measure line coverage of the brain (C++) by its tests
	.ci/module-coverage

.PHONY: simulate
simulate: warm cpp ## simulate brain, session and core together, with a seeded scheduler: ARGS='--seeds 0-99'
	python -m tests.simulation.run $(ARGS)

# How long each target is fuzzed.
SECONDS ?= 60
FUZZ_TARGETS := wire config journal records traces admin

# Only this target needs the fuzzer, so it is not in the lock file; its version is fixed here.
.PHONY: fuzz
fuzz: warm ## fuzz each target, guided by coverage: SECONDS=600; `make test` runs the corpus only
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/pip install -q --no-deps atheris==3.0.0
	for target in $(FUZZ_TARGETS); do \
	  python -m tests.fuzz.run $$target --seconds $(SECONDS) || exit 1; \
	done

# How long the module's brain and session are each fuzzed.
FUZZ_S ?= 60

.PHONY: fuzz-module
fuzz-module: ## fuzz the module's C++, guided by coverage (clang): FUZZ_S=600; `make cpp` runs the corpus only
	.ci/fuzz-module $(FUZZ_S)

.PHONY: doctest
doctest: warm ## run the examples in docstrings
	python -m pytest -p tests.conftest --doctest-modules allocator laboratory \
	  --ignore allocator/v1 --ignore laboratory/setup.py $(ARGS)

.PHONY: papers
papers: warm ## reproduce the papers' results, one test per claim
	pytest --verbose tests/papers $(ARGS)

# Ray and Spark are too large for .venv, so this target installs them separately. A skipped test is a
# failure. Spark 3.5 needs Java 8, 11 or 17.
ENGINES := .cache/engines
ENGINES_STAMP := $(ENGINES)/.installed-$(shell cat requirements-engines.lock $(DECLARED) | sha256sum | cut -c1-16)

.PHONY: engines
engines: $(ENGINES_STAMP) ## test sweeps on clusters of Dask, Ray and Spark, which it installs; not part of `make test`
	@command -v java >/dev/null || test -x "$$JAVA_HOME/bin/java" || .ci/debian-packages openjdk-17-jre-headless
	CI=true MESOS_ALLOCATOR_ENGINES=1 $(ENGINES)/bin/python -m pytest tests/laboratory/experiments/test_engines.py $(ARGS)

$(ENGINES_STAMP):
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || .ci/debian-packages python3-venv
	@.ci/quietly $(PYTHON) -m venv --clear $(ENGINES)
	@echo 'installing $(shell grep -c '^[a-z]' requirements-engines.lock) packages (a few minutes)'
	@.ci/quietly $(ENGINES)/bin/pip install --require-hashes --requirement requirements-engines.lock
	@.ci/quietly $(ENGINES)/bin/pip install --no-deps --no-build-isolation --editable . --editable laboratory
	@touch $@

.PHONY: bench
bench: warm ## run all benchmarks: bench-out/report.md; ARGS='--only times grid': some of them
	python -m tests.bench.report $(ARGS)

.PHONY: gate
gate: $(STAMP) ## check that the sidecar does no more work than recorded; ARGS=--record: record the present counts
	python -m tests.bench.gate $(ARGS)

.PHONY: gate-times
gate-times: warm ## compare processor times with an earlier commit; ARGS=--record: compare with HEAD from now on
	python -m tests.bench.times $(ARGS)

.PHONY: check
check: lint types test doctest proto-check docs-check gate ## run all checks of continuous integration

.PHONY: demo
demo: warm ## run an emulated master and a real sidecar on this machine
	$(BIN)/allocator-lab demo

# The path below proto/ equals the package's, so the generated imports need no changes. Request stubs of
# services only for files with a service; the others would be empty.
define generate
	python -m grpc_tools.protoc --proto_path proto --python_out $(1) --mypy_out quiet:$(1) $(PROTOS)
	python -m grpc_tools.protoc --proto_path proto --grpc_python_out $(1) --mypy_grpc_out quiet:$(1) $(SERVICES)
endef

.PHONY: proto
proto: $(STAMP) ## regenerate allocator/v1 from proto/
	$(call generate,.)

.PHONY: proto-check
proto-check: $(STAMP) ## check that allocator/v1 matches proto/
	@rm -rf .cache/proto && mkdir -p .cache/proto
	$(call generate,.cache/proto)
	diff -r --exclude __init__.py --exclude __pycache__ .cache/proto/allocator/v1 allocator/v1

.PHONY: docs
docs: $(STAMP) ## regenerate pages of docs/, the example configuration and the dashboards; build the site
	python deploy/grafana/generate.py
	python tools/docs/generate.py # needs the dashboards, to list those that show a metric
	mesos-allocator check-config --example > deploy/config.example.toml
	@$(MAKE) --no-print-directory site
	@echo 'the site: $(CURDIR)/.cache/site/index.html'

.PHONY: site
site: $(STAMP)
	mkdocs build --quiet

.PHONY: docs-check
docs-check: $(STAMP) ## check that the site builds, and that its links are valid
	mkdocs build --quiet --site-dir .cache/site-checked

.PHONY: docs-serve
docs-serve: $(STAMP) ## show the site on http://localhost:8000, and follow changes
	mkdocs serve

.PHONY: pictures
pictures: warm tools ## regenerate the pictures of the README and docs/ from real runs
	python -m tests.pictures

# Without MESOS_ROOT, builds only the parts that need no Mesos.
.PHONY: module
ifeq ($(MESOS_ROOT),)
module: tools cpp ## build and test the C++; MESOS_ROOT=... [PREFIX=...]: the module for that Mesos
	pytest --numprocesses 2 --dist worksteal tests/integration/sessions/test_cpp_session.py $(ARGS)
else
module:
	.ci/mesos-module $(MESOS_ROOT) $(PREFIX)
endif

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' allocator/__init__.py)
# docker or podman, whichever works on this machine.
ENGINE ?= $(shell .ci/container-engine)

.PHONY: version
version:
	@echo $(VERSION)

# Podman's own image format has no health check.
.PHONY: image
image: ## build the container image, with docker or podman: ENGINE=podman chooses
	BUILDAH_FORMAT=docker $(ENGINE) build --tag mesos-allocator:$(VERSION) --tag mesos-allocator \
	  --label org.opencontainers.image.version=$(VERSION) \
	  $(if $(REPOSITORY_URL),--label org.opencontainers.image.source=$(REPOSITORY_URL)) .

.PHONY: packages
packages: ## build packages for Debian 12 and Red Hat Enterprise Linux 9 in dist/; MESOS_ROOT=...: also of the module
	VERSION=$(VERSION) .ci/packages $(PYTHON) $(MESOS_ROOT)

# Packages, site and image contain SITE_URL and REPOSITORY_URL (CONTRIBUTING.md).
RELEASED = dist/mesos-allocator-$(VERSION)
release: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)

.PHONY: release
release: $(STAMP) ## build a release in dist/: wheels, sources, packages, image, site, SHA256SUMS
	rm -rf build dist
	python -m build --wheel --no-isolation --outdir dist
	python -m build --wheel --no-isolation --outdir dist laboratory
	git archive --prefix mesos-allocator-$(VERSION)/ --output $(RELEASED)-source.tar.gz HEAD
	+@$(MAKE) --no-print-directory packages image site
	$(ENGINE) save --output $(RELEASED)-image.tar mesos-allocator:$(VERSION)
	gzip -n $(RELEASED)-image.tar
	tar --create --file $(RELEASED)-site.tar.gz --use-compress-program 'gzip -n' --sort name \
	  --mtime @$$SOURCE_DATE_EPOCH --owner 0 --group 0 --directory .cache/site .
	cd dist && sha256sum * >SHA256SUMS

# Keeps locked versions if the declarations allow them; `make lock UPGRADE=1` upgrades them.
compile = uv pip compile $(1) --quiet --generate-hashes --python-version 3.11 \
  --python-platform x86_64-manylinux_2_28 --no-emit-index-url --no-emit-find-links \
  --no-emit-package mesos-allocator --no-build-isolation \
  --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
BOTH := pyproject.toml laboratory/pyproject.toml

.PHONY: lock
lock: $(STAMP) ## resolve the dependencies of both distributions into the three lock files
	$(call compile,pyproject.toml) --output-file requirements.lock
	$(call compile,$(BOTH)) --extra dev --extra dask --constraint requirements.lock \
	  --output-file requirements-dev.lock
	$(call compile,$(BOTH)) --extra engines --constraint requirements-dev.lock \
	  --output-file requirements-engines.lock

.PHONY: clean
clean: ## remove build results, keep .venv
	rm -rf .benchmarks .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf bench-out build dist demo-out papers-out *.egg-info laboratory/*.egg-info
	find allocator laboratory tests -name __pycache__ -type d -prune -exec rm -rf {} +
