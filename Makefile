# Each target sets itself up first; nothing global is touched.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3.11
VENV := .venv
STAMP := $(VENV)/.installed-$(shell sha256sum requirements.lock | cut -c1-16)
FLOWER := .venv-flower
FLOWER_STAMP := $(FLOWER)/.installed-$(shell sha256sum benchmarks/flower.lock | cut -c1-16)
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PYTHONNOUSERSITE := 1
# What is not committed travels to the copy as a stash, which is a commit: git needs a name for it.
GIT_IDENTITY := $(shell git config user.email >/dev/null 2>&1 || echo GIT_AUTHOR_NAME=quorum GIT_AUTHOR_EMAIL=quorum@localhost GIT_COMMITTER_NAME=quorum GIT_COMMITTER_EMAIL=quorum@localhost)
export MLFLOW_DISABLE_TELEMETRY := true
export DVC_NO_ANALYTICS := 1
export HF_HUB_DISABLE_TELEMETRY := 1

.PHONY: help nginx setup setup-flower smoke repro repro-all repro-full missing page tune fednlp fedsum faults ablations federation chaos chaos-crashes chaos-federation test coverage check-results golden ui lint docs bench clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | expand -t 18

setup: $(STAMP)  ## .venv with the pinned packages, and what a kill left of DVC's files mended; a second call does nothing
	@python -m pipeline mend

# The stamp's name has the lock's hash, so a lock that is only newer installs nothing. Compiled here for machines where Python writes no bytecode.
$(STAMP):
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found: install Python 3.11 or 3.12, or say make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo "setup: installing pinned packages into $(VENV) (about a minute, once)"
	@$(VENV)/bin/python -m pipeline.workspace.install requirements.lock $(VENV)
	@$(VENV)/bin/python -m compileall -q pipeline
	@rm -f $(VENV)/.installed-* && touch $@

# A command in an experiment's folder.
IN_EXPERIMENT := env PYTHONPATH=../.. QUORUM_BASE=../.. python -m pipeline

# What lies outside the workspace, and has changed or come within reach: dvc does not look there.
RENEW = stages=$$(python -m pipeline outdated) && { [ -z "$$stages" ] || dvc repro --force --single-item $$stages; }

# Hours on made-up meetings would stay among results.
REFUSE_SAMPLE = ! grep -lq '"source": "sample"' reports/data/*.json || { echo "error: $(1): made-up samples here; set QUORUM_MIRROR to a folder with the corpora, or go online, then run the same command again"; exit 1; }

# An experiment's folder: a setting that leaves a client too little is refused before the first training; all runs are
# trained before one decodes for all.
define EXPERIMENT
	@cd $(1) && stages=$$($(IN_EXPERIMENT) outdated) && { [ -z "$$stages" ] || dvc repro --force --single-item $$stages; }
	@cd $(1) && dvc repro prepare && $(call REFUSE_SAMPLE,$(1))
	@cd $(1) && dvc repro partition && dvc repro train && dvc repro predict && dvc repro
	@echo "$@: open $(1)/reports/report.html and $(1)/reports/examples.html"
endef

smoke: setup  ## every stage, file and page in minutes: made-up meetings, random weights, in work/smoke
	@$(GIT_IDENTITY) python -m pipeline copies smoke
	@cd work/smoke && unset DVC_ROOT && dvc repro train && dvc repro predict && dvc repro
	@echo "smoke: open work/smoke/reports/report.html; its runs: make ui STORE=work/smoke"

repro: setup  ## the tour: real meetings, five rows, reports/report.html (minutes)
	@$(RENEW)
	@dvc repro train && dvc repro predict && dvc repro
	@echo "repro: open reports/report.html and reports/examples.html"

repro-all: repro  ## the tour, and every table and figure of the first paper: experiments/paper (hours)
	$(call EXPERIMENT,experiments/paper)

test: lint  ## the test suite, linters and types included
	@python -m pipeline weights || echo "test: going on without the embedded backbone: the test that needs it is left out"
	@python -m pytest

coverage: setup  ## the test suite with coverage of pipeline/ by lines
	@COVERAGE_CORE=$$(python -c "import sys; print('sysmon' if hasattr(sys, 'monitoring') else 'ctrace')") python -m pytest --cov=pipeline --cov-report=
	@echo "coverage of pipeline/ by lines: $$(python -m coverage report --format=total) %"

check-results: page  ## render the result again from results/: its tables must be those that git has
	@git diff --exit-code --stat -- $(FULL)/reports/tables

golden: setup  ## compare the bits of tiny pipelines with tests/golden (minutes)
	@OMP_NUM_THREADS=1 python -m tests.golden --compare

FULL := experiments/full
# Eight runs share one reading of the test meetings. A kill costs the round or the batch that it hits.
repro-full: setup  ## the project's result: trains what has no result yet, eight runs at a time (hours, resumable)
	@cd $(FULL) && dvc repro prepare backbone && $(call REFUSE_SAMPLE,$(FULL))
	@set -o pipefail; cd $(FULL) && dvc repro partition && while :; do \
		stages=$$($(IN_EXPERIMENT) missing | cut -d ' ' -f 1-8) || exit 1; [ -n "$$stages" ] || break; \
		dvc repro $${stages//evaluate/train} && dvc repro $${stages//evaluate/predict} && dvc repro $$stages || exit 1; done
	@$(MAKE) --no-print-directory page

missing: setup  ## the stages that repro-full has still to run
	@cd $(FULL) && dvc repro plan && $(IN_EXPERIMENT) missing

page: setup  ## experiments/full/reports/report.html from the committed results, without texts, weights or training (a minute)
	@cd $(FULL) && dvc repro plan && dvc repro --single-item report
	@echo "page: open $(FULL)/reports/report.html"

fednlp: setup  ## FedNLP: four tasks, skewed federations, and how much of an encoder is frozen (an hour and more)
	$(call EXPERIMENT,experiments/fednlp)

fedsum: setup  ## FedSum: extractive summarization as published and as released (hours)
	$(call EXPERIMENT,experiments/fedsum)

faults: setup  ## what dropout, stragglers and poisoned clients cost (a quarter of an hour)
	$(call EXPERIMENT,experiments/faults)

ablations: setup  ## what the first paper lacks (hours)
	$(call EXPERIMENT,experiments/ablations)

IN ?= experiments/paper
tune: setup  ## learning rates and knobs of IN=experiments/paper, chosen on validation (hours): results/tuning.csv
	@cd $(IN) && dvc repro prepare backbone && $(call REFUSE_SAMPLE,$(IN)) && $(IN_EXPERIMENT) tune

# First of all: Flower takes a minute to install.
nginx:
	@command -v nginx >/dev/null || { echo "error: nginx not found: install it (Debian: apt-get install nginx-light), and run the same command again"; exit 1; }

federation: nginx setup setup-flower  ## a real federation on this machine: a server and three organisations on Flower, AdaFedSelectKD (minutes)
	@python -m pipeline federation demonstrate

chaos: chaos-crashes chaos-federation  ## all that is broken on purpose: the pipeline, a real federation, a thousand simulated clients
	@python -m pytest tests/chaos/test_many_clients.py -n 0 -s

chaos-crashes: setup  ## kill the pipeline at 200 moments, cut its power at 60, fill its disks, and run it once more
	@python -m pytest tests/chaos/test_crashes.py tests/chaos/test_full_disks.py -n 0 -vv

chaos-federation: nginx setup setup-flower  ## break a real federation in ten ways, and knock at it uninvited (under half an hour)
	@python -m pytest tests/chaos/test_federation_*.py -n 0 -vv

STORE ?= .
ui: setup  ## MLflow on the runs, at http://127.0.0.1:5000; those of make smoke: make ui STORE=work/smoke
	@cd $(STORE) && python -m pipeline track
	@echo "ui: open http://127.0.0.1:5000/#/experiments/1/runs?workflowType=machine_learning (Ctrl-C ends it)"
	@cd $(STORE) && mlflow ui --backend-store-uri sqlite:///mlflow.db --host 127.0.0.1 --port 5000

lint: setup  ## ruff and mypy alone
	@ruff format --check --quiet pipeline tests benchmarks
	@ruff check pipeline tests benchmarks
	@mypy

docs: setup  ## the documents that quote numbers, from their templates and the committed tables: docs/*.md, benchmarks/SCALE.md
	@python -m pipeline docs

setup-flower: $(FLOWER_STAMP)  ## .venv-flower: Flower, whose pins contradict those of .venv

bench: setup setup-flower  ## every comparison of benchmarks/, into reports/benchmarks
	@dvc repro plan backbone || echo "bench: going on without the embedded backbone: its rows are left out"
	@python -m benchmarks
	@python -m benchmarks.scale

$(FLOWER_STAMP): | $(STAMP)
	@echo "setup: installing Flower into $(FLOWER)"
	@test -x $(FLOWER)/bin/python || $(PYTHON) -m venv --without-pip $(FLOWER)
	@python -m pipeline.workspace.install benchmarks/flower.lock $(FLOWER)
	@python -c "import sysconfig; print(sysconfig.get_path('purelib'))" > "$$($(FLOWER)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/quorum.pth"
	@rm -f $(FLOWER)/.installed-* && touch $@

clean:  ## remove the caches of the linters and the tests
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
