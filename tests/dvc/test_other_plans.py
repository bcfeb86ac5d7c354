"""Plans unlike the shared one, stage by stage: own meetings, and two seeds with an encoder-decoder."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from conftest import SMALL, Workspace

from pipeline.stages import ingest
from pipeline.workspace.files import read_json, read_jsonl
from pipeline.workspace.words import WHOLE

ASKED = "总结整个会议。"
RUNS = {name: SMALL["runs"][name] for name in ("fedavg", "fedselectkd")}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A plan with own meetings, as many as the sample's, in Chinese, whose only run is made."""
    own = {"own": {"Clinic": {"folder": "data/own/Clinic"}}, "runs": {"fedavg": RUNS["fedavg"]}}
    own |= {"queries": {"zh": {"whole": ASKED}}, "rouge_tokens": "unicode"}
    made = Workspace.laid(tmp_path_factory.mktemp("clinic"), **SMALL | own | {"sections": {"main": ["fedavg"]}})
    folder = made.folder / "data/own/Clinic"
    folder.mkdir(parents=True)
    turns = [{"speaker": name, "content": f"我们讨论预算，第{i}点。"} for i in range(9) for name in ("张伟", "李娜")]
    summary = {"query": WHOLE, "answer": "他们讨论了预算，决定暂停。", "relevant_text_span": [[0, 17]]}
    meeting = json.dumps({"meeting_transcripts": turns, "specific_query_list": [summary]})
    for path in sorted((made.folder / "data/sample/qmsum/Product").rglob("*.json")):
        (folder / f"own-{path.name}").write_text(meeting, encoding="utf-8")
    made.make()
    return made


def test_own_meetings_become_a_client(clinic: Workspace) -> None:
    metrics = read_json(clinic.folder / "reports/metrics/all.json")
    assert list(metrics["fedavg"]) == ["Academic", "Committee", "Product", "Clinic", "mean"]
    assert (clinic.folder / "models/fedavg/1/adapters/Clinic.safetensors").is_file()


def test_own_meetings_in_another_language_are_asked_about_and_scored_in_it(clinic: Workspace) -> None:
    """Eleven characters, and no word of a to z; each of QMSum's has its own query."""
    rows = read_jsonl(clinic.folder / "reports/predictions/fedavg/1.jsonl")
    assert {row["query"] for row in rows if row["client"] == "Clinic"} == {ASKED}
    assert ASKED not in {row["query"] for row in rows if row["client"] != "Clinic"}
    result = json.loads(gzip.decompress((clinic.folder / "results/fedavg.json.gz").read_bytes()))
    scored = [row for row in result["seeds"]["1"]["scores"]["examples"] if row["client"] == "Clinic"]
    assert scored
    assert {row["reference_length"] for row in scored} == {11}


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
    params = {"seeds": [1, 2], "backbone": "tiny-bart", "backbones": ["tiny-bart"], "page": "paper", "runs": RUNS}
    made = Workspace.laid(tmp_path_factory.mktemp("seeds"), **SMALL | params | {"sections": {"main": list(RUNS)}})
    made.make()
    return made


def test_two_seeds_are_two_trainings_a_run_and_two_teachers(seeds: Workspace) -> None:
    page = (seeds.folder / "reports/report.html").read_text(encoding="utf-8")
    assert "<dt>runs</dt><dd>4, of 4 trainings</dd>" in page
    assert "<dt>seeds</dt><dd>1, 2</dd>" in page
    names = {path.stem for path in (seeds.folder / "reports/analysis/deciles").iterdir()}
    assert names == {"fedselectkd-1", "fedselectkd-2"}
