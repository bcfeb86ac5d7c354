"""The task and the data set of docs/texts.md, taken out of the page and run: one file and one line."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from workspaces import ROOT, Workspace, replace

from pipeline.clients.exchange import read
from pipeline.corpora.labelled import Labelled

PAGE = (ROOT / "docs" / "texts.md").read_text(encoding="utf-8")
LABELS = ("a", "b;c", "c", "a;b")
"""Besides one combination, `c;a`, of which there is one text."""
OWN = ROOT / "experiments" / "own"
SHOWN: dict[str, Any] = yaml.safe_load(PAGE[PAGE.index("    data:\n      tickets:") :].partition("\n\n")[0])


def test_the_experiment_to_copy_has_the_pages_lines() -> None:
    params = yaml.safe_load((OWN / "params.yaml").read_text(encoding="utf-8"))
    assert {name: params[name] for name in SHOWN} == SHOWN


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The page's YAML with the tiny encoder in MiniLM's place, and sixty tickets of one or two labels."""
    workspace = Workspace.laid(tmp_path_factory.mktemp("own_text"))
    (named,) = re.findall(r"`(pipeline/tasks/\w+\.py)`:\n\n```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (workspace.folder / named[0]).write_text(named[1], encoding="utf-8")
    (line,) = re.findall(r'`("\w+": "pipeline\.tasks\.\w+",)`', PAGE)
    registry = "TASKS: dict[str, str] = {\n"
    replace(workspace.folder / "pipeline/tasks/__init__.py", registry, f"{registry}    {line}\n")
    for name in ("params.yaml", "comparisons.yaml"):
        (workspace.folder / name).write_bytes((OWN / name).read_bytes())
    for written, here in {"minilm-l6": "tiny-bert", "e,0-4": "e,0", "task: classify": "task: multilabel"}.items():
        replace(workspace.folder / "params.yaml", written, here)
    replace(workspace.folder / "comparisons.yaml", "accuracy", "f1")
    (workspace.folder / "data" / "own").mkdir(parents=True, exist_ok=True)
    with (workspace.folder / "data" / "own" / "tickets.csv").open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["text", "label"])
        labels = ["c;a", *(LABELS[i % 4] for i in range(1, 60))]
        rows.writerows([f"printer {i} is {'broken' if i % 2 else 'slow'}", label] for i, label in enumerate(labels))
    workspace.make_apart()
    return workspace


def test_the_task_is_scored_by_its_own_metric(made: Workspace) -> None:
    metrics = json.loads((made.folder / "reports" / "metrics.json").read_text(encoding="utf-8"))
    assert list(metrics) == ["tickets-untrained", "tickets-fedavg", "tickets-centralized"]
    assert set(metrics["tickets-fedavg"]) == {"f1"}
    assert 0 <= metrics["tickets-fedavg"]["f1"] <= 100


def test_the_partition_of_the_page_has_the_form_that_is_read(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^    (\{\"niid.*\})$", PAGE, flags=re.MULTILINE)
    path = tmp_path / "mine.json"
    path.write_text(shown, encoding="utf-8")
    identity = "20news/train/sci.med/59045"
    texts = {identity: Labelled(identity, "train", "", "", "words", "sci.med")}
    assert read(path, "20news", texts) == {"A": [identity]}
