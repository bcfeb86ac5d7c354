"""Documents are what their templates give, name tests and files that exist, and hold code that runs."""

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import yaml
from workspaces import ROOT, Workspace, replace

from pipeline.clients.exchange import read
from pipeline.corpora.labelled import Labelled
from pipeline.errors import QuorumError
from pipeline.report.documents import num, render, templates
from pipeline.workspace.tables import read_table, write_table

SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
WITHOUT_SOURCE = [
    ('{{ table("gone.csv") }}', r"DOC\.md\.j2: .*gone\.csv"),
    ("{{ gain }}", r"DOC\.md\.j2: 'gain' is undefined"),
    ('{{ row([{"run": "one"}], run="two") }}', r"DOC\.md\.j2: 0 rows have run=two"),
    ('{{ row([{"run": "one"}] * 2, run="one") }}', "2 rows have run=one"),
]


@pytest.mark.parametrize("template", templates(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_is_its_rendered_template(template: Path) -> None:
    assert template.with_suffix("").read_text(encoding="utf-8") == render(template), "run `make docs`"


@pytest.mark.parametrize(("text", "message"), WITHOUT_SOURCE)
def test_what_has_no_source_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    template = tmp_path / "DOC.md.j2"
    template.write_text(text, encoding="utf-8")
    with pytest.raises(QuorumError, match=message):
        render(template, tmp_path)


def test_numbers_have_a_sign_below_0_alone() -> None:
    """0.0004 of a hundred is 0.04%; -0.004 rounds to 0, which has no sign."""
    numbers = num("1234.5", 1), num(-0.5, 2), num(-0.004, 2), num(0.0004, 2, times=100)
    assert numbers == ("1,234.5", "−0.50", "0.00", "0.04")


def test_every_test_and_file_that_the_page_on_security_names_exists() -> None:
    known = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named, files = re.findall(r"`(test_\w+)`", SECURITY), re.findall(r"tests/[\w/]+\.py", SECURITY)
    assert len(named) > 10
    assert files
    assert [name for name in named if f"def {name}(" not in known] == []
    assert [name for name in files if not (ROOT / name).is_file()] == []


METHODS = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
LINES = re.findall(r'"(\w+)": "(pipeline\.[\w.]+)",', METHODS)
"""(Name, module) of each line that the page adds to a registry."""
TEXTS = (ROOT / "docs" / "texts.md").read_text(encoding="utf-8")
LABELS = ("a", "b;c", "c", "a;b")
"""Besides one combination, `c;a`, of which there is one text."""
OWN = ROOT / "experiments" / "own"
SHOWN: dict[str, Any] = yaml.safe_load(TEXTS[TEXTS.index("    data:\n      tickets:") :].partition("\n\n")[0])
SMALL = {"data_source": "sample", "device": "cpu", "precision": "fp32", "sign_flips": 200}


def examples() -> dict[str, str]:
    """Path -> code: each block, under the file that was named last before it; the first is of no file."""
    found, path = {}, ""
    for named, code in re.findall(r"`(pipeline/[\w/]+\.py)`|```python\n(.*?)```", METHODS, flags=re.DOTALL):
        path = named or path
        if code and path:
            found[path] = code
    return found


@pytest.fixture(scope="module")
def methods(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The page's experiment with tiny weights in SmolLM2's place, and few of the sample's examples."""
    params, comparisons = re.findall(r"```yaml\n(.*?)```", METHODS, flags=re.DOTALL)
    own = yaml.safe_load(params.replace("smollm2-135m", "tiny-llama"))
    own["settings"]["domains"]["counts"] = {"train": 4, "val": 2, "test": 2}
    workspace = Workspace.laid(tmp_path_factory.mktemp("own"))
    workspace.write_params(own | SMALL)
    (workspace.folder / "comparisons.yaml").write_text(comparisons, encoding="utf-8")
    for path, code in examples().items():
        (workspace.folder / path).write_text(code, encoding="utf-8")
    for name, module in LINES:
        registry = workspace.folder.joinpath(*module.split(".")[:-1], "__init__.py")
        replace(registry, ": dict[str, str] = {\n", f': dict[str, str] = {{\n    "{name}": "{module}",\n')
    workspace.make_apart()
    return workspace


def test_the_runs_are_scored_by_the_tasks_own_metric_and_compared(methods: Workspace) -> None:
    assert (len(examples()), len(LINES)) == (4, 3)
    metrics = json.loads((methods.folder / "reports" / "metrics.json").read_text())
    assert list(metrics) == ["zeroshot", "fedavg", "fedmedian", "fedsmooth"]
    assert {tuple(sorted(figures)) for figures in metrics.values()} == {("exact", "loss")}
    (row,) = read_table(methods.folder / "reports/tables/comparisons.csv")
    assert (row["name"], row["metric"]) == ("fedmedian", "exact")


def test_the_objectives_gradient_is_that_of_its_loss() -> None:
    """Smoothing 0.1 over two words, logits (0, 0), target 0: L = ln 2, ∂L/∂z = (0.5 − 0.95, 0.5 − 0.05)."""
    code = examples()["pipeline/federated/objectives/smoothing.py"]
    module = sys.modules["smoothing"] = ModuleType("smoothing")
    exec(compile(code, "docs/methods.md", "exec"), vars(module))
    found = module.LabelSmoothing(0.1)(torch.zeros(1, 2), torch.tensor([0]), None, {})
    assert found.loss.item() == pytest.approx(0.6931, abs=1e-4)
    assert found.gradient.tolist()[0] == pytest.approx([-0.45, 0.45])


@pytest.mark.parametrize("page", ["README.md", "docs/methods.md"])
def test_the_first_lines_of_python_print_what_they_say(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In the comment at their end: that of a round of docs/methods.md is (1 · 2 + 3 · 4) / 4 = 3.5."""
    code = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    exec(compile(code, page, "exec"), {})
    assert capsys.readouterr().out.strip().split("\n")[-1] == code.strip().rpartition("# ")[2]


def test_the_experiment_to_copy_has_the_pages_lines() -> None:
    params = yaml.safe_load((OWN / "params.yaml").read_text(encoding="utf-8"))
    assert {name: params[name] for name in SHOWN} == SHOWN


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The page's YAML with the tiny encoder in MiniLM's place, and sixty tickets of one or two labels."""
    workspace = Workspace.laid(tmp_path_factory.mktemp("own_text"))
    (named,) = re.findall(r"`(pipeline/tasks/\w+\.py)`:\n\n```python\n(.*?)```", TEXTS, flags=re.DOTALL)
    (workspace.folder / named[0]).write_text(named[1], encoding="utf-8")
    (line,) = re.findall(r'`("\w+": "pipeline\.tasks\.\w+",)`', TEXTS)
    registry = "TASKS: dict[str, str] = {\n"
    replace(workspace.folder / "pipeline/tasks/__init__.py", registry, f"{registry}    {line}\n")
    for name in ("params.yaml", "comparisons.yaml"):
        (workspace.folder / name).write_bytes((OWN / name).read_bytes())
    for written, here in {"minilm-l6": "tiny-bert", "e,0-4": "e,0", "task: classify": "task: multilabel"}.items():
        replace(workspace.folder / "params.yaml", written, here)
    replace(workspace.folder / "comparisons.yaml", "accuracy", "f1")
    labels = ["c;a", *(LABELS[i % 4] for i in range(1, 60))]
    rows = [{"text": f"printer {i} is slow", "label": label} for i, label in enumerate(labels)]
    write_table(workspace.folder / "data/own/tickets.csv", rows)
    workspace.make_apart()
    return workspace


def test_the_task_is_scored_by_its_own_metric(texts: Workspace) -> None:
    metrics = json.loads((texts.folder / "reports" / "metrics.json").read_text(encoding="utf-8"))
    assert list(metrics) == ["tickets-untrained", "tickets-fedavg", "tickets-centralized"]
    assert set(metrics["tickets-fedavg"]) == {"f1"}
    assert 0 <= metrics["tickets-fedavg"]["f1"] <= 100


def test_the_partition_of_the_page_has_the_form_that_is_read(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^    (\{\"niid.*\})$", TEXTS, flags=re.MULTILINE)
    (tmp_path / "mine.json").write_text(shown, encoding="utf-8")
    identity = "20news/train/sci.med/59045"
    known = {identity: Labelled(identity, "train", "", "", "words", "sci.med")}
    assert read(tmp_path / "mine.json", "20news", known) == {"A": [identity]}
