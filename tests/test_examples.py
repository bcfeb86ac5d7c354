"""The examples in the code's own words run, and give what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest
from conftest import ROOT

MODULES = (
    "pipeline.clients.batches",
    "pipeline.clients.dirichlet",
    "pipeline.clients.exchange",
    "pipeline.clients.folds",
    "pipeline.corpora.roles",
    "pipeline.corpora.transcripts",
    "pipeline.report.effects",
    "pipeline.evaluation.intervals",
    "pipeline.federated.figures",
    "pipeline.federated.objectives.threshold",
    "pipeline.federated.optimizer",
    "pipeline.model.frozen_part",
    "pipeline.runs.summarize",
    "pipeline.runs.tuning",
    "pipeline.tasks.answer",
    "pipeline.tasks.spans",
    "pipeline.tasks.title",
    "pipeline.workspace.layout",
    "pipeline.workspace.words",
)


@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0


def test_no_module_has_examples_that_are_not_run() -> None:
    found = {path for path in (ROOT / "pipeline").rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")}
    assert {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found} == set(MODULES)
