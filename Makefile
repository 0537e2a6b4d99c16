# Agglab: `make` lists the targets. Every target sets up what it needs first (setup.sh, at once when nothing is missing).
PYTHON := .venv/bin/python
.DEFAULT_GOAL := help
.PHONY: help setup doctor export scenario figures scenarios check compile test test-long test-quick lint bless explore mutants bench conformance random fuzz machine clean

NAME ?=
FILE ?= $(if $(filter %.yaml %.yml,$(NAME)),$(NAME),$(if $(NAME),scenarios/$(NAME).yaml))
RESULTS ?= results
TO ?=
OUT ?= build/export-$(TO)
BACKEND ?=
TARGET ?=
PROGRAM ?=
LANES ?= 256
SLOTS ?= 512
TESTS ?=
SCHEDULES ?= 100000
SYSTEM ?=
N ?= 1000
SEED ?= 1
FUZZ ?= 1000000
SUITE ?= bookworm
LONG ?=
RUN ?=
ONLY ?=
TEST_SEED ?= 1

# The caller's words reach the recipes as environment variables, never as shell text.
export NAME LONG FILE TO OUT RESULTS BACKEND TARGET PROGRAM LANES SLOTS TESTS SCHEDULES SYSTEM N SEED FUZZ SUITE RUN ONLY TEST_SEED

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup:  ## install what is missing (apt packages, .venv)
	@./setup.sh

doctor: setup  ## show what this machine has, what each lack costs, and what mends it
	@$(PYTHON) -m agglab.testbed doctor

scenario: setup  ## run a scenario: NAME=quickstart or FILE=my.yaml; RESULTS=dir, BACKEND=virtual, TARGET=bmv2; PASSED, FAILED or UNDECIDED
	@test -n "$$FILE" || { echo 'make scenario: say NAME=quickstart or FILE=path/to.yaml; make scenarios lists them' >&2; exit 2; }
	@$(PYTHON) -m agglab.testbed run "$$FILE" --results "$$RESULTS" \
		$${BACKEND:+--set "backend=$$BACKEND"} $${TARGET:+--set "switch.target=$$TARGET"}

export: setup  ## export a scenario for p4-utils or p4lang's tutorials: NAME= or FILE=, TO=p4app|tutorial, OUT=dir
	@test -n "$$FILE" && test -n "$$TO" || { echo 'make export: say NAME=quickstart TO=p4app (or tutorial), and OUT=dir' >&2; exit 2; }
	@$(PYTHON) -m agglab.testbed export "$$FILE" --to "$$TO" --out "$$OUT"

figures: setup  ## run and draw figures from the literature, on real links and in virtual time: NAME= for one, LONG=1 for a night's run
	@$(PYTHON) -m agglab.testbed figures $${NAME:+"$$NAME"} $${LONG:+--long} --results "$$RESULTS/figures"

scenarios: setup  ## list the scenarios, one per line
	@$(PYTHON) -m agglab.testbed list

check: setup  ## validate a scenario without running it: NAME= or FILE=
	@test -n "$$FILE" || { echo 'make check: say NAME=quickstart or FILE=path/to.yaml' >&2; exit 2; }
	@$(PYTHON) -m agglab.testbed check "$$FILE"

compile: setup  ## compile PROGRAM (all of p4/) for LANES and SLOTS into build/
	@mkdir -p build
	@set -e; if test -n "$$PROGRAM"; then set -- "$$PROGRAM"; else set -- p4/*.p4; fi; \
		for program; do product="build/$$(basename "$$program" .p4)"; \
		$(PYTHON) -m p4native.compiler "$$program" -I p4 "-DLANES=$$LANES" "-DSLOTS=$$SLOTS" \
		-o "$$product.json" --p4runtime-files "$$product.p4info.txtpb"; echo "$$product.json"; done

test: setup lint  ## lint, and tests of every kind, within eight minutes on two cores; TESTS=folder: all tests of a folder
	@$(PYTHON) tests/run.py $(if $(TESTS),"$$TESTS",--short)

test-long: setup  ## tests that `make test` leaves out; TESTS=folder: those of a folder; TEST_SEED=1 draws among many cases
	@$(PYTHON) tests/run.py --long $${TESTS:+"$$TESTS"}

test-quick: setup  ## ruff, and the tests of some folders, within a minute on two cores: for use while you edit
	@$(PYTHON) -m ruff check .
	@$(PYTHON) tests/run.py --quick

lint: setup  ## run ruff and mypy
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy

bless: setup  ## rewrite the golden files; read the diff
	@BLESS=1 $(PYTHON) -m pytest -q $(if $(TESTS),"$$TESTS") -k golden

explore: setup  ## search for schedules of faults that break a protocol, in virtual time: SCHEDULES=100000, SYSTEM=ring
	@$(PYTHON) -m agglab.verification explore --schedules "$$SCHEDULES" $${SYSTEM:+--system "$$SYSTEM"}

mutants: setup  ## put faults into a copy of Agglab, one at a time, and see which check catches each; ONLY="id ...", docs/mutants.md
	@set -f; $(PYTHON) -m agglab.verification mutants $${ONLY:+--only $$ONLY}

bench: setup  ## measure speed, as ratios to something that is measured in the same run
	@$(PYTHON) -m benchmarks

conformance: setup  ## compare programs, packet tests and sums with p4c and BMv2, where these are installed
	@$(PYTHON) -m agglab.verification conformance

random: setup  ## compare N=1000 random programs and their packets as conformance does, from SEED=1 on
	@$(PYTHON) -m p4native.verification conformance --random "$$N" --first-seed "$$SEED"

fuzz: setup  ## feed FUZZ=1000000 malformed packets and other inputs to builds with sanitizers; SEED=1
	@$(PYTHON) -m agglab.verification fuzz --packets "$$FUZZ" --seed "$$SEED"

machine:  ## boot Debian under QEMU, provision it and run quickstart, or RUN='make …', there; SUITE=trixie
	@python3 tests/machine/machine.py --suite "$$SUITE" --results "$$RESULTS" "$$RUN"

clean: setup  ## remove what killed runs left behind, and build products
	@$(PYTHON) -m agglab.testbed clean
	@rm -rf build
