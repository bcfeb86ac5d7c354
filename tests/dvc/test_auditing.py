"""Audits of a table that need models; each is asked first for what the table has already."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import SMALL, Workspace, a_processor_with

from pipeline.errors import QuorumError
from pipeline.evaluation.scores import over_seeds
from pipeline.federated.history import Round, best_rounds
from pipeline.plan.orders import RunRow, Training
from pipeline.plan.schema import Params
from pipeline.runs import audit_rounds, auditing, kept
from pipeline.runs.aside import encode_aside
from pipeline.runs.audits import KNOBS, Rows, compared, identity, read_audits
from pipeline.runs.jobs import DecodingJob
from pipeline.runs.meetings import train_on_meetings
from pipeline.runs.training import Finished
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


@pytest.fixture
def audited(made: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A copy of its own, with all audits made; two beams are as good as four."""
    monkeypatch.setitem(KNOBS, "beams", {"beams": 2})
    copy = made.copied(tmp_path / "copy")
    with copy.entered():
        auditing.audit()
    return copy


def is_the_table(rows: Rows, names: tuple[str, ...]) -> bool:
    """Whether an audit has of each example what the table has, but for what rounding to four digits leaves."""
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(row["run"], []).append({k: v for k, v in row.items() if k != "run"})
    assert found
    pairs = (
        (one.values[name], other.values[name])
        for run, own in found.items()
        for one, other in zip(
            sorted(over_seeds([own]), key=lambda row: row.id),
            sorted(over_seeds([read_json(layout.scores(f"main/{run}-1"))["examples"]]), key=lambda row: row.id),
            strict=True,
        )
        for name in names
    )
    return all(ours == pytest.approx(theirs, abs=2e-4) for ours, theirs in pairs)


def test_with_nothing_changed_the_audit_is_the_table(rows: list[RunRow]) -> None:
    found = auditing.anew(rows)
    assert {one["run"] for one in found} == set(RUNS)
    assert is_the_table(found, ("average", "rougeLsum", "similarity", "reference_length", "loss"))


def test_with_one_beam_the_audit_is_the_table(rows: list[RunRow]) -> None:
    found = auditing.with_beams(compared(rows), 1)
    assert {one["run"] for one in found} == {"fedavg", "fedselectkd"}
    assert is_the_table(found, ("average", "rouge2", "length", "at_limit", "loss"))


def test_in_the_plans_precision_the_audit_is_the_table(rows: list[RunRow]) -> None:
    """Encoded, trained, decoded and scored anew, under names of its own."""
    assert is_the_table(auditing.in_precision(compared(rows), "fp32"), ("average", "length", "loss"))
    assert layout.adapters("audit/fedavg-1").is_dir()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[DecodingJob]:
    """The jobs that audits would decode; nothing is decoded or scored."""
    jobs: list[DecodingJob] = []
    monkeypatch.setattr(auditing, "decode_missing", lambda what, own: jobs.extend(own))
    monkeypatch.setattr(auditing, "scored_examples", lambda *about: [])
    return jobs


def knobs_of(jobs: list[DecodingJob]) -> list[tuple[int | None, str]]:
    """(Beams, precision) of each."""
    return [(job.order.rule and job.order.rule.beams, job.order.precision) for job in jobs]


def test_beams_are_those_that_are_asked_for(rows: list[RunRow], asked: list[DecodingJob]) -> None:
    """The plan searches greedily, in fp32."""
    auditing.with_beams(compared(rows), 2)
    assert knobs_of(asked) == [(2, "fp32"), (2, "fp32")]


def test_precision_is_the_one_that_is_asked_for(
    rows: list[RunRow], asked: list[DecodingJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Encoding, training and decoding are asked for bf16. The first two compute in fp32, which any processor has."""
    a_processor_with("avx512_bf16", tmp_path, monkeypatch)
    told: list[str] = []

    def encode(params: Params, *about: Any) -> object:
        told.append(params.precision)
        return encode_aside(params.model_copy(update={"precision": "fp32"}), *about)

    def train(order: Training, *about: Any) -> Finished:
        told.append(order.precision)
        return train_on_meetings(order.model_copy(update={"precision": "fp32"}), *about)

    monkeypatch.setattr(auditing, "encode_aside", encode)
    monkeypatch.setattr(auditing, "train_on_meetings", train)
    auditing.in_precision(compared(rows), "bf16")
    assert told == ["bf16", "bf16", "bf16"]
    assert knobs_of(asked) == [(1, "bf16"), (1, "bf16")]


def by_round(row: RunRow, job: DecodingJob, examples: object) -> Rows:
    """Each client's score is the number of the round whose model writes."""
    del examples
    numbers = {client: float(path.parent.name[len("round-") :]) for client, path in job.adapters.items()}
    return [{"run": row.name, "id": client, "client": client, "average": own} for client, own in numbers.items()]


def test_each_client_keeps_the_round_that_scores_best(rows: list[RunRow], monkeypatch: pytest.MonkeyPatch) -> None:
    """Later rounds score better here, of those within two of the best by loss."""
    monkeypatch.setattr(auditing, "text_scores", by_round)
    validated = auditing.by_round(rows, 40)
    monkeypatch.undo()
    _, rounds = auditing.by_rouge(rows, validated, 2)
    for row in rows:
        history = [Round.of_row(line, 1) for line in read_table(layout.history(row.id))]
        last = max(line.round for line in history)
        for client, (by_loss, by_rouge) in rounds[row.name].items():
            assert best_rounds(history, client) == [by_loss]
            assert by_rouge == min(by_loss + 2, last)


def test_every_round_of_every_run_writes_validation_summaries(
    made: Workspace, rows: list[RunRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """AdaCentralized has one model for all clients, so that each has its row of it."""
    monkeypatch.setattr(auditing, "text_scores", by_round)
    found = auditing.by_round(rows, 40)
    kept_rounds = {(row.name, int(line["round"])) for row in rows for line in read_table(layout.history(row.id))}
    assert {(one["run"], one["round"]) for one in found} == kept_rounds
    assert all(one["average"] == one["round"] for one in found)
    assert len(found) == len(kept_rounds) * len({one["client"] for one in found})


def test_with_no_room_beside_the_best_round_the_audit_is_the_table(rows: list[RunRow]) -> None:
    found, rounds = auditing.by_rouge(rows, auditing.by_round(rows, 40), 0)
    assert is_the_table(found, ("average", "length", "loss"))
    assert all(by_loss == by_rouge for own in rounds.values() for by_loss, by_rouge in own.values())


def test_another_number_of_beams_is_another_audit_of_beams_alone(
    rows: list[RunRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trainings in fp32 take hours, and no beam changes them."""
    before = {name: identity(name, rows) for name in KNOBS}
    monkeypatch.setitem(KNOBS, "beams", {"beams": 2})
    assert {name for name in KNOBS if identity(name, rows) != before[name]} == {"beams"}


def test_an_audit_is_made_once_and_gives_back_what_it_trained(
    made: Workspace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(KNOBS, "beams", {"beams": 2})
    with made.entered():
        auditing.audit()
        first = {path.name: path.read_bytes() for path in layout.audit("rounds").parent.iterdir()}
        assert set(first) == {f"{name}.json" for name in ("anew", "validation", "rounds", "beams", "fp32")}
        assert not (layout.MODELS / layout.AUDIT).exists()
        assert not (layout.ENCODED / layout.AUDIT).exists()
        capsys.readouterr()
        auditing.audit()
        assert audit_rounds.to_train() == []
        assert first == {path.name: path.read_bytes() for path in layout.audit("rounds").parent.iterdir()}
    assert capsys.readouterr().err.count("all of it is there") == 1


def test_audits_that_are_all_kept_ask_for_no_precision(audited: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    """Results are of bf16, and this plan says fp32; what is missing would be refused."""
    with audited.entered():
        kept.take(kept.missing())
        for row in kept.planned_runs():
            write_json(layout.kept(row.id), read_json(layout.kept(row.id)) | {"precision": "bf16"})
        capsys.readouterr()
        auditing.audit()
        assert "all of it is there" in capsys.readouterr().err
        layout.audit("beams").unlink()
        with pytest.raises(QuorumError, match="was made in bf16, and this plan says fp32; go on"):
            auditing.audit()


def test_one_audit_that_is_missing_is_made_beside_the_others(
    audited: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    with audited.entered():
        layout.audit("beams").unlink()
        capsys.readouterr()
        auditing.audit()
        assert set(read_audits()) == set(KNOBS)
    assert capsys.readouterr().err.count("is there") == 4


def test_audits_of_other_models_than_the_table_anew_are_left_out(audited: Workspace) -> None:
    with audited.entered():
        other = read_json(layout.audit("beams"))
        other["models"]["fedavg"] = "other bits"
        write_json(layout.audit("beams"), other)
        assert set(read_audits()) == set(KNOBS) - {"beams"}


def test_without_the_table_anew_the_other_audits_stay_and_are_not_shown(
    audited: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    with audited.entered():
        layout.audit("anew").unlink()
        assert read_audits() == {}
        capsys.readouterr()
        auditing.audit()
    assert capsys.readouterr().err.count("is there") == 4


def test_trainings_without_their_rounds_are_named_and_made_again(made: Workspace, tmp_path: Path) -> None:
    """AdaFedSelectKD is not trained; AdaFedAvg has lost one round's models, and AdaCentralized all of them."""
    copy = made.copied(tmp_path / "copy")
    with copy.entered():
        shutil.rmtree(layout.audit("anew").parent, ignore_errors=True)  # another test may have made them
        assert audit_rounds.to_train() == []
        keys = {row.name: audit_rounds.trained_as(row) for row in kept.planned_runs()}
        shutil.rmtree(layout.rounds() / keys["centralized"])
        shutil.rmtree(layout.rounds() / keys["fedavg"] / "round-2")
        layout.trained_as("main/fedselectkd-1").unlink()
        assert audit_rounds.to_train() == ["train@centralized-1", "train@fedavg-1", "train@fedselectkd-1"]
        with pytest.raises(QuorumError, match=r"train@centralized-1, .* not trained here, or without models of every"):
            auditing.audit()
        for run in ("centralized", "fedavg", "fedselectkd"):
            copy.stage("train", f"main/{run}-1")
        assert audit_rounds.to_train() == []


def test_beams_alone_need_no_models_of_earlier_rounds(audited: Workspace) -> None:
    with audited.entered():
        layout.audit("beams").unlink()
        shutil.rmtree(layout.rounds())
        auditing.audit()
        assert set(read_audits()) == set(KNOBS)


def test_without_a_seed_that_keeps_rounds_there_is_nothing_to_audit(made: Workspace, tmp_path: Path) -> None:
    copy = made.copied(tmp_path / "copy")
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
        assert audit_rounds.trained_as(row) == "of other code"
        result = read_json(layout.kept(row.id))
        for other in ({"history": result["history"][1:]}, {"identity": "of another learning rate"}):
            write_json(layout.kept(row.id), result | other)
            with pytest.raises(QuorumError, match=r"training.json: is neither the planned training nor the kept one"):
                audit_rounds.trained_as(row)


def test_the_page_shows_both_tables(made: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the runs as planned; an audit of other runs is left out."""
    monkeypatch.setitem(KNOBS, "beams", {"beams": 2})
    with made.entered():
        auditing.audit()
        kept.take(kept.missing())
        page.run()
        text = layout.REPORT.read_text(encoding="utf-8")
        rows = {
            (one["table"], one["run"]): one
            for one in read_table(layout.TABLES / "otherwise.csv")
            if one["client"] == "mean"
        }
        before, now = (float(rows[table, "fedavg"]["average"]) for table in ("anew", "beams"))
        assert "The table of run A, made otherwise" in text
        assert "Summaries by a search with 2 beams" in text
        assert f"{before:.2f} → {now:.2f}" in text
        for name in KNOBS:
            monkeypatch.setitem(KNOBS, name, {"other": 1, **KNOBS[name]})
        page.run()
        assert "made otherwise" not in layout.REPORT.read_text(encoding="utf-8")
        assert not (layout.TABLES / "otherwise.csv").exists()
