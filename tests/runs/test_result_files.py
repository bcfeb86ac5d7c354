"""Results as files: what is refused, what is missing."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from made_results import run_of

from pipeline.errors import QuorumError
from pipeline.plan.checks import read_params
from pipeline.plan.orders import RunRow
from pipeline.plan.resolve import resolve
from pipeline.runs.result_files import (
    deleted_results,
    identity_of,
    planned_results,
    read_result,
    read_results_of,
    refuse_to_retrain,
    write_result,
)
from pipeline.workspace import layout


@pytest.fixture
def row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunRow:
    monkeypatch.chdir(tmp_path)
    return run_of("ours")[0].model_copy(update={"fingerprint": "f"})


def save(row: RunRow, **changes: Any) -> Path:
    scores = {"clients": {}, "examples": []}
    result = {"fingerprint": "f", "precision": "fp32", "source": {}, "cut": {}, "scores": scores, "history": []}
    write_result(layout.result(row.name), {"seeds": {str(row.seed): result | changes}})
    return layout.result(row.name)


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def test_a_result_is_of_a_run_with_its_knobs_at_its_seed(row: RunRow) -> None:
    """The same result gives the same bytes."""
    with pytest.raises(QuorumError, match="has no result of a planned run"):
        read_results_of([row])
    first = save(row).read_bytes()
    assert save(row).read_bytes() == first
    assert read_result(row.name)[row.seed]["precision"] == "fp32"
    others = [row.model_copy(update=change) for change in ({"fingerprint": "g"}, {"id": "ours/2", "seed": 2})]
    assert set(planned_results([row, *others])) == {row.id}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"cut", "is damaged;"),
        (gzip.compress(b"[]", mtime=0), "is damaged;"),
        (gzip.compress(b'{"seeds": {"1": {"fingerprint": "f"}}}', mtime=0), "is damaged (no precision);"),
    ],
    ids=["cut", "no record", "no precision"],
)
def test_a_damaged_file_is_named_with_the_remedy(row: RunRow, content: bytes, found: str) -> None:
    save(row).write_bytes(content)
    with pytest.raises(QuorumError) as caught:
        read_result(row.name)
    assert str(caught.value).startswith(f"results/ours.json.gz: {found} run `git checkout")


def test_another_training_is_another_run(row: RunRow) -> None:
    """The MLflow store knows a run by its place, name, seed, knobs and the key of its training, which has its data."""
    others = [row.model_copy(update={"fingerprint": "g"}), *run_of("ours", seed=2), *run_of("theirs")]
    assert len({identity_of(row, "k"), identity_of(row, "l"), *(identity_of(other, "k") for other in others)}) == 5


def test_two_precisions_share_no_table(row: RunRow) -> None:
    other = run_of("theirs")[0].model_copy(update={"fingerprint": "f"})
    save(row)
    save(other, precision="bf16")
    with pytest.raises(QuorumError, match="one table has one precision"):
        read_results_of([row, other])


def test_a_committed_result_is_not_trained_again_unasked_and_missed_if_it_is_deleted(
    row: RunRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(row)
    git("init")
    refuse_to_retrain(row)  # git does not know it
    git("add", str(path))
    with pytest.raises(QuorumError, match="QUORUM_RETRAIN=1"):
        refuse_to_retrain(row)
    Path("dvc.lock").touch()
    git("add", "dvc.lock")
    refuse_to_retrain(row)  # dvc.lock says what is up to date
    git("rm", "--cached", "dvc.lock")
    monkeypatch.setenv("QUORUM_RETRAIN", "1")
    refuse_to_retrain(row)
    assert deleted_results([row]) == []
    path.unlink()
    assert deleted_results([row, row, *run_of("theirs")]) == [str(layout.result(row.name))]


@pytest.mark.parametrize("folder", ["full", "paper", "ablations", "faults", "fednlp"])
def test_committed_results_are_of_the_planned_runs(folder: str) -> None:
    """Every file below results/ has planned runs' fingerprints, and scores by example; else no page shows it."""
    root = Path(__file__).parents[2] / "experiments" / folder
    rows = resolve(read_params(root / "params.yaml"))["report.json"]["runs"]
    planned = {row["id"]: row["fingerprint"] for row in rows}
    for path in root.glob("results/*.json.gz"):
        for seed, result in json.loads(gzip.decompress(path.read_bytes()))["seeds"].items():
            assert result["fingerprint"] == planned.get(f"{path.name.removesuffix('.json.gz')}/{seed}")
            assert result["scores"]["examples"]
