"""What else there is to know before a verdict is believed, from numbers worked by hand."""

from __future__ import annotations

import pytest
from made_results import results_of, round_of, run_of

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Scored
from pipeline.report.claims.claim import Claim, Equal, Judged
from pipeline.report.claims.section import Section
from pipeline.report.claims.verdicts import (
    _at_equal_budget,
    _before_aggregation,
    _in_equal_rounds,
    _thresholds,
    verdicts_of,
)
from pipeline.runs.results import Results


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


@pytest.mark.parametrize(("took", "verdict"), [((3, 2, 2), "held"), ((3, 3, 2), "cannot tell")])
def test_client_rounds_are_equal_to_half_a_round(took: tuple[int, ...], verdict: str) -> None:
    """Three clients: 7 against 6 is as near as whole rounds come; 8 against 6 is not."""
    all_clients = [round_of(n + 1, client, 1, steps=1) for client in "ABC" for n in range(2)]
    drawn = [
        round_of(n + 1, client, 1, steps=1) for client, rounds in zip("ABC", took, strict=True) for n in range(rounds)
    ]
    claim = Claim("all are above two", "Fig. 10", "all", "two", equal="client-rounds")
    one = Judged(claim, Interval(1.0, 0.5, 1.5, 0.2), "held", converged=True)
    judged = _in_equal_rounds(one, results_of(histories={"all": all_clients, "two": drawn}))
    assert judged.verdict == verdict
    assert judged.withheld == ("" if verdict == "held" else "they took 6 and 8 client-rounds")


def test_a_verdict_comes_with_what_else_there_is_to_know() -> None:
    """Ours stopped a round early, gains 1.0 surely, and has 0.1 nats more than AdaFedAvg's own clients."""
    rows = {"ours": run_of("ours", tau=5.0), "four": run_of("four", tau=4.0), "avg": run_of("avg")}
    rows["avg"] = [rows["avg"][0].model_copy(update={"method": "AdaFedAvg", "kind": "AdaFedAvg"})]
    took = {"ours": 2, "four": 3, "avg": 3}
    results = results_of(
        rows=rows,
        scored={
            run: [Scored(f"e{n}", "A", f"m{n}", 10, {"average": 20.0 + n + gain, "loss": 25.0}) for n in range(20)]
            for run, gain in (("ours", 1.0), ("four", 3.0), ("avg", 0.0))
        },
        metrics={run: {"A": {"loss": 2.5, "local_loss": 2.4}, "mean": {}} for run in rows},
        histories={
            run: [round_of(n + 1, "A", 2.0, steps=1, best=n == 0) for n in range(rounds)]
            for run, rounds in took.items()
        },
    )
    claims = (
        Claim("above", "Fig. 10", "ours", "avg", equal="rounds"),
        Claim("best", "Fig. 4", "", "", kind="best threshold"),
        Claim("preferred", "Fig. 5", "ours", "avg", metric="preference", kind="raters"),
    )
    rating = {"rater": "r", "client": "A", "meeting": "m", "against": "AdaFedAvg", "criterion": "c", "outcome": "win"}
    ratings = [rating | {"sheet": "s", "item": f"i{n}", "example": f"e{n}"} for n in range(4)]
    section = Section("sampling", "Fig. 10", "title", "says", claims)
    found = verdicts_of([section], results, {"tau": ["ours", "four"]}, [], ratings, 200)["sampling"]
    above, best, preferred = found
    assert (above.by_interval, above.verdict, above.withheld) == ("held", "cannot tell", "they took 2 and 3 rounds")
    assert above.before == pytest.approx(0.1)
    assert (best.claim.ours, best.claim.theirs, best.verdict) == ("ours", "four", "did not hold")
    assert preferred.verdict == "held"


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
