"""The runs beyond the main table, on the samples of four corpora with a tiny backbone, through the real `dvc`."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, Workspace

from pipeline.federated.history import Round
from pipeline.plan.orders import ReportOrder, read_order
from pipeline.runs.results import read_full
from pipeline.workspace import layout
from pipeline.workspace.tables import write_table

SETTINGS: dict[str, Any] = {
    "domains": {"kind": "domains", "clients": ["Academic", "Committee", "Product"]},
    "iid_balanced": {
        "kind": "iid",
        "clients": ["First", "Second", "Third"],
        "of": ["Academic", "Committee", "Product"],
    },
    "noniid_balanced": {
        "kind": "balanced",
        "clients": ["Academic", "Product"],
        "sizes": {"laptop": {"counts": {"train": 4, "val": 2, "test": 3}}},
    },
    "extreme": {
        "kind": "domains",
        "clients": ["Academic", "SAMSum"],
        "sizes": {"laptop": {"only": {"SAMSum": {"train_fraction": 0.5, "test_examples": 2}}}},
    },
    "long": {
        "kind": "domains",
        "clients": ["AMI", "ICSI"],
        "sizes": {"laptop": {"train_fraction": 1.0, "source_tokens": 500, "target_tokens": 90, "max_tokens": 20}},
    },
}
SETTINGS["endless"] = SETTINGS["domains"] | {"sizes": {"laptop": {"source_tokens": 100_000}}}
MORE: dict[str, Any] = {
    "fedavg-base": {"method": "AdaFedAvg", "decode": False},
    "scaffold": {"method": "SCAFFOLD", "decode": False, "clients_per_round": 2},
    "fedhardkd": {"method": "AdaFedHardKD"},
    "fedselectkd-iid": {"method": "AdaFedSelectKD", "setting": "iid_balanced"},
    "fedavg-iid": {"method": "AdaFedAvg", "setting": "iid_balanced"},
    "fedselectkd-balanced": {"method": "AdaFedSelectKD", "setting": "noniid_balanced", "tau": "q0.88"},
    "fedselectkd-post": {"method": "AdaFedSelectKD", "setting": "extreme", "prolonged": True, "late": ["SAMSum"]},
    "fedavg-long": {"method": "AdaFedAvg", "setting": "long"},
    "fedavg-endless": {"method": "AdaFedAvg", "setting": "endless"},
    "deep": {"method": "AdaSingle", "adapted_layers": 15, "decode": False},
}
STUDIES = {
    "algorithms": ["fedavg-base", "scaffold"],
    "iid": ["fedavg-iid", "fedselectkd-iid"],
    "addition": ["fedselectkd-post", "gone"],
    "length": ["fedavg-endless"],
    "uncached": ["deep"],
    "mine": ["fedavg-iid", "fedselectkd-iid"],
}


def full_results(folder: Path) -> None:
    """What a run on all of QMSum might have left: twenty meetings, on each of which the selective run gains a point."""
    for run, average in (("fedavg", 20.0), ("fedselectkd", 21.0)):
        rows = [
            {
                "id": f"e{n}",
                "client": "Product",
                "meeting": f"m{n}",
                "tokens": 9,
                "loss_sum": 9.0,
                "average": average + n,
            }
            for n in range(20)
        ]
        (folder / "scores" / "main").mkdir(parents=True, exist_ok=True)
        (folder / "scores" / "main" / f"{run}-1.json").write_text(json.dumps({"clients": {}, "examples": rows}))
    rounds = [
        Round(1, n, "Product", None, 2.0, steps=4, best=n == 1).to_row(run)
        for run in ("fedavg", "fedselectkd")
        for n in (1, 2)
    ]
    write_table(folder / "tables" / "history.csv", rounds)
    shares = ["run,client,share,value,low,high", "fedselectkd,Product,content_given_distilled,0.95,0.94,0.96"]
    shares.append("fedselectkd,Product,closed_given_not_distilled,0.2,0.1,0.3")
    (folder / "tables" / "word_shares.csv").write_text("\n".join(shares))
    (folder / "params.yaml").write_text("{backbone: tiny-llama, seeds: [1]}")


@pytest.fixture(scope="module")
def made(workspace: Workspace) -> Workspace:
    workspace.params(
        **SMALL
        | {"runs": {name: SMALL["runs"][name] for name in ("fedavg", "fedselectkd")}}
        | {"corpora": ["qmsum", "samsum", "ami", "icsi"], "settings": SETTINGS, "more_runs": MORE, "studies": STUDIES}
    )
    full_results(workspace.folder / "reports" / "full")
    # As `make repro-all` does: all runs trained first, one of them decodes and scores for all.
    assert {f"train-more@{name}-1" for name in MORE} <= set(workspace.repro("train", "train-more"))
    workspace.repro("generate", "generate-more")
    assert workspace.repro()[-1] == "report"
    return workspace


def history(made: Workspace, run: str) -> list[dict[str, str]]:
    with (made.folder / "models" / "more" / f"{run}-1" / "history.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def scores(made: Workspace, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made.folder / "reports" / "scores" / "more" / f"{run}-1.json").read_text())
    return found


def test_a_second_repro_runs_nothing_and_the_main_table_needs_none_of_it(made: Workspace) -> None:
    assert made.repro() == []
    with made.without("data/partitions/more"):
        assert made.repro("main") == []


def test_settings_have_their_clients(made: Workspace) -> None:
    assert set(scores(made, "fedselectkd-iid")["clients"]) == {"First", "Second", "Third"}
    assert set(scores(made, "fedavg-long")["clients"]) == {"AMI", "ICSI"}
    balanced = scores(made, "fedselectkd-balanced")["examples"]
    assert sorted(row["client"] for row in balanced) == ["Academic"] * 3 + ["Product"] * 3
    extreme = scores(made, "fedselectkd-post")["examples"]
    assert sum(row["client"] == "SAMSum" for row in extreme) == 2


def test_a_late_client_comes_in_with_the_added_round(made: Workspace) -> None:
    rows = history(made, "fedselectkd-post")
    assert [row["round"] for row in rows if row["client"] == "SAMSum"] == ["3", "4"]
    assert max(int(row["round"]) for row in rows if row["client"] == "Academic") == 4


def test_two_of_three_clients_train_in_a_round(made: Workspace) -> None:
    idle = [row for row in history(made, "scaffold") if row["steps"] == "0"]
    assert len(idle) == 2
    assert all(row["train_loss"] == "" and row["validation_loss"] for row in idle)


def test_a_quantile_is_a_threshold_in_nats(made: Workspace) -> None:
    rows = history(made, "fedselectkd-balanced")
    assert all(0 < float(row["tau"]) < 6 and 0.8 < float(row["share_distilled"]) < 0.95 for row in rows)


def test_a_run_that_decodes_nothing_is_scored_by_its_loss(made: Workspace) -> None:
    lines = (made.folder / "reports" / "predictions" / "more" / "scaffold-1.jsonl").read_text().splitlines()
    assert {json.loads(line)["prediction"] for line in lines} == {None}
    row = scores(made, "scaffold")["examples"][0]
    assert "rouge1" not in row
    assert row["loss_sum"] > 0
    figures = json.loads((made.folder / "reports" / "paper.json").read_text())["runs"]["scaffold"]["mean"]
    assert "average" not in figures
    assert figures["loss_low"] <= figures["loss"] <= figures["loss_high"]


def test_the_page_has_a_section_a_claim_and_a_verdict(made: Workspace) -> None:
    page = (made.folder / "reports" / "paper.html").read_text()
    assert 'href="#iid"' in page
    assert re.search(
        r"\d+ claims of the paper: <strong>.*</strong>; by their .*</li>\n<li>\d+ claims besides: ",
        page,
    )
    assert "Your study: mine" in page
    assert 'href="#mine"' in page, "a study of one's own"
    assert "Run: fedselectkd. To make it again: dvc repro main." in page
    # Of twelve runs two are left out, and fedavg-base is the main table's fedavg under another name.
    assert "<dd>10, of 9 trainings</dd>" in page
    assert "Made from the SAMPLE of ami, icsi, qmsum, samsum" in page
    assert "<th>speakers</th><th>words</th><th>words of summary</th>" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert len(page) < 15_000_000
    claims = json.loads((made.folder / "reports" / "paper.json").read_text())["claims"]
    assert claims["long"][0]["ours"] == "fedselectkd-long"
    assert claims["long"][0]["verdict"] == "not run", "of a run that is not planned"
    iid = next(claim for claim in claims["iid"] if claim["ours"] == "fedselectkd-iid")
    assert iid["theirs"] == "fedavg-iid"
    assert iid["difference"]["low"] <= iid["difference"]["value"] <= iid["difference"]["high"]


def test_a_claim_names_what_all_of_the_data_say(made: Workspace) -> None:
    found = json.loads((made.folder / "reports" / "paper.json").read_text())["claims_on_all_of_qmsum"]
    assert [(one["claim"], (one["difference"] or {}).get("value"), one["shares"], one["verdict"]) for one in found] == [
        ("AdaFedSelectKD is above AdaFedAvg", 1.0, [], "held"),
        ("AdaFedSelectKD's test loss is below that of AdaFedAvg", 0.0, [], "cannot tell"),
        (
            "What is distilled is nearly all nouns and verbs",
            None,
            [{"client": "Product", "value": 0.95, "low": 0.94, "high": 0.96}],
            "held",
        ),
        (
            "Determiners and pronouns are much of what is not distilled",
            None,
            [{"client": "Product", "value": 0.2, "low": 0.1, "high": 0.3}],
            "did not hold",
        ),
    ]
    page = (made.folder / "reports" / "paper.html").read_text()
    assert "on all of QMSum (tiny-llama, seed 1): +1.00, +1.00 … +1.00: held" in page
    assert "<li>On all of QMSum (tiny-llama, seed 1), where the main table" in page
    assert "<strong>2 held, 1 did not hold, 1 cannot tell</strong>" in page


def test_claims_are_not_put_to_all_data_with_another_backbone(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.folder)
    spec = read_order(layout.order("report"), ReportOrder)
    assert set(read_full(spec).scored) == {"fedavg", "fedselectkd"}
    assert read_full(spec.model_copy(update={"backbone": "bart-base"})).scored == {}


def test_claims_are_not_put_to_all_data_with_another_threshold(
    made: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made.folder)
    spec = read_order(layout.order("report"), ReportOrder)
    known = made.folder / "reports" / "full" / "params.yaml"
    before = known.read_text()
    known.write_text("{backbone: tiny-llama, seeds: [1], tau: 4.0, rounds: 99}")
    try:
        assert read_full(spec).scored == {}
    finally:
        known.write_text(before)
    assert "reports/full was made with another tau, and is left out" in "".join(capsys.readouterr())


def test_the_analysis_looks_into_every_setting_and_the_selective_run(made: Workspace) -> None:
    folder = made.folder / "reports" / "analysis"
    deciles = json.loads((folder / "deciles" / "fedselectkd-1.json").read_text())
    assert set(deciles) == {"Academic", "Committee", "Product"}
    entropies = [group["entropy"] for group in deciles["Academic"]]
    assert len(entropies) == 10
    assert entropies == sorted(entropies)
    crossed = json.loads((folder / "crossed" / "fedselectkd-1.json").read_text())
    assert set(crossed["Academic"]) == {"Academic", "Committee", "Product"}
    orientation = json.loads((folder / "orientation" / "turns.json").read_text())
    assert set(orientation) == {"lead-3 turns", "random turns"}
    assert orientation["lead-3 turns"]["Product"]["rouge1"] > 0
    for setting, clients in (("long-1", {"AMI", "ICSI"}), ("iid_balanced-1", {"First", "Second", "Third"})):
        found = json.loads((folder / "divergence" / f"{setting}.json").read_text())
        for kind in ("topics", "words"):
            assert set(found[kind]) == clients
            assert all(
                0 <= value <= 1 and (a != b or value == 0) for a, row in found[kind].items() for b, value in row.items()
            )


def test_mlflow_knows_all_runs(made: Workspace) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(made.folder / "mlflow.db")) as connection:
        names = {row[0] for row in connection.execute("select name from runs")}
    assert {f"{name}-1" for name in MORE} <= names


def test_results_of_a_former_plan_are_not_put_under_the_new_one(made: Workspace) -> None:
    before = (made.folder / "params.yaml").read_text(encoding="utf-8")
    made.params(tau=4.0)
    made.pipeline("plan")
    assert "track: 0 runs brought" in made.pipeline("track").stderr
    (made.folder / "params.yaml").write_text(before, encoding="utf-8")
    made.pipeline("plan")


def test_a_study_names_what_is_missing(made: Workspace) -> None:
    assert "studies.addition: left out, as they are no runs of params.yaml: gone" in made.pipeline("plan").stderr


def test_a_run_that_is_longer_than_the_backbone_reads_is_left_out(made: Workspace) -> None:
    assert scores(made, "fedavg-endless") == {"clients": {}, "examples": []}
    assert "fedavg-endless" not in json.loads((made.folder / "reports" / "paper.json").read_text())["runs"]
    assert "its runs are left out" in (made.folder / "reports" / "paper.html").read_text()


def test_a_run_that_is_deeper_than_the_backbone_is_left_out(made: Workspace) -> None:
    assert scores(made, "deep") == {"clients": {}, "examples": []}
    assert "more_runs.deep: left out: adapted_layers: 15, but tiny-llama has 4" in made.pipeline("plan").stderr


def test_figures_are_drawn_a_study(made: Workspace) -> None:
    drawn = {path.stem for path in Path(made.folder / "reports" / "figures" / "more").glob("*.png")}
    assert (
        set(STUDIES) - {"length", "uncached"}
        | {"crossed", "communication", "deciles_fedselectkd-1", "divergence_long-1"}
        <= drawn
    )
