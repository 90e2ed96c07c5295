# Everything a developer or continuous integration types. `make help` lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

# A small master around the session library, built by `cpp`; the tests play it against real sidecars.
# `cpp-all` builds it with the address sanitizer too.
export MESOS_ALLOCATOR_DRIVER ?= $(CURDIR)/.cache/module/plain/tests/session_driver
SANITIZED_DRIVER := $(CURDIR)/.cache/module/address/tests/session_driver
# The module's brain as a library, for the simulation.
export MESOS_ALLOCATOR_BRAIN ?= $(CURDIR)/.cache/module/plain/brain/liballocator_brain_c.so

# What the two distributions declare.
DECLARED := pyproject.toml laboratory/pyproject.toml laboratory/setup.py

# The stamp carries the hash of what it was made from, so that a switch of branches is noticed
# whatever the time stamps of the files say.
STAMP := $(VENV)/.installed-$(shell cat requirements-dev.lock $(DECLARED) | sha256sum | cut -c1-16)
# What the package itself needs, which is enough to compile its loops.
RUNTIME_STAMP := $(VENV)/.runtime-$(shell sha256sum requirements.lock | cut -c1-16)

# Runs targets at the same time, also where no -j was given.
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
setup: ## virtual environment in .venv, exactly as locked, and compiled loops
	+@$(SIDE_BY_SIDE) $(STAMP) loops

# For targets that run loops: everything is installed, and the loops are compiled.
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

# What tests need of the system: .ci/tools.txt.
.PHONY: tools
tools: | $(BIN)/pip
	@.ci/tools $(BIN)

.PHONY: lint
lint: $(STAMP) ## style, import contracts, rules about the code itself, plain English
	ruff check
	ruff format --check
	lint-imports
	pytest -q tests/test_tidy.py tests/docs/test_prose.py
	.ci/lint-module

.PHONY: types
types: $(STAMP) ## mypy
	mypy

TESTS := --ignore tests/test_tidy.py --ignore tests/docs/test_prose.py
# Many tests wait for processes, so there are more workers than processors.
PYTEST := pytest --numprocesses $(shell expr $$(nproc) + 2) --dist worksteal $(TESTS)

# pytest rewrites and compiles each test file on import: here once, instead of in every worker.
TESTS_COMPILED := $(VENV)/.tests-compiled
$(TESTS_COMPILED): $(STAMP)
	@.ci/quietly pytest --collect-only -q $(TESTS)
	@touch $@

# ARGS names tests in Python, of either tier: the C++ stays as it was built before.
.PHONY: test
test: ## the tests of every change: each behaviour, each real part once; ARGS='-k drf': some of both tiers
	+@$(SIDE_BY_SIDE) $(STAMP) loops tools $(if $(ARGS),,cpp $(TESTS_COMPILED))
	$(PYTEST) $(or $(ARGS),-m 'not long')

.PHONY: test-all
test-all: ## also what is long, repeated or statistical: sanitizers, many random histories, torture
	+@$(SIDE_BY_SIDE) $(STAMP) loops tools $(TESTS_COMPILED)
	+@$(MAKE) --no-print-directory cpp-all gate-times
	HYPOTHESIS_PROFILE=all MESOS_ALLOCATOR_DRIVER=$(SANITIZED_DRIVER) \
	  $(PYTEST)

# Neither needs anything of Python.
.PHONY: cpp
cpp:
	.ci/module plain

.PHONY: cpp-all
cpp-all: ## the C++ tests, also optimised, under the sanitizers, and with more random lives
	.ci/module all

.PHONY: coverage-module
coverage-module: cpp ## lines of the brain (C++) that its tests run
	.ci/module-coverage

.PHONY: simulate
simulate: warm cpp ## brain, session and core together under a seeded scheduler: ARGS='--seeds 0-99'
	python -m tests.simulation.run $(ARGS)

# How long each target is fuzzed.
SECONDS ?= 60
FUZZ_TARGETS := wire config journal records traces admin

# The fuzzer is for this alone, so it is not among what is locked; the version is fixed all the same.
.PHONY: fuzz
fuzz: warm ## fuzz each target, guided by coverage: SECONDS=600; the corpus alone is part of `make test`
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/pip install -q --no-deps atheris==3.0.0
	for target in $(FUZZ_TARGETS); do \
	  python -m tests.fuzz.run $$target --seconds $(SECONDS) || exit 1; \
	done

# How long the module's brain and session are fuzzed, each.
FUZZ_S ?= 60

.PHONY: fuzz-module
fuzz-module: ## fuzz the module's C++, guided by coverage (clang): FUZZ_S=600; `make cpp` plays the corpus
	.ci/fuzz-module $(FUZZ_S)

.PHONY: doctest
doctest: warm ## the examples in docstrings
	python -m pytest -p tests.conftest --doctest-modules allocator laboratory \
	  --ignore allocator/v1 --ignore laboratory/setup.py $(ARGS)

.PHONY: papers
papers: warm ## the papers' numbers, one test a claim
	pytest --verbose tests/papers $(ARGS)

# Ray and Spark are too large for .venv: they are installed beside it, for this alone. A skipped test
# fails. Spark 3.5 takes Java 8, 11 or 17.
ENGINES := .cache/engines
ENGINES_STAMP := $(ENGINES)/.installed-$(shell cat requirements-engines.lock $(DECLARED) | sha256sum | cut -c1-16)

.PHONY: engines
engines: $(ENGINES_STAMP) ## sweeps on clusters of Dask, Ray and Spark, which it installs; not part of `make test`
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
bench: warm ## what everything costs: bench-out/report.md; ARGS='--only times grid': a part of it
	python -m tests.bench.report $(ARGS)

.PHONY: gate
gate: $(STAMP) ## does the sidecar do more work than recorded? ARGS=--record: keep the present counts
	python -m tests.bench.gate $(ARGS)

.PHONY: gate-times
gate-times: warm ## processor times beside those of an earlier commit; ARGS=--record: compare with HEAD from now on
	python -m tests.bench.times $(ARGS)

.PHONY: check
check: lint types test doctest proto-check docs-check gate ## all that continuous integration checks

.PHONY: demo
demo: warm ## an emulated master and a real sidecar, on this machine
	$(BIN)/allocator-lab demo

# The path below proto/ equals the package's, so the generated imports need no patching.
# Stubs for services are asked for only where there is one: the rest would be empty files.
define generate
	python -m grpc_tools.protoc --proto_path proto --python_out $(1) --mypy_out quiet:$(1) $(PROTOS)
	python -m grpc_tools.protoc --proto_path proto --grpc_python_out $(1) --mypy_grpc_out quiet:$(1) $(SERVICES)
endef

.PHONY: proto
proto: $(STAMP) ## regenerate allocator/v1 from proto/
	$(call generate,.)

.PHONY: proto-check
proto-check: $(STAMP) ## allocator/v1 is what proto/ says
	@rm -rf .cache/proto && mkdir -p .cache/proto
	$(call generate,.cache/proto)
	diff -r --exclude __init__.py --exclude __pycache__ .cache/proto/allocator/v1 allocator/v1

.PHONY: docs
docs: $(STAMP) ## regenerate pages of docs/, the example of a configuration, the dashboards; build the site
	python deploy/grafana/generate.py
	python tools/docs/generate.py # which says on which dashboards a metric is
	mesos-allocator check-config --example > deploy/config.example.toml
	@$(MAKE) --no-print-directory site
	@echo 'the site: $(CURDIR)/.cache/site/index.html'

.PHONY: site
site: $(STAMP)
	mkdocs build --quiet

.PHONY: docs-check
docs-check: $(STAMP) ## the site can be built, and every link in it leads somewhere
	mkdocs build --quiet --site-dir .cache/site-checked

.PHONY: docs-serve
docs-serve: $(STAMP) ## show the site on http://localhost:8000, and follow changes
	mkdocs serve

.PHONY: pictures
pictures: warm tools ## the pictures of the README and of docs/, from real runs
	python -m tests.pictures

# What needs no Mesos; with MESOS_ROOT it is the module for that Mesos.
.PHONY: module
ifeq ($(MESOS_ROOT),)
module: tools cpp ## the C++ with its tests; MESOS_ROOT=... [PREFIX=...]: the module for that Mesos
	pytest --numprocesses 2 --dist worksteal tests/integration/sessions/test_cpp_session.py $(ARGS)
else
module:
	.ci/mesos-module $(MESOS_ROOT) $(PREFIX)
endif

VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' allocator/__init__.py)
# docker or podman, whichever works here.
ENGINE ?= $(shell .ci/container-engine)

.PHONY: version
version:
	@echo $(VERSION)

# Podman's own format of images has no health check.
.PHONY: image
image: ## container image of the sidecar, by docker or podman: ENGINE=podman chooses
	BUILDAH_FORMAT=docker $(ENGINE) build --tag mesos-allocator:$(VERSION) --tag mesos-allocator \
	  --label org.opencontainers.image.version=$(VERSION) \
	  $(if $(REPOSITORY_URL),--label org.opencontainers.image.source=$(REPOSITORY_URL)) .

.PHONY: packages
packages: ## packages for Debian 12 and Red Hat Enterprise Linux 9, in dist/; MESOS_ROOT=...: also of the module
	VERSION=$(VERSION) .ci/packages $(PYTHON) $(MESOS_ROOT)

# SITE_URL and REPOSITORY_URL go into what is built (CONTRIBUTING.md).
RELEASED = dist/mesos-allocator-$(VERSION)
release: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)

.PHONY: release
release: $(STAMP) ## all that is released, in dist/: wheels, sources, packages, image, site, SHA256SUMS
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

# An ordinary run keeps what is locked where the declarations allow it: `make lock UPGRADE=1` moves on.
compile = uv pip compile $(1) --quiet --generate-hashes --python-version 3.11 \
  --python-platform x86_64-manylinux_2_28 --no-emit-index-url --no-emit-find-links \
  --no-emit-package mesos-allocator --no-build-isolation \
  --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
BOTH := pyproject.toml laboratory/pyproject.toml

.PHONY: lock
lock: $(STAMP) ## resolve what both distributions declare into the three lock files
	$(call compile,pyproject.toml) --output-file requirements.lock
	$(call compile,$(BOTH)) --extra dev --extra dask --constraint requirements.lock \
	  --output-file requirements-dev.lock
	$(call compile,$(BOTH)) --extra engines --constraint requirements-dev.lock \
	  --output-file requirements-engines.lock

.PHONY: clean
clean: ## remove what was built, keep .venv
	rm -rf .benchmarks .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf bench-out build dist demo-out papers-out *.egg-info laboratory/*.egg-info
	find allocator laboratory tests -name __pycache__ -type d -prune -exec rm -rf {} +
