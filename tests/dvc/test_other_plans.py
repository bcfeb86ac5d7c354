"""Plans unlike the shared one, stage by stage: own meetings, two seeds with an encoder-decoder, fewer runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, Workspace

from pipeline.stages import ingest
from pipeline.workspace.files import read_json, read_jsonl

FEDAVG = {"fedavg": {"setting": "domains", "method": "AdaFedAvg"}}
OWN = {"Clinic": {"folder": "data/own/Clinic"}}


def meetings_into(folder: Path) -> None:
    """The sample's, as if they were one's own."""
    folder.mkdir(parents=True)
    for path in sorted((folder.parents[2] / "data/sample/qmsum/Product").rglob("*.json")):
        (folder / f"own-{path.name}").write_bytes(path.read_bytes())


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A plan with own meetings, whose only run is made."""
    made = Workspace.laid(
        tmp_path_factory.mktemp("clinic"),
        **SMALL | {"own": OWN, "runs": FEDAVG, "sections": {"main": ["fedavg"]}},
    )
    meetings_into(made.folder / "data/own/Clinic")
    made.make()
    return made


def test_own_meetings_become_a_client(clinic: Workspace) -> None:
    metrics = read_json(clinic.folder / "reports/metrics/all.json")
    assert list(metrics["fedavg"]) == ["Academic", "Committee", "Product", "Clinic", "mean"]
    assert (clinic.folder / "models/fedavg/1/adapters/Clinic.safetensors").is_file()


def test_own_meetings_are_found_from_a_temporary_copy(
    clinic: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """data/own is not in git, so that an experiment's copy lacks it: it is at the root that DVC names."""
    for name in ("plan", "checksums", "sample"):
        shutil.copytree(clinic.folder / "data" / name, tmp_path / "data" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(clinic.folder))
    ingest.run("qmsum")
    brought = {path.name for path in (tmp_path / "data/raw/qmsum/own/Clinic").rglob("*.json")}
    assert brought == {path.name for path in (clinic.folder / "data/own/Clinic").iterdir()}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two runs at two seeds on an encoder-decoder."""
    runs = {**FEDAVG, "fedselectkd": {"setting": "domains", "method": "AdaFedSelectKD"}}
    params = {"seeds": [1, 2], "backbone": "tiny-bart", "backbones": ["tiny-bart"], "page": "paper", "runs": runs}
    params |= {"sections": {"main": list(runs)}}
    made = Workspace.laid(tmp_path_factory.mktemp("seeds"), **SMALL | params)
    made.make()
    return made


def of_seeds(seeds: Workspace, run: str, client: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A client's figures over both seeds, and of each."""
    folder = seeds.folder / "reports/metrics"
    both, *each = (read_json(folder / f"{name}.json")[run][client] for name in ("all", "seed-1", "seed-2"))
    return both, each


@pytest.mark.parametrize("metric", ["rouge1", "loss"])
def test_a_figure_over_seeds_is_their_mean(seeds: Workspace, metric: str) -> None:
    both, each = of_seeds(seeds, "fedavg", "Product")
    assert both[metric]["value"] == pytest.approx(sum(one[metric]["value"] for one in each) / 2, abs=2e-4)


def test_two_seeds_are_two_trainings_a_run(seeds: Workspace) -> None:
    page = (seeds.folder / "reports/report.html").read_text(encoding="utf-8")
    assert "<dt>runs</dt><dd>4, of 4 trainings</dd>" in page
    assert "<dt>seeds</dt><dd>1, 2</dd>" in page


def test_every_seeds_teacher_is_looked_into(seeds: Workspace) -> None:
    names = {path.stem for path in (seeds.folder / "reports/analysis/deciles").iterdir()}
    assert names == {"fedselectkd-1", "fedselectkd-2"}


def test_the_summaries_on_the_page_are_the_first_seeds(seeds: Workspace) -> None:
    page, *_ = (seeds.folder / "reports/examples.html").read_text(encoding="utf-8").split("<h2>")
    rows = read_jsonl(seeds.folder / "reports/predictions/fedavg/1.jsonl")
    shown = [row["reference"] for row in rows if f"<dt>Reference</dt><dd>{row['reference']}</dd>" in page]
    assert len(shown) == 3, "one a client"
