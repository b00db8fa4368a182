# One command per chore. Needs Python >= 3.11 and a package index; everything is installed into .venv, once.
#   make PYTHON=python3.12 test    another interpreter (remove .venv first)
#   make WORKERS=8 test            more test processes
#   make PARTS="--only episode,calls" bench-all     some parts of it; see `python -m bench all --help`

PYTHON  ?= python3
WORKERS ?= 2
VENV    := .venv
RUN     := $(VENV)/bin/python
PIP     := $(RUN) -m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt

# --no-compile: modules are translated when they are first imported, few of all that are installed; half of the time. What
# make starts keeps these translations, even if the environment forbids it: otherwise every command would translate again.

unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test nightly quick durations contract lint format docs verify bench bench-all kernels constraints upgrade clean
.DELETE_ON_ERROR:

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.package  ## charging cars on 19,440 real days: who saves how much carbon, and who breaks the limit
	@$(VENV)/bin/hedgerow demo

# Files of tests stay in one process: what a module shares (a site, a browser, a page) is made once. A test that hangs is
# ended with its process, named, and counts as failed.

test: lint  ## ruff, mypy, pytest (warnings are errors) and `verify --quick`: what the CI runs
	@$(RUN) -m pytest -n $(WORKERS) --dist loadfile -m "not nightly" --timeout 400 --timeout-method thread
	@$(VENV)/bin/hedgerow verify --quick -j $(WORKERS)

nightly: lint  ## all tests at their full size, `verify` and the soaks: before a release, or over night
	@$(RUN) -m pytest -n $(WORKERS) --dist loadfile --timeout 3600 --timeout-method thread
	@$(VENV)/bin/hedgerow verify -j $(WORKERS)
	@for soak in signed_mutations.py field_mutations.py "flip_kernels.py --count 500" "flip_cells.py --count 500" \
	  flip_logs.py "kill_save.py --count 500" "kill_sweep.py --count 40" "kill_compare.py --count 20" signal_storm.py \
	  "kill_serve.py --count 1000" "kill_serve.py --count 100 --database postgresql" \
	  "growth.py --episodes 1000000 --simulations 2000" "thread_torture.py --seconds 120"; \
	  do echo "soak: $$soak"; $(RUN) tests/soak/$$soak || exit 1; done

quick: $(VENV)/.dev  ## the tests that take less than a minute together, while you write code
	@$(RUN) -m pytest -n $(WORKERS) -m "not slow"

durations: $(VENV)/.dev  ## the processor time of every test of `make test`, the dearest ones first
	@$(RUN) -m pytest -n $(WORKERS) --dist loadfile -m "not nightly" -p tools.test_times --times out/test-times.json

contract: $(VENV)/.package  ## only the contract of the catalogue, for a second interpreter (see .ci/run)
	@$(PIP) pytest
	@$(RUN) -m pytest tests/worlds/test_contract.py

lint: $(VENV)/.dev  ## ruff (rules and format) and mypy (strict on src and bench)
	@$(RUN) -m ruff check
	@$(RUN) -m ruff format --check
	@$(RUN) -m mypy

format: $(VENV)/.dev  ## rewrite the sources in the house format
	@$(RUN) -m ruff check --fix
	@$(RUN) -m ruff format

docs: $(VENV)/.dev  ## check the docs (links, names, every block) and build the site into out/site
	@$(RUN) tools/check_docs.py
	@$(RUN) tools/build_docs.py
	@$(RUN) tools/build_docs.py --builder mkdocs --work out/fallback

verify: $(VENV)/.dev  ## every promise of the paper on running code, some minutes
	@$(VENV)/bin/hedgerow verify -j $(WORKERS)

bench: $(VENV)/.dev  ## measure speed and scale, quickly; `python -m bench --help` for the whole
	@for what in projection episode scale cores; do $(RUN) -m bench $$what --quick || exit 1; done

bench-all: $(VENV)/.dev  ## measure everything that the docs show and write it there: hours, in pieces if need be
	@$(RUN) -m bench all $(PARTS)

kernels: $(VENV)/.package  ## compile for x86-64-v3 and -v4 and pack: clones with this Python need not compile
	@$(RUN) tools/ship_kernels.py

constraints:  ## add what constraints.txt lacks, keep the versions that it has
	@$(PYTHON) tools/write_constraints.py

upgrade:  ## rewrite constraints.txt with the newest versions of everything
	@$(PYTHON) tools/write_constraints.py --upgrade

clean:  ## remove .venv, caches and build products
	rm -rf $(VENV) .venv-system .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One environment, two stamps: the demo does not wait for the developers' tools, and compiles what it needs itself; the
# tests find all kernels compiled. pip and the build backend (the group `install`) come first and by name: a pip that is older
# than 25.1 knows no dependency groups. The backend is used without an isolated environment: its version is pinned as well.

$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "hedgerow needs Python 3.11 or newer; $(PYTHON) is missing or older." \
	            "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "$(PYTHON) cannot create virtual environments;" \
	            "on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/.package: pyproject.toml constraints.txt $(wildcard kernels/*.tar.xz) | $(RUN)
	@echo "installing hedgerow and what it needs into $(VENV) (once)"
	@$(PIP) pip hatchling
	@$(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.package
	@echo "installing the developers' tools into $(VENV) (once)"
	@$(PIP) --no-build-isolation -e '.[dask,figures,gym]' --group dev
	@$(VENV)/bin/hedgerow compile
	@touch $@
