"""What the page says of knobs: sweeps, the controls at equal weight, the trials of `make search`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from made_results import results_of, round_of, run_of

from pipeline.report import tuning
from pipeline.report.canvas import Canvas
from pipeline.runs.results import Results, knob_of


def swept(best_loss: dict[str, float]) -> Results:
    mean = {f"{metric}{end}": 2.0 for metric in ("loss", "average") for end in ("", "_low", "_high")}
    return results_of(
        rows={f"tau-{tau}": run_of(f"tau-{tau}", tau=float(tau)) for tau in best_loss},
        metrics={f"tau-{tau}": {"mean": mean} for tau in best_loss},
        histories={f"tau-{tau}": [round_of(1, "A", loss, best=True)] for tau, loss in best_loss.items()},
    )


def test_a_sweep_is_chosen_from_on_validation(tmp_path: Path) -> None:
    results = swept({"2": 3.0, "3": 2.5, "4": 2.8})
    (piece,) = tuning.knob_sweep(Canvas(tmp_path), results, ["tau-2", "tau-3", "tau-4", "gone"], "tau", "τ", "tau-3")
    assert "validation loss (which would choose 3)" in piece
    assert (tmp_path / "sweep_tau.png").is_file()


def test_one_point_is_no_sweep(tmp_path: Path) -> None:
    assert tuning.knob_sweep(Canvas(tmp_path), swept({"2": 3.0}), ["tau-2"], "tau", "τ", "tau-2") == []


def test_a_threshold_that_is_a_quantile_is_shown_in_nats() -> None:
    results = results_of(
        rows={"q": run_of("q", tau="q0.88")}, histories={"q": [round_of(1, "A", 1, tau=4), round_of(2, "A", 1, tau=5)]}
    )
    assert knob_of(results, "q", "tau") == pytest.approx(4.5)


def test_the_untrained_backbone_has_no_knob() -> None:
    untrained = [run_of("zeroshot")[0].model_copy(update={"training": None})]
    assert math.isnan(knob_of(results_of(rows={"zeroshot": untrained}), "zeroshot", "tau"))


def test_a_run_without_the_knob_is_no_point_of_its_sweep(tmp_path: Path) -> None:
    results = swept({"2": 3.0, "3": 2.5})
    results.rows["tau-3"] = run_of("tau-3", **{"lambda": 0.2})
    assert tuning.knob_sweep(Canvas(tmp_path), results, ["tau-2", "tau-3"], "tau", "τ", "tau-2") == []


def test_the_controls_weight_stands_beside_what_it_should_be() -> None:
    """Shares of 80% and 100% distilled at λ = 0.2: 0.18."""
    results = results_of(
        rows={"ours": run_of("ours", **{"lambda": 0.2}), "scaled": run_of("scaled", **{"lambda": 0.17})},
        histories={"ours": [round_of(1, "A", 1, share_distilled=0.8), round_of(2, "A", 1, share_distilled=1.0)]},
    )
    (piece,) = tuning.scaled_weight(results, "ours", "scaled")
    assert "0.2 × 0.900 = 0.180; scaled has λ = 0.17" in piece
    assert tuning.scaled_weight(results, "ours", "gone") == []


def test_trials_say_what_was_chosen_and_whether_it_is_at_the_end() -> None:
    def tried(run: str, chosen: str, *knobs: str) -> list[dict[str, str]]:
        return [{"run": run, "knobs": k, "chosen": str(int(k == chosen))} for k in knobs]

    trials = [
        *tried("fedopt", "eta=0.1", "eta=0.1", "eta=0.02", "eta=0.05"),
        *tried("ditto", "mu=1", "mu=1", "mu=0.1", "mu=2"),
        *tried("select", "tau=5 lambda=0.2", "tau=5 lambda=0.2", "tau=3 lambda=0.2"),
    ]
    used: dict[str, dict[str, float]] = {
        "fedopt": {"eta": 0.1},
        "ditto": {"mu": 2.0},
        "select": {"tau": 5.0, "lambda": 0.2},
    }
    results = results_of(rows={run: run_of(run, **knobs) for run, knobs in used.items()})
    (piece,) = tuning.tuned(results, trials, ["fedopt", "ditto", "select", "gone"])
    assert "fedopt eta=0.1 of 3 trials, the end of what was tried; ditto mu=1 of 3 trials (the" in piece
    assert "(the run has another); select tau=5 lambda=0.2 of 2 trials.</p>" in piece
    assert tuning.tuned(results, [], ["fedopt"]) == []
