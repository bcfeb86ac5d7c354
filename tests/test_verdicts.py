"""What else there is to know before a verdict is believed, from numbers worked by hand."""

from __future__ import annotations

import pytest
from made_results import results_of, round_of, run_of

from pipeline.claims.claim import Claim, Equal, Judged
from pipeline.claims.verdicts import _at_equal_budget, _before_aggregation, _in_equal_rounds, _thresholds
from pipeline.evaluation.intervals import Interval
from pipeline.results import Results


def test_the_papers_threshold_stands_beside_the_others_validation_losses() -> None:
    """A run without a threshold, and one that was not run, are no others."""
    taus: dict[str, dict[str, float]] = {"four": {"tau": 4.0}, "five": {"tau": 5.0}, "avg": {}}
    results = results_of(
        rows={run: run_of(run, **knobs) for run, knobs in taus.items()},
        scored={run: [] for run in taus},
        histories={run: [round_of(1, "A", 2.5, best=True)] for run in taus},
    )
    assert _thresholds(results, ["four", "five", "avg", "gone"]) == ("five", {"four": 2.5})
    assert _thresholds(results, ["four"]) == ("", {"four": 2.5})


@pytest.mark.parametrize(("weight", "verdict"), [(0.16, "held"), (0.18, "cannot tell")])
def test_the_control_of_equal_weight_counts_only_at_that_weight(weight: float, verdict: str) -> None:
    """λ = 0.2 on 80% of the tokens weighs as much as 0.16 on all of them."""
    results = results_of(
        rows={"ours": run_of("ours", **{"lambda": 0.2}), "kd-scaled": run_of("kd-scaled", **{"lambda": weight})},
        histories={"ours": [round_of(1, "A", 1, share_distilled=0.8)]},
    )
    claim = Claim("ours beats it", "not in the paper", "ours", "kd-scaled")
    judged = _at_equal_budget(Judged(claim, Interval(1.0, 0.5, 1.5, 0.2), "held", converged=True), results)
    assert (judged.by_interval, judged.verdict) == ("held", verdict)
    assert judged.withheld == ("" if verdict == "held" else "its λ is not 0.160")


def sampled(ours: int, theirs: int, equal: Equal | None) -> tuple[Judged, Results]:
    """Two runs of two clients in so many rounds."""
    took = {"all": ours, "two": theirs}
    histories = {run: [round_of(n + 1, c, 1, steps=1) for n in range(took[run]) for c in "AB"] for run in took}
    claim = Claim("all are above two", "Fig. 10", "all", "two", equal=equal)
    return Judged(claim, Interval(1.0, 0.5, 1.5, 0.2), "held", converged=True), results_of(histories=histories)


@pytest.mark.parametrize(
    ("equal", "rounds", "verdict"),
    [
        ("rounds", (3, 3), "held"),
        ("rounds", (3, 2), "cannot tell"),
        ("client-rounds", (3, 3), "held"),
        ("client-rounds", (3, 2), "cannot tell"),  # 6 and 4: more than half a round
        (None, (5, 3), "held"),
    ],
)
def test_runs_that_stopped_early_are_not_compared_at_equal_rounds(
    equal: Equal | None, rounds: tuple[int, int], verdict: str
) -> None:
    judged = _in_equal_rounds(*sampled(*rounds, equal))
    assert (judged.by_interval, judged.verdict) == ("held", verdict)


def test_beside_a_gain_over_adafedavg_stand_its_clients_before_aggregation() -> None:
    """2.5 and 2.7 against 2.6 and 2.6 before aggregation: level; of the client A alone 0.1 below."""
    avg = [run_of("avg")[0].model_copy(update={"method": "AdaFedAvg", "kind": "AdaFedAvg"})]
    metrics = {
        "ours": {"A": {"loss": 2.5}, "B": {"loss": 2.7}, "mean": {"loss": 2.6}},
        "avg": {"A": {"loss": 2.8, "local_loss": 2.6}, "B": {"loss": 2.8, "local_loss": 2.6}, "mean": {"loss": 2.8}},
    }
    results = results_of(rows={"ours": run_of("ours"), "avg": avg}, metrics=metrics)
    interval = Interval(1.0, 0.5, 1.5, 0.2)
    found = [
        _before_aggregation(
            Judged(Claim("above", "Table IV", "ours", other, clients=clients), interval, "held", converged=True),
            results,
        ).before
        for other, clients in (("avg", ()), ("avg", ("A",)), ("ours", ()))
    ]
    assert found == [pytest.approx(0.0), pytest.approx(-0.1), None]
