# Each verb sets up what it needs: a virtual environment in .venv with what requirements/dev.txt pins.

.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
ARGS ?=

# Another project's environment must not leak into this one.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV
# The tests start hundreds of processes: without kept bytecode each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest
# Made for two cores: two more workers run while others wait for a disk, a process or a deadline. Workers take over each other's rest,
# so that none is idle at the end, and the tests of one file mostly share the fixtures of one worker.
WORKERS := -n 4 --dist worksteal
# A Python that was named by hand is the only one tried; the default falls back on others that may be on PATH.
CANDIDATES := $(if $(filter file,$(origin PYTHON)),$(PYTHON) python3.13 python3.12 python3.11,$(PYTHON))
# Changes with the requested Python and the place of the checkout, because neither can change below an environment.
MADE := .venv/made-for-$(shell { printf '%s\n' '$(PYTHON)'; pwd -P; } | cksum | cut -d ' ' -f 1)
READY := .venv/ready
DOCS_BIN := .docs-venv/bin
DOCS_READY := .docs-venv/ready
# Playwright and what it drives; a browser of the system is taken where there is one.
BROWSER_BIN := .browser/venv/bin
BROWSER_READY := .browser/venv/ready
# The tools that build packages stay apart, so that no other verb has to install them.
PACKAGING := .packaging
# The second distribution: the encoder of the search by meaning, with its weights.
RETRIEVER := packages/prowess-retriever
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(READY) ## make the virtual environment (every other verb does so when needed)

.PHONY: demo
demo: $(READY) ## run the demonstration
	$(BIN)/prowess demo

# Both at one time: tests that wait for a disk or a deadline leave room for the checks, which take a quarter of a minute.
.PHONY: test
test: $(READY) ## lint and run the tests, with samples of the large matrices; ARGS="…" goes to pytest
	+@$(MAKE) --no-print-directory -j 2 lint run-tests

.PHONY: run-tests
run-tests: $(READY)
	$(PYTEST) $(WORKERS) $(ARGS)

.PHONY: test-full
test-full: lint ## the same with the whole matrices
	$(PYTEST) $(WORKERS) --full $(ARGS)

# Twice as slow as the tests alone, so it is not part of them; CI runs it every night.
.PHONY: coverage
coverage: $(READY) ## measure the lines and branches that the whole matrices run; below the floor in pyproject.toml it fails
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(WORKERS) --full $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

.PHONY: test-foreign
test-foreign: $(READY) ## the tests with programs of others (FastMCP, the MCP Inspector, pre-commit, skills-ref), which it installs
	$(PYTEST) --full -m foreign $(ARGS)

.PHONY: test-clients
test-clients: $(READY) ## real clients (Claude Code, Codex, Gemini CLI, …), which it installs, with models on loopback
	$(PYTEST) --clients -m clients tests/clients $(ARGS)

.PHONY: test-adapters
test-adapters: $(READY) ## each adapter with its framework, in an environment of its own in .adapters; ARGS="langchain --newest", ARGS=--pin
	$(BIN)/python -m scripts.adapter_tests $(ARGS)

.PHONY: test-registries
test-registries: .registries/ready ## real OCI registries and an S3 server on loopback, beside oras, which it installs; needs root for apt
	@command -v docker-registry >/dev/null || apt-get install --yes --no-install-recommends docker-registry
	.registries/bin/python -m pytest tests/fetch/test_oci.py tests/fetch/test_oci_push.py tests/install/test_registries.py tests/publishing $(ARGS)

.PHONY: test-web
test-web: $(BROWSER_READY) ## the console in a real browser, with axe-core and a validator of HTML, which it installs into .browser
	$(BROWSER_BIN)/python -m pytest --web -m web tests/browser $(ARGS)

# Wine prints paths of its own, so the checkout is named as Windows names it. What the systems leave in "exchange" they
# verify for each other: Linux first, then Windows, then Linux what Windows has left.
WINDOWS_HOME ?= build/windows
WINDOWS_TESTS := tests/platforms tests/text tests/addresses tests/format tests/files tests/skills tests/lockfile tests/installed tests/discovery tests/test_settings.py
EXCHANGE := build/exchange
.PHONY: test-windows
test-windows: $(READY) ## a Windows Python under Wine: the command line, MCP and rooms; needs root for apt; WINDOWS_HOME=FOLDER
	scripts/windows_python.sh $(WINDOWS_HOME)
	rm -rf $(EXCHANGE) && mkdir -p $(EXCHANGE)
	PROWESS_EXCHANGE=$(CURDIR)/$(EXCHANGE) $(PYTEST) -q tests/platforms -k another_system
	PROWESS_EXCHANGE='Z:$(CURDIR)/$(EXCHANGE)' PYTHONPATH='Z:$(CURDIR)/src' $(WINDOWS_HOME)/python -m pytest -p no:cacheprovider -n 2 --dist worksteal $(WINDOWS_TESTS) $(ARGS)
	PROWESS_EXCHANGE=$(CURDIR)/$(EXCHANGE) $(PYTEST) -q tests/platforms -k another_system

.PHONY: pictures
pictures: $(BROWSER_READY) ## take the pictures of the console for docs/how-to/console.md; ARGS="library sees" for some
	$(BROWSER_BIN)/python -m scripts.console_pictures $(ARGS)

.PHONY: test-types
test-types: $(READY) ## check typed programs against openai, anthropic and mcp with mypy and pyright, which it installs
	$(PYTEST) --full -m foreign tests/tools/test_types.py $(ARGS)

.PHONY: lint
lint: $(READY) ## check style, format, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy src tests $(RETRIEVER)/src $(wildcard bench scripts training examples/*.py examples/frameworks examples/service)
	$(BIN)/lint-imports --no-logo

.PHONY: format
format: $(READY) ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# A filter cannot write the file that it reads, so the page is held in a variable; the point keeps its last line break.
.PHONY: manual
manual: $(READY) ## write the pages of the command line, the tables of agents, settings and symbols, and the demo's picture
	$(BIN)/python -m scripts.manual > docs/reference/cli.md
	$(BIN)/python -m scripts.manual json < docs/reference/cli.schema.json > docs/reference/cli-json.md
	for name in agents settings api/index; do \
	  page=$$(cat docs/reference/$$name.md; echo .); \
	  printf '%s' "$${page%.}" | $(BIN)/python -m scripts.manual $$name > docs/reference/$$name.md || exit 1; \
	done
	$(BIN)/python -m tests.docs.symbol_tables
	$(BIN)/python -m scripts.module_table
	$(BIN)/prowess demo --record docs/demo.svg > /dev/null

# Both take packages that nothing else needs, so they have an environment of their own.
.PHONY: docs
docs: $(DOCS_READY) ## build the documentation site into site/; a warning, or anything from another host, fails it
	$(DOCS_BIN)/zensical build --clean --strict
	@! grep -rnoE '<(script|link|img)[^>]+(src|href)="?https?:[^" ]+' --include='*.html' site

.PHONY: docs-serve
docs-serve: $(DOCS_READY) ## show the documentation site on this machine while you write
	$(DOCS_BIN)/zensical serve

# Building from the sdist proves that the sdist is complete.
.PHONY: package
package: $(PACKAGING)/ready ## build the sdist and the wheel of both packages into dist/; check what they hold and say
	rm -rf dist
	$(PACKAGING)/bin/python -m build --no-isolation --outdir dist
	$(PACKAGING)/bin/python -m build --no-isolation --outdir dist $(RETRIEVER)
	$(PACKAGING)/bin/python -m twine check --strict dist/*
	$(PACKAGING)/bin/check-wheel-contents dist/*.whl
	$(PACKAGING)/bin/python -m scripts.wheel_contents dist

.PHONY: bench
bench: $(READY) ## measure
	$(BIN)/python -m bench

.PHONY: bench-peers
bench-peers: $(READY) ## measure beside other loaders
	$(BIN)/python -m bench.peers

.PHONY: bench-encoders
bench-encoders: $(READY) ## measure the engines that could run the encoder: numpy and onnxruntime
	$(BIN)/python -m bench.encoders $(ARGS)

.PHONY: bench-installers
bench-installers: $(READY) ## measure beside the npm installer of skills, which it installs into .installers
	$(BIN)/python -m bench.installers $(ARGS)

.PHONY: bench-retrieval
bench-retrieval: $(READY) ## measure how well search finds real skills, and what it costs; ARGS="--folds FOLDER" for fold models
	$(BIN)/python -m bench.retrieval $(ARGS)

.PHONY: bench-security
bench-security: $(READY) ## count ordinary and labelled skills with a warning of check --security; ARGS="--labelled FOLDER"
	$(BIN)/python -m bench.security $(ARGS)

.PHONY: corpus
corpus: $(READY) ## load a corpus of real skills and count what loads
	$(BIN)/python -m bench.corpus

.PHONY: soak
soak: $(READY) ## ask a server for ten minutes while its skills change; ARGS="--seconds 60" for less
	$(BIN)/python -m bench.soak $(ARGS)

.PHONY: fuzz
fuzz: $(READY) ## disturb inputs of everything that parses for ten minutes; ARGS="--seconds 60 --seed 1" for less
	$(BIN)/python -m bench.fuzz $(ARGS)

.PHONY: clean
clean: ## remove everything that the other verbs made
	rm -rf .venv .docs-venv .cache .coverage .coverage.* site .adapters .browser .clients .installers .registries $(PACKAGING) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -path ./.git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

$(READY): $(MADE) requirements/dev.txt pyproject.toml $(RETRIEVER)/pyproject.toml
	$(PIP) install --require-hashes -r requirements/dev.txt
	$(PIP) install --no-build-isolation --no-deps --editable . --editable $(RETRIEVER)
	@touch $@

$(DOCS_READY): requirements/docs.txt | $(MADE)
	$(BIN)/python -m venv --clear .docs-venv
	$(DOCS_BIN)/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements/docs.txt
	@touch $@

$(BROWSER_READY): requirements/browser.txt pyproject.toml | $(MADE)
	$(BIN)/python -m venv --clear .browser/venv
	$(BROWSER_BIN)/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements/browser.txt
	$(BROWSER_BIN)/python -m pip --quiet --disable-pip-version-check install --no-build-isolation --no-deps --editable .
	@touch $@

.registries/ready: requirements/registries.txt pyproject.toml | $(MADE)
	$(BIN)/python -m venv --clear .registries
	.registries/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements/registries.txt
	.registries/bin/python -m pip --quiet --disable-pip-version-check install --no-build-isolation --no-deps --editable .
	@touch $@

$(PACKAGING)/ready: $(MADE) requirements/package.txt
	$(BIN)/python -m venv --clear $(PACKAGING)
	$(PACKAGING)/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes -r requirements/package.txt
	@touch $@

# An environment whose interpreter has gone is made again.
.PHONY: $(if $(shell test -x $(BIN)/python && echo usable),,$(MADE))

# An environment that somebody else made may hold what they need: it is never deleted. The first mark is older than the
# environment, so that an interrupted make finds its own.
$(MADE):
	@if [ -e .venv ] && ! ls .venv/made-* >/dev/null 2>&1; then \
	  echo "There is a .venv that make did not make. Move it away (mv .venv env), or remove it, and try again." >&2; \
	  exit 1; \
	fi; \
	problems=; \
	for python in $(CANDIDATES); do \
	  if ! version=$$("$$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then \
	    problem="there is no such command"; \
	  elif ! "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	    problem="it is Python $$version"; \
	  elif rm -rf .venv; mkdir .venv; touch .venv/made-by-make; \
	       ! output=$$("$$python" -m venv .venv 2>&1 && $(BIN)/python -m pip --version 2>&1); then \
	    rm -rf .venv; \
	    problem="it cannot make a virtual environment: $$output"; \
	  else \
	    echo "Made .venv with $$python ($$version)."; \
	    touch $@; \
	    exit 0; \
	  fi; \
	  problems="$$problems  $$python: $$problem\n"; \
	done; \
	{ echo "Prowess needs Python 3.11 or later with its venv and ensurepip modules, and found none:"; \
	  printf '%b' "$$problems"; \
	  echo "Install one (on Debian or Ubuntu: apt-get install python3-venv), or name one: make PYTHON=/path/to/python3"; \
	} >&2; \
	exit 1
