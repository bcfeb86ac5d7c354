"""The task and the data set of docs/texts.md, taken out of the page and run: one file and one line."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from workspaces import ROOT, Workspace

PAGE = (ROOT / "docs" / "texts.md").read_text(encoding="utf-8")
STAGES = """
from pipeline.stages import encode_texts, evaluate_texts, federate, plan, prepare_texts
from pipeline.stages import text_backbone, text_page, train_texts
plan.run(); text_backbone.run("tiny-bert"); prepare_texts.run("tickets"); encode_texts.run("tickets")
federate.run("tickets"); train_texts.run("tickets-fedavg"); evaluate_texts.run("tickets-fedavg"); text_page.run()
"""
COMMON: dict[str, Any] = yaml.safe_load(
    """
    {scale: laptop, seeds: [1], device: cpu, precision: fp32, data_source: sample, alpha: 1.0, rounds: 1, patience: 9,
     local_epochs: 1, batch_size: 4, clients_per_round: null, client_optimizer: adamw, client_schedule: constant,
     weight_decay: 0.01, clip_norm: 1.0, tau: 1.0, lambda: 0.2, local_start: own, sign_flips: 100, scales: {laptop: {}},
     backbones: [tiny-bert], tables: {methods: [tickets], partitions: [], cuts: [], sizes: [], natural: []},
     tune: {seed: 9, rates: {}, knobs: {}}}
    """
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The page's YAML with the tiny encoder in MiniLM's place, and sixty tickets of one or two labels."""
    workspace = Workspace.laid(tmp_path_factory.mktemp("own_text"))
    (named,) = re.findall(r"`(pipeline/tasks/\w+\.py)`:\n\n```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (workspace.folder / named[0]).write_text(named[1], encoding="utf-8")
    (line,) = re.findall(r'`("\w+": "pipeline\.tasks\.\w+",)`', PAGE)
    registry = workspace.folder / "pipeline" / "tasks" / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    registry.write_text(
        text.replace("TEXT_TASKS: dict[str, str] = {\n", f"TEXT_TASKS: dict[str, str] = {{\n    {line}\n")
    )
    shown = PAGE[PAGE.index("    datasets:\n      tickets:") :].partition("\n\n")[0]
    params = yaml.safe_load(
        shown.replace("minilm-l6", "tiny-bert").replace("e,0-4", "e,0").replace("classify", "multilabel")
    )
    (workspace.folder / "params.yaml").write_text(yaml.safe_dump(COMMON | params), encoding="utf-8")
    with (workspace.folder / "tickets.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        rows.writerows([f"printer {i} is {'broken' if i % 2 else 'slow'}", ["a", "b", "a;b"][i % 3]] for i in range(60))
    workspace.run(sys.executable, "-c", STAGES)
    return workspace


def test_the_task_is_scored_by_its_own_metric(made: Workspace) -> None:
    metrics = json.loads((made.folder / "reports" / "metrics.json").read_text(encoding="utf-8"))
    assert list(metrics) == ["tickets-fedavg"]
    assert set(metrics["tickets-fedavg"]) == {"f1"}
    assert 0 <= metrics["tickets-fedavg"]["f1"] <= 100


def test_the_page_shows_it(made: Workspace) -> None:
    assert "tickets-fedavg" in (made.folder / "reports" / "report.html").read_text(encoding="utf-8")


def test_the_partition_of_the_page_has_the_form_that_is_read(tmp_path: Path) -> None:
    from pipeline.clients.exchange import read

    (shown,) = re.findall(r"^    (\{\"niid.*\})$", PAGE, flags=re.MULTILINE)
    path = tmp_path / "mine.json"
    path.write_text(shown, encoding="utf-8")
    assert read(path, "20news", ["20news/train/sci.med/59045"]) == {"A": ["20news/train/sci.med/59045"]}
