"""What the page says of knobs: sweeps over studies, and the trials of `make tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_results import AVERAGE, TRAINING, figures, results_of, round_of, run_of

from pipeline.report.page import Canvas
from pipeline.report.pieces import _chosen, _has, _is_at_an_end, knob_sweep, tuned
from pipeline.runs.results import Results

# --- sweeps ---------------------------------------------------------------------------------------------------------


def swept(best_loss: dict[str, float]) -> Results:
    """Runs tau-2, tau-3, …, whose best round has this validation loss."""
    mean = figures(spread=0.5, loss=2.0, average=2.0)
    return results_of(
        rows={f"tau-{tau}": run_of(f"tau-{tau}", tau=float(tau)) for tau in best_loss},
        metrics={f"tau-{tau}": {"mean": mean} for tau in best_loss},
        histories={f"tau-{tau}": [round_of(1, "A", loss, best=True)] for tau, loss in best_loss.items()},
    )


def sweep(tmp_path: Path, results: Results, runs: list[str]) -> list[str]:
    return [str(one) for one in knob_sweep(Canvas(tmp_path, ""), results, runs, "tau", "τ", "tau-3", AVERAGE)]


def test_a_sweep_names_the_value_with_the_least_validation_loss(tmp_path: Path) -> None:
    results = swept({"2": 3.0, "3": 2.8, "4": 2.5})
    (piece,) = sweep(tmp_path, results, ["tau-2", "tau-3", "tau-4", "gone"])
    assert "would choose 4," in piece
    assert "Runs: tau-2, tau-3, tau-4." in piece
    assert (tmp_path / "sweep_tau.png").is_file()


def test_one_point_is_no_sweep(tmp_path: Path) -> None:
    assert sweep(tmp_path, swept({"2": 3.0}), ["tau-2"]) == []


def test_a_run_without_the_knob_is_no_point_of_its_sweep(tmp_path: Path) -> None:
    results = swept({"2": 3.0, "3": 2.5})
    results.rows["tau-3"] = run_of("tau-3", **{"lambda": 0.2})
    assert sweep(tmp_path, results, ["tau-2", "tau-3"]) == []


def test_the_untrained_backbone_is_no_point_of_a_sweep(tmp_path: Path) -> None:
    results = swept({"2": 3.0, "3": 2.5})
    results.rows["tau-3"] = [results.rows["tau-3"][0].model_copy(update={"training": None})]
    assert sweep(tmp_path, results, ["tau-2", "tau-3"]) == []


# --- trials ---------------------------------------------------------------------------------------------------------


def tried(run: str, chosen: str, *knobs: str) -> list[dict[str, str]]:
    return [{"chooses": run, "run": run, "knobs": k, "chosen": str(int(k == chosen))} for k in knobs]


@pytest.mark.parametrize(
    ("best", "others", "is_at_an_end"),
    [
        ("eta=0.1", ["eta=0.02", "eta=0.05"], True),
        ("eta=0.05", ["eta=0.02", "eta=0.1"], False),
        ("eta=0.0010", ["eta=0.01", "eta=0.1"], True),
        ("tau=5 lambda=0.2", ["tau=3 lambda=0.2"], False),
        ("select=random", ["select=inverse"], False),
    ],
)
def test_one_number_that_is_the_least_or_most_of_all_is_at_an_end(
    best: str, others: list[str], is_at_an_end: bool
) -> None:
    """Of two knobs at once, or of words, nobody can say."""
    assert _is_at_an_end(best, [best, *others]) == is_at_an_end


@pytest.mark.parametrize(
    ("knobs", "has"),
    [("mu=0.10", True), ("mu=2", False), ("mu=0.1 batch_size=4", True), ("select=random", True), ("eta=0.1", False)],
)
def test_a_training_has_a_trials_knobs_as_numbers_and_as_words(knobs: str, has: bool) -> None:
    known: dict[str, Any] = {"mu": 0.1, "select": "random"}
    assert _has(TRAINING.model_copy(update={"hyperparameters": known}), knobs) == has


def test_a_run_with_what_was_chosen_is_told_with_its_trials() -> None:
    trials = tried("fedprox", "mu=0.1", "mu=0.01", "mu=0.1", "mu=1")
    assert _chosen("fedprox", trials, run_of("fedprox", mu=0.1)) == "fedprox mu=0.1 of 3 trials"


def test_a_run_with_another_value_and_one_that_is_not_made_differ() -> None:
    """What is said of the first is more than of the second, which has no value."""
    trials = tried("fedprox", "mu=0.1", "mu=0.01", "mu=0.1", "mu=1")
    other, gone = (_chosen("fedprox", trials, made) for made in (run_of("fedprox", mu=2.0), ()))
    assert gone == "fedprox mu=0.1 of 3 trials"
    assert other.startswith(f"{gone} (")


def test_runs_that_were_searched_are_told_and_no_others() -> None:
    trials = [*tried("fedprox", "mu=0.1", "mu=0.01", "mu=0.1", "mu=1"), *tried("ditto", "mu=1", "mu=1")]
    results = results_of(rows={"fedprox": run_of("fedprox", mu=0.1)})
    (piece,) = tuned(results, trials, ["fedprox", "gone"])
    assert "fedprox mu=0.1 of 3 trials.</p>" in piece
    assert tuned(results, [], ["fedprox"]) == []
