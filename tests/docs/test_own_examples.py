"""The system of docs/methods.md, taken out of the page and run: a method, an objective, a task and an experiment."""

import json
import re
import sys
from types import ModuleType

import pytest
import torch
import yaml
from workspaces import ROOT, Workspace, replace

from pipeline.workspace.tables import read_table

PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
LINES = re.findall(r'"(\w+)": "(pipeline\.[\w.]+)",', PAGE)
"""(Name, module) of each line that the page adds to a registry."""
SMALL = {"data_source": "sample", "device": "cpu", "precision": "fp32", "sign_flips": 200}


def examples() -> dict[str, str]:
    """Path -> code: each block, under the file that was named last before it; the first is of no file."""
    found, path = {}, ""
    for named, code in re.findall(r"`(pipeline/[\w/]+\.py)`|```python\n(.*?)```", PAGE, flags=re.DOTALL):
        path = named or path
        if code and path:
            found[path] = code
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The page's experiment with tiny weights in SmolLM2's place, and few of the sample's examples."""
    params, comparisons = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
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


def test_the_runs_are_scored_by_the_tasks_own_metric_and_compared(made: Workspace) -> None:
    """The page shows four files and three lines."""
    assert (len(examples()), len(LINES)) == (4, 3)
    metrics = json.loads((made.folder / "reports" / "metrics.json").read_text())
    assert list(metrics) == ["zeroshot", "fedavg", "fedmedian", "fedsmooth"]
    assert {tuple(sorted(figures)) for figures in metrics.values()} == {("exact", "loss")}
    (row,) = read_table(made.folder / "reports/tables/comparisons.csv")
    assert (row["name"], row["metric"]) == ("fedmedian", "exact")


def test_the_objectives_gradient_is_that_of_its_loss() -> None:
    """Smoothing 0.1 over two words, logits (0, 0), target 0: L = ln 2, ∂L/∂z = (0.5 − 0.95, 0.5 − 0.05)."""
    code = examples()["pipeline/federated/objectives/smoothing.py"]
    module = sys.modules["smoothing"] = ModuleType("smoothing")
    exec(compile(code, "docs/methods.md", "exec"), vars(module))
    found = module.LabelSmoothing(0.1)(torch.zeros(1, 2), torch.tensor([0]), None, {})
    assert found.loss.item() == pytest.approx(0.6931, abs=1e-4)
    assert found.gradient.tolist()[0] == pytest.approx([-0.45, 0.45])


def test_the_readmes_lines_of_python_run(capsys: pytest.CaptureFixture[str]) -> None:
    code = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip().split("\n")[-1] == code.strip().rpartition("# ")[2]


def test_the_round_from_python_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    """(1 · 2 + 3 · 4) / 4 = 3.5."""
    code = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)[0]
    exec(compile(code, "docs/methods.md", "exec"), {})
    assert capsys.readouterr().out.strip() == "{'w': tensor(3.5000)}" == code.strip().rpartition("# ")[2]
