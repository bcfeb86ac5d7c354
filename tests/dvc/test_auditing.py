"""Audits of a table that need models; each is asked first for what the table has already."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, Workspace

from pipeline.errors import QuorumError
from pipeline.federated.history import Round, best_rounds
from pipeline.plan.orders import RunRow
from pipeline.runs import audit_scores, auditing, kept
from pipeline.runs.audits import KNOBS, compared, identity
from pipeline.runs.jobs import DecodingJob
from pipeline.stages import page
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.tables import read_table

RUNS = {
    "centralized": {"method": "AdaCentralized"},
    "fedavg": {"method": "AdaFedAvg"},
    "fedselectkd": {"method": "AdaFedSelectKD"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Three rows, every round's models kept."""
    changes: dict[str, Any] = {
        "runs": RUNS,
        "rounds": 3,
        "keep_rounds": [1],
        "precision": "fp32",
        "learning_rate": 0.05,
    }
    workspace = Workspace.laid(tmp_path_factory.mktemp("audited"), **SMALL | changes)
    workspace.make("main")
    yield workspace
    shutil.rmtree(workspace.folder, ignore_errors=True)


@pytest.fixture
def rows(made: Workspace) -> Iterator[list[RunRow]]:
    with made.entered():
        yield kept.planned_runs()


def table() -> dict[tuple[str, str], dict[str, float]]:
    """(Run, client) -> what reports/metrics says."""
    metrics = json.loads(layout.all_metrics(layout.MAIN).read_text(encoding="utf-8"))
    return {(run, client): own for run, clients in metrics.items() for client, own in clients.items()}


def agree(audited: auditing.Audited, names: tuple[str, ...]) -> bool:
    known = table()
    assert audited
    return all(
        one[name] == pytest.approx(known[one["run"], one["client"]][name]["value"], abs=2e-4)
        for one in audited
        for name in names
    )  # type: ignore[index]


def test_with_one_beam_the_audit_is_the_table(rows: list[RunRow]) -> None:
    found = auditing.with_beams(compared(rows), 1)
    assert {one["run"] for one in found} == {"fedavg", "fedselectkd"}
    assert agree(found, ("average", "rouge2", "length", "at_limit", "loss"))


def test_in_the_plans_precision_the_audit_is_the_table(rows: list[RunRow]) -> None:
    """Encoded, trained, decoded and scored anew, under names of its own."""
    assert agree(auditing.in_precision(compared(rows), "fp32"), ("average", "length", "loss"))
    assert layout.adapters("audit/fedavg-1").is_dir()


def by_round(row: RunRow, job: DecodingJob, examples: object) -> dict[str, dict[str, float]]:
    """Each client's score is the number of the round whose model writes."""
    del row, examples
    return {client: {"average": float(path.parent.name[len("round-") :])} for client, path in job.adapters.items()}


def test_each_client_keeps_the_round_that_scores_best(rows: list[RunRow], monkeypatch: pytest.MonkeyPatch) -> None:
    """Later rounds score better here, of those within two of the best by loss."""
    monkeypatch.setattr(auditing, "scores_by_client", by_round)
    monkeypatch.setattr(audit_scores, "scores_by_client", by_round)
    found = [one for one in auditing.by_rouge(rows, auditing.by_round(rows, 40), 2) if one["client"] != "mean"]
    for one in found:
        row = next(row for row in rows if row.name == one["run"])
        history = [Round.of_row(line, 1) for line in read_table(layout.history(row.id))]
        assert best_rounds(history, one["client"]) == [one["by_loss"]]
        assert one["by_rouge"] == one["average"] == min(one["by_loss"] + 2, max(line.round for line in history))


def test_every_round_of_every_run_writes_validation_summaries(
    made: Workspace, rows: list[RunRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """AdaCentralized has one model for all clients, so that each has its row of it."""
    monkeypatch.setattr(auditing, "scores_by_client", by_round)
    found = auditing.by_round(rows, 40)
    kept_rounds = {(row.name, int(line["round"])) for row in rows for line in read_table(layout.history(row.id))}
    assert {(one["run"], one["round"]) for one in found} == kept_rounds
    assert all(one["average"] == one["round"] for one in found)
    assert len(found) == len(kept_rounds) * len({one["client"] for one in found})


def test_with_no_room_beside_the_best_round_the_audit_is_the_table(rows: list[RunRow]) -> None:
    assert agree(auditing.by_rouge(rows, auditing.by_round(rows, 40), 0), ("average", "length", "loss"))


def test_another_number_of_beams_is_another_audit_of_beams_alone(
    rows: list[RunRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trainings in fp32 take hours, and no beam changes them."""
    before = {name: identity(name, rows) for name in KNOBS}
    monkeypatch.setitem(KNOBS, "beams", {"beams": 2})
    assert {name for name in KNOBS if identity(name, rows) != before[name]} == {"beams"}


def test_an_audit_is_made_once(
    made: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(KNOBS, "beams", {"beams": 2})
    with made.entered():
        auditing.audit()
        first = {path.name: path.read_bytes() for path in layout.audit("rounds").parent.iterdir()}
        assert set(first) == {"validation.json", "rounds.json", "beams.json", "fp32.json"}
        capsys.readouterr()
        auditing.audit()
    assert capsys.readouterr().err.count("is there") == 4


def test_what_is_missing_for_an_audit_is_named(made: Workspace, tmp_path: Path) -> None:
    copy = made.copied(tmp_path / "copy")
    shutil.rmtree(copy.folder / "work" / "rounds")
    with copy.entered(), pytest.raises(QuorumError, match=r"holds no models of main/centralized-1: .* train it again"):
        auditing.by_round(kept.planned_runs(), 40)
    copy.params(keep_rounds=[])
    copy.stage("plan")
    with copy.entered(), pytest.raises(QuorumError, match="keep_rounds: names no seed"):
        auditing.audit()


def test_models_of_another_plan_are_not_audited(made: Workspace, tmp_path: Path) -> None:
    """They are, where only their code is another: then their rounds are those that are kept with the result."""
    copy = made.copied(tmp_path / "copy")
    with copy.entered():
        (row, *_) = compared(kept.planned_runs())
        kept.take([kept.stage_of(row)])
        write_json(layout.trained_as(row.id), {"training": "of other code"})
        auditing.with_beams([row], 1)
        result = read_json(layout.kept(row.id))
        result["history"][0]["train_loss"] = "0.5"
        write_json(layout.kept(row.id), result)
        with pytest.raises(QuorumError, match=r"training.json: is neither the planned training nor the kept one; run"):
            auditing.with_beams([row], 1)


def test_the_page_shows_both_tables(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the runs as planned; an audit of other runs is left out."""
    monkeypatch.setitem(KNOBS, "beams", {"beams": 2})
    with made.entered():
        auditing.audit()
        kept.take(kept.missing())
        page.run()
        text = layout.REPORT.read_text(encoding="utf-8")
        (row,) = (
            one
            for one in json.loads(layout.audit("beams").read_text())["rows"]
            if (one["run"], one["client"]) == ("fedavg", "mean")
        )
        shown = f"{table()['fedavg', 'mean']['average']['value']:.2f} → {row['average']:.2f}"
        assert "The table of run A, made otherwise" in text
        assert shown in text
        for name in KNOBS:
            monkeypatch.setitem(KNOBS, name, {"other": 1})
        page.run()
        assert "made otherwise" not in layout.REPORT.read_text(encoding="utf-8")
