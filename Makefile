# Two commands set everything up on a fresh machine: `make grade` grades a class, `make test` runs the tests.

PYTHON ?= python3
ASSIGNMENT ?= a2_attention
VENV := .venv
AUTOGRADER := $(VENV)/bin/autograder
# Each folder of tests in a process of its own, and one more at once than there are cores, since many tests wait for a
# limit. Not threads, nor a library that has some: tests fork graders, and a fork of a process with threads can hang.
TESTS := $(sort $(dir $(wildcard tests/autograder/*/test_*.py))) tests-of-no-folder

.PHONY: grade test $(TESTS) long check build build-check verify lint venv lock audit licences wheel page-check image-check publish site sbom clean help

help:            ## what there is
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/ —/'

grade: $(VENV)/ready   ## grade what lies in submitted/ (a demo class where it is empty), fill the gradebook, write the reports
	$(AUTOGRADER) build
	$(AUTOGRADER) demo $(ASSIGNMENT) --if-empty
	$(AUTOGRADER) grade $(ASSIGNMENT) || [ $$? -eq 1 ]
	$(AUTOGRADER) export $(ASSIGNMENT) --format gradebook
	$(AUTOGRADER) report $(ASSIGNMENT)

LEFT_OUT := build/left-out.txt
test: $(VENV)/ready    ## run the kit's own tests
	@mkdir -p build && rm -f $(LEFT_OUT)
	@LEFT_OUT=$(abspath $(LEFT_OUT)) $(MAKE) --no-print-directory --jobs=$(shell expr $$(nproc) + 1) --keep-going --output-sync $(TESTS); \
	  status=$$?; $(VENV)/bin/python tests/left_out.py $(LEFT_OUT); exit $$status

$(filter %/,$(TESTS)):
	$(VENV)/bin/python -m pytest $@

tests-of-no-folder:
	$(VENV)/bin/python -m pytest tests/autograder/test_*.py

long: $(VENV)/ready    ## long proofs, some hours: real faults, damaged files, hostile bytes, hunts (tests/long/README.md)
	$(VENV)/bin/python tests/long/fuzz_wire.py --inputs 1000000
	$(VENV)/bin/python tests/long/fuzz_files.py --sample 20
	$(VENV)/bin/python tests/long/file_faults.py --points 5
	$(VENV)/bin/python tests/long/faults.py --kills 60 --stops 4
	$(VENV)/bin/python tests/long/cluster_faults.py --faults 60
	$(VENV)/bin/python tests/long/server_faults.py --kills 40
	$(VENV)/bin/python tests/long/server_attacks.py
	$(VENV)/bin/python tests/long/hunt_all.py --minutes 60
	$(VENV)/bin/python tests/long/pasted_examples.py --every 10

check: lint build-check verify test   ## everything that CI checks

lint: $(VENV)/ready    ## style and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python tests/plain_words.py autograder
	$(VENV)/bin/python tests/plain_words.py docs README.md CONTRIBUTING.md
	@for file in tests/autograder/conftest.py tests/autograder/*/conftest.py; do $(VENV)/bin/mypy --no-error-summary $$file || exit 1; done

build: $(VENV)/ready   ## make assignments/ and solutions/ from source/
	$(AUTOGRADER) build

build-check: $(VENV)/ready
	$(AUTOGRADER) build --check

verify: $(VENV)/ready  ## prove the hidden suites, with a sample of mutants, of students' answers and of mistakes alone
	$(AUTOGRADER) verify --mutants 15 --samples 1 --alone 1 --unfinished 2 --pairs 3 --evidence 1

venv: $(VENV)/ready    ## only set up the environment

# What is installed is what the lock files name, to the byte. A build of torch that lies in a folder of PIP_FIND_LINKS
# goes before PyPI's, which on Linux needs CUDA's libraries beside it: `pip check` tells. `make lock` writes the files.
PIP := $(VENV)/bin/python -m pip
TOOLS := build/tools
LOCKED := install --quiet --no-compile --no-deps --require-hashes --requirement
SHIPPED := autograder/requirements

$(VENV)/ready: pyproject.toml requirements/dev.txt $(wildcard $(SHIPPED)/*.txt)
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11 or later, or run make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11: run make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "make: Python's venv module is missing: on Debian and Ubuntu, apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(PIP) $(LOCKED) $(SHIPPED)/torch.txt --no-index 2> /dev/null || $(PIP) $(LOCKED) $(SHIPPED)/torch.txt
	$(PIP) $(LOCKED) requirements/dev.txt
	@$(PIP) check > /dev/null || $(PIP) $(LOCKED) $(SHIPPED)/cuda.txt
	$(PIP) install --quiet --no-compile --no-deps --no-build-isolation --editable .
	$(PIP) check
	@$(VENV)/bin/python -m compileall -qq -j 0 -x '/(tests?|pip)/' $(VENV)/lib || true  # what pip would do on one core, but for libraries' own tests; some bring files that are no Python
	@touch $@

lock: $(TOOLS)/ready   ## write the lock files anew; UPGRADE=--upgrade takes the newest versions
	PATH="$(TOOLS)/bin:$$PATH" $(PYTHON) requirements/lock.py $(UPGRADE)

$(TOOLS)/ready: requirements/tools.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip $(LOCKED) requirements/tools.txt
	@touch $@

audit: $(TOOLS)/ready  ## look up known vulnerabilities of what is installed
	$(TOOLS)/bin/python requirements/audit.py $(SHIPPED)/torch.txt $(SHIPPED)/cuda.txt requirements/dev.txt

licences: $(VENV)/ready ## the licence of every package that the kit needs
	@$(VENV)/bin/python requirements/licences.py $(SHIPPED)/*.txt

wheel: $(VENV)/ready   ## the kit and the course as wheels, and the kit's source distribution
	$(PIP) wheel --quiet --no-deps --no-build-isolation --wheel-dir build/release .
	$(VENV)/bin/python distribution/course_package.py --to build/release
	$(VENV)/bin/python -c 'from setuptools import build_meta; build_meta.build_sdist("build/release")' > /dev/null
	@rm -rf attention_kit.egg-info build/lib build/bdist.*  # Python would take the first for the installed kit's

page-check: $(TOOLS)/ready  ## whether the page of each package in build/release can be shown
	$(TOOLS)/bin/twine check --strict build/release/*.whl build/release/*.tar.gz

image-check: $(TOOLS)/ready ## what a linter says of the Dockerfile
	$(TOOLS)/bin/hadolint Dockerfile

PACKAGES := build/release
publish: $(TOOLS)/ready  ## publish what lies in PACKAGES: in the workflow `release`, which the index trusts
	$(TOOLS)/bin/uv publish --trusted-publishing always $(PACKAGES)/*.whl $(PACKAGES)/*.tar.gz

SITE_TOOLS := build/site-tools
$(SITE_TOOLS)/ready: requirements/site.txt
	$(PYTHON) -m venv $(SITE_TOOLS)
	$(SITE_TOOLS)/bin/python -m pip $(LOCKED) requirements/site.txt
	@touch $@

site: $(SITE_TOOLS)/ready  ## the website in build/site: documentation, and the assignments as students get them
	$(SITE_TOOLS)/bin/python website/build_site.py --to build/site
	@echo "file://$(CURDIR)/build/site/index.html"

SBOM := build/release/locked
sbom: $(TOOLS)/ready   ## a bill of materials in CycloneDX's form
	@mkdir -p build/release
	cat $(SHIPPED)/*.txt > $(SBOM).txt
	$(TOOLS)/bin/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --of JSON --output-reproducible \
	  -o build/release/attention-kit.cdx.json $(SBOM).txt

clean:           ## remove working data and the environment; submitted/ stays
	rm -rf $(VENV) results autograded feedback gradebook.db .autograder
