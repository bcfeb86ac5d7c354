"""Every two runs that a section compares, from scores worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_results import AVERAGE, figures, results_of, row_of, run_of

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Scored
from pipeline.report.pairs import Pair, ahead_by, pairs_of, reference_of
from pipeline.runs.results import Results
from pipeline.tasks.task import LOSS


def scored(client: str, average: float, loss: float) -> list[Scored]:
    """Eight meetings alike, one example each of ten tokens."""
    return [Scored(f"{client}/{n}", client, f"m{n}", 10, {"average": average, "loss": 10 * loss}) for n in range(8)]


def three_runs() -> Results:
    """Clients A and B; `wide` has SAMSum too, and `mute` wrote no summaries."""
    own = {
        "fedselectkd": scored("A", 20.0, 2.0) + scored("B", 24.0, 3.0),
        "wide": scored("A", 19.0, 2.5) + scored("B", 21.0, 3.1) + scored("SAMSum", 40.0, 1.0),
        "mute": [replace(row, values={"loss": 30.0}) for row in scored("A", 0.0, 0.0) + scored("B", 0.0, 0.0)],
    }
    clients = {name: list(dict.fromkeys(row.client for row in rows)) for name, rows in own.items()}
    return results_of(
        rows={name: run_of(name) for name in own},
        scored_by_seed={1: own},
        metrics={name: {client: figures() for client in [*those, "mean"]} for name, those in clients.items()},
    )


def test_a_pair_is_the_mean_over_the_clients_that_all_runs_have() -> None:
    """In ROUGE (1 + 3) / 2 = 2; in loss (0.5 + 0.1) / 2 = 0.3 nats less. SAMSum is left out."""
    pairs = pairs_of("extreme", ["fedselectkd", "wide"], three_runs(), (AVERAGE, LOSS), 2000)
    assert [(one.metric.name, round(one.gain.value, 6)) for one in pairs] == [("average", 2.0), ("loss", 0.3)]
    row = pairs[0].to_row()
    assert list(row.values())[:5] == ["extreme", "average", "fedselectkd", "wide", 2.0]
    assert row["low"] <= 2.0 <= row["high"]
    pairs = pairs_of("extreme", ["fedselectkd", "mute"], three_runs(), (AVERAGE, LOSS), 2000)
    assert [one.metric.name for one in pairs] == ["loss"], "a run without summaries"


def test_a_pair_is_of_the_seeds_that_both_runs_have() -> None:
    """At a second seed, which `wide` lacks, `fedselectkd` scores 20 points more."""
    results = three_runs()
    own = {"fedselectkd": scored("A", 40.0, 2.0) + scored("B", 44.0, 3.0)}
    results = replace(results, scored_by_seed=results.scored_by_seed | {2: own})
    (pair,) = pairs_of("extreme", ["fedselectkd", "wide"], results, (AVERAGE,), 2000)
    assert pair.gain.value == 2.0


def test_what_the_reference_is_ahead_by_does_not_depend_on_the_order_of_a_pair() -> None:
    results = three_runs()
    for runs in (["fedselectkd", "wide"], ["wide", "fedselectkd"]):
        ahead = ahead_by(pairs_of("x", runs, results, (AVERAGE, LOSS), 2000), "fedselectkd")
        assert set(ahead) == {"wide"}
        assert [text.partition(" (+")[0] for text in ahead["wide"].values()] == ["+2.00", "+0.3000"]


@pytest.mark.parametrize(
    ("gain", "text"),
    [(Interval(1.0, -0.5, 2.0), "−1.00 (−2.00 … +0.50)"), (Interval(0.0, 0.0, 0.0), "0.00 (0.00 … 0.00)")],
)
def test_a_reversed_gain_has_its_ends_in_order_and_nothing_has_no_sign(gain: Interval, text: str) -> None:
    pair = Pair("x", AVERAGE, "wide", "fedselectkd", gain)
    assert ahead_by([pair], "fedselectkd") == {"wide": {"average": text}}


def test_the_reference_is_the_first_run_of_our_method_in_params() -> None:
    rows = {
        "other": [row_of("other", part="AdaFedAvg")],
        "fedselectkd": run_of("fedselectkd"),
        "tau-2": run_of("tau-2"),
    }
    results = results_of(rows=rows)
    assert reference_of(["tau-2", "fedselectkd"], results) == "fedselectkd"
    assert reference_of(["other", "tau-2"], results) == "tau-2"
    assert reference_of(["other"], results) is None
