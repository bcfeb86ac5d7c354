"""Documents of one's own: every stage of rules, of one model and of a model a client, and the extract of a new text."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from labelled import PLAIN, laid
from test_stages import rows_of
from workspaces import Workspace

from pipeline.errors import QuorumError
from pipeline.report.extracts import extract_file
from pipeline.workspace import layout
from pipeline.workspace.files import read_jsonl
from pipeline.workspace.tables import read_table

RUNS: dict[str, dict[str, Any]] = {
    "mine-lead": {"setting": "mine", "method": "LeadUnits"},
    "mine-regression": {"setting": "mine", "method": "RegressionUnits"},
    "mine-fedavg": {"setting": "mine", "method": "AdaFedAvg", "draw": "by_examples"},
    "mine-separate": {"setting": "mine", "method": "AdaSingle", "rounds": 1, "local_epochs": 2},
    "mine-fedproto": {"setting": "mine", "method": "FedProto"},
    "mine-fedsum": {"setting": "mine", "method": "FedSum"},
    "mine-released": {"setting": "mine", "method": "FedSum", "mode": "as_released"},
}
DATA = {"task": "extract", "source": "mine", "file": "data/own/mine", "backbone": "tiny-bert", "frozen": "e,0-2"}
PARAMS: dict[str, Any] = PLAIN | {
    "seeds": [1],
    "scales": {"laptop": {}},
    "sources": ["mine"],
    "backbones": ["tiny-bert"],
    "loss_over": "examples",
    "client_optimizer": "sgd",
    "data": {"mine": DATA | {"source_tokens": 160, "clients_per_round": 2}},
    "settings": {"mine": {"data": "mine", "kind": "skewed", "clients": 3, "spread": True}},
    "runs": RUNS,
    "sections": {"methods": ["mine"], "key_share": ["mine-fedsum"], "quantity": ["mine-fedavg"]},
}
TEXT = "The cat sat on a mat. A dog came in later. Nobody saw it go. It rained."


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Twelve texts of four sentences, of which one is the summary."""
    workspace = laid(tmp_path_factory.mktemp("documents"), PARAMS)
    for number in range(12):
        for kind, text in (("texts", TEXT.replace("cat", f"cat {number}")), ("summaries", "A dog came in later.")):
            path = workspace.folder / "data/own/mine" / kind / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    workspace.make()
    return workspace


@pytest.mark.parametrize("run", RUNS)
def test_every_test_document_has_one_row_of_scores(mine: Workspace, run: str) -> None:
    (row,) = rows_of(mine, run)
    assert row["client"] == "server"
    assert 0 <= row["rouge1"] <= 100
    assert 0 <= row["rouge1_recall"] <= 100


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
def test_sentences_of_a_new_text_are_picked_and_marked_in_it(
    mine: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    """Three of four, as of the documents of the data set."""
    monkeypatch.chdir(mine.folder)
    text = tmp_path / "new.txt"
    text.write_text(TEXT, encoding="utf-8")
    lines = extract_file(text, run=run, client="client-1").splitlines()
    page = (tmp_path / "new.txt.extract.html").read_text(encoding="utf-8")
    assert len(lines) == page.count("<mark>") == 3
    assert all(line.split("%  ")[1] in TEXT for line in lines)


@pytest.mark.parametrize(
    ("text", "run", "client", "message"),
    [
        (TEXT, "mine-lead", "client-1", "--run mine-lead: has no model that picks sentences"),
        (TEXT, "mine-fedavg", "client-9", "--client client-9: run mine-fedavg/1 has no such client"),
        ("\n", "mine-fedavg", "client-1", "new.txt: has no sentence; write some"),
    ],
)
def test_what_cannot_be_extracted_is_one_line(
    mine: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, run: str, client: str, message: str
) -> None:
    monkeypatch.chdir(mine.folder)
    (tmp_path / "new.txt").write_text(text, encoding="utf-8")
    with pytest.raises(QuorumError, match=message):
        extract_file(tmp_path / "new.txt", run=run, client=client)
