"""Plans unlike the shared one: own meetings, two seeds with an encoder-decoder, own documents and their extracts."""

import gzip
import json
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from conftest import SMALL, Workspace
from labelled import EXTRACTED, PLAIN, TEXT, laid, write_documents
from test_stages import rows_of

from pipeline.errors import QuorumError
from pipeline.report.extracts import extract_file
from pipeline.runs.result_files import read_result
from pipeline.stages import evaluate, ingest, predict
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl
from pipeline.workspace.tables import read_table
from pipeline.workspace.words import WHOLE

ASKED = "总结整个会议。"
TWO = {name: SMALL["runs"][name] for name in ("fedavg", "fedselectkd")}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A plan with own meetings, as many as the sample's, in Chinese, whose only run is made."""
    own = {"own": {"Clinic": {"folder": "data/own/Clinic"}}, "runs": {"fedavg": TWO["fedavg"]}}
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


def test_own_meetings_in_another_language_are_asked_about_and_scored_in_it(clinic: Workspace) -> None:
    """Eleven characters, and no word of a to z; each of QMSum's has its own query."""
    rows = read_jsonl(clinic.folder / "reports/predictions/fedavg/1.jsonl")
    assert {row["query"] for row in rows if row["client"] == "Clinic"} == {ASKED}
    assert ASKED not in {row["query"] for row in rows if row["client"] != "Clinic"}
    result = json.loads(gzip.decompress((clinic.folder / "results/fedavg.json.gz").read_bytes()))
    scored = [row for row in result["seeds"]["1"]["scores"]["examples"] if row["client"] == "Clinic"]
    assert scored
    assert {row["reference_length"] for row in scored} == {11}
    metrics = read_json(clinic.folder / "reports/metrics/all.json")
    assert list(metrics["fedavg"]) == ["Academic", "Committee", "Product", "Clinic", "mean"]


def test_own_meetings_are_found_from_a_copy(clinic: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    params = {"seeds": [1, 2], "backbone": "tiny-bart", "backbones": ["tiny-bart"], "page": "paper", "runs": TWO}
    made = Workspace.laid(tmp_path_factory.mktemp("seeds"), **SMALL | params | {"sections": {"main": list(TWO)}})
    made.make()
    return made


def test_two_seeds_are_two_trainings_a_run_and_two_teachers(seeds: Workspace) -> None:
    page = (seeds.folder / "reports/report.html").read_text(encoding="utf-8")
    assert "<dt>runs</dt><dd>4, of 4 trainings</dd>" in page
    assert "<dt>seeds</dt><dd>1, 2</dd>" in page
    names = {path.stem for path in (seeds.folder / "reports/analysis/deciles").iterdir()}
    assert names == {"fedselectkd-1", "fedselectkd-2"}


def test_one_seed_alone_is_scored_beside_the_others(seeds: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a node of a federation does, which trains one."""
    monkeypatch.chdir(seeds.folder)
    known = read_result("fedavg")
    for stage in (predict, evaluate):
        stage.run("fedavg", [2])
    found = read_result("fedavg")
    assert (found.keys(), found[1]) == ({1, 2}, known[1])
    assert all(layout.predictions(f"fedavg/{seed}").is_file() for seed in known)


RUNS: dict[str, dict[str, Any]] = {
    "mine-lead": {"setting": "mine", "method": "LeadUnits"},
    "mine-regression": {"setting": "mine", "method": "RegressionUnits"},
    "mine-fedavg": {"setting": "mine", "method": "AdaFedAvg", "draw": "by_examples"},
    "mine-separate": {"setting": "mine", "method": "AdaSingle", "rounds": 1, "local_epochs": 2},
    "mine-fedproto": {"setting": "mine", "method": "FedProto"},
    "mine-fedsum": {"setting": "mine", "method": "FedSum"},
    "mine-released": {"setting": "mine", "method": "FedSum", "mode": "as_released"},
}
PARAMS: dict[str, Any] = PLAIN | {
    "data": {"mine": EXTRACTED | {"source": "mine", "file": "data/own/mine", "clients_per_round": 2}},
    "settings": {"mine": {"data": "mine", "kind": "skewed", "clients": 3, "spread": True}},
    "sections": {"methods": ["mine"], "key_share": ["mine-fedsum"], "quantity": ["mine-fedavg"]},
}
PARAMS |= {"seeds": [1], "scales": {"laptop": {}}, "sources": ["mine"], "backbones": ["tiny-bert"], "runs": RUNS}
PARAMS |= {"loss_over": "examples", "client_optimizer": "sgd"}
NOT_EXTRACTED = [
    ("mine-lead", "--run mine-lead: has no model that picks sentences"),
    ("mine-fedavg", "new.txt: has no sentence; write some"),
]


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = laid(tmp_path_factory.mktemp("documents"), PARAMS)
    write_documents(workspace.folder / "data/own/mine")
    workspace.make()
    return workspace


@pytest.mark.parametrize("run", RUNS)
def test_every_test_document_has_one_row_of_scores(mine: Workspace, run: str) -> None:
    (row,) = rows_of(mine, run)
    assert row["client"] == "server"
    assert all(0 <= row[name] <= 100 for name in ("rouge1", "rouge1_recall"))


def test_a_model_a_client_has_the_mean_score_of_the_models_that_were_trained(mine: Workspace) -> None:
    predicted = read_jsonl(mine.folder / layout.predictions("mine-separate/1"))
    assert [row["model"] for row in predicted] == ["client-0", "client-1", "client-2"]
    (row,) = rows_of(mine, "mine-separate")
    assert row["loss_sum"] == pytest.approx(fmean(one["loss_sum"] for one in predicted))
    drawn = {row["model"] for row in read_jsonl(mine.folder / layout.predictions("mine-fedproto/1"))}
    assert 2 <= len(drawn) <= 3, "two rounds of two clients"


def test_the_history_has_what_a_method_skips(mine: Workspace) -> None:
    """By limits of 0 every batch of the first round is prime."""
    first, second = read_table(mine.folder / layout.history("mine-fedsum/1"))
    assert (float(first["share_prime"]), float(first["share_skipped"])) == (1.0, 0.0)
    assert 0.0 <= float(second["share_prime"]) <= 1.0


def test_the_page_has_a_table_of_methods_and_its_figures(mine: Workspace) -> None:
    table = read_table(mine.folder / "reports/tables/methods-mine.csv")
    assert {row["run"] for row in table} == set(RUNS)
    figures = {path.stem for path in (mine.folder / "reports/figures").glob("*.svg")}
    assert {"amounts", "prime", "skipped", "places", "key_share", "quantity"} <= figures


@pytest.mark.parametrize("run", ["mine-fedavg", "mine-separate"])
def test_sentences_of_a_new_text_are_picked_and_marked_in_it(mine: Workspace, tmp_path: Path, run: str) -> None:
    """Three of four, as of the documents of the data set."""
    (tmp_path / "new.txt").write_text(TEXT, encoding="utf-8")
    with mine.entered():
        lines = extract_file(tmp_path / "new.txt", run=run, client="client-1").splitlines()
    page = (tmp_path / "new.txt.extract.html").read_text(encoding="utf-8")
    assert len(lines) == page.count("<mark>") == 3
    assert all(line.split("%  ")[1] in TEXT for line in lines)


@pytest.mark.parametrize(("run", "message"), NOT_EXTRACTED)
def test_what_cannot_be_extracted_is_one_line(mine: Workspace, tmp_path: Path, run: str, message: str) -> None:
    (tmp_path / "new.txt").write_text("\n", encoding="utf-8")
    with mine.entered(), pytest.raises(QuorumError, match=message):
        extract_file(tmp_path / "new.txt", run=run, client="client-1")
