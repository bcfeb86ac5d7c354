"""Scores and histories of runs, read and compared."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from made_results import TRAINING, results_of, round_of, run_of

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures, Scored, figures_of
from pipeline.plan.orders import RunRow
from pipeline.runs import results as of_runs
from pipeline.runs.metrics import write_metrics
from pipeline.runs.result_files import read_results_of, write_result
from pipeline.runs.results import Results, common_clients, knob_of, side_by_side
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def scored(clients: str) -> list[Scored]:
    """Four examples a client, of 20 each; D's of 40."""
    return [
        Scored(f"{c}{i}", c, f"m{i}", 1, {"average": 40.0 if c == "D" else 20.0, "loss": 2.0})
        for c in clients
        for i in range(4)
    ]


def test_compared_means_are_over_the_same_clients() -> None:
    """One run has a fourth client with 40: its mean over the three that both have stays 20."""
    runs = {"three": "ABC", "four": "ABCD"}
    results = results_of(
        scored={name: scored(clients) for name, clients in runs.items()},
        metrics={name: figures_of(scored(clients), 200) for name, clients in runs.items()},
    )
    found = side_by_side(results, ["three", "four", "gone"], samples=200)
    means = {name: figures["mean"].metrics["average"].value for name, figures in found.items()}
    assert means == {"three": 20.0, "four": 20.0}
    assert found["four"]["D"].metrics["average"].value == 40.0
    assert results.metrics["four"]["mean"].metrics["average"].value == 25.0


def test_runs_without_a_common_client_have_means_of_their_own() -> None:
    runs: dict[str, dict[str, Any]] = {"a": {"A": 1, "mean": 1}, "b": {"B": 1, "mean": 1}}
    assert common_clients(runs) == (["A", "B"], ["A", "B"])
    assert common_clients({"a": runs["a"], "both": {"A": 1, "B": 1, "mean": 1}}) == (["A"], ["A", "B"])


def test_a_runs_knob_is_its_own_and_a_quantile_what_it_was_in_nats() -> None:
    """τ = q0.88 was 3.0 and 5.0 nats in two rounds; AdaFedAvg has none."""
    history = [round_of(n, "A", 1.0, figures={"tau": tau}) for n, tau in ((1, 3.0), (2, 5.0))]
    results = results_of(
        rows={"four": run_of("four", tau=4.0), "quantile": run_of("quantile", tau="q0.88"), "avg": run_of("avg")},
        histories={"four": [], "quantile": history, "avg": []},
    )
    assert [knob_of(results, run, "tau") for run in ("four", "quantile")] == [4.0, 4.0]
    assert math.isnan(knob_of(results, "avg", "tau"))
    assert knob_of(results_of(rows={"avg": run_of("avg", mu=0.1)}), "avg", "mu") == 0.1


def save(
    run: str, *seeds: dict[str, float], rounds: int = 1, other: Any = None, counts: tuple[int, ...] = (2, 2)
) -> None:
    """A run's results at seeds 1, 2, …: clients' losses over so many examples, equal if as many; round 2 is the best.

    Args:
        other: of each seed, the losses of its other models.
    """
    found = {}
    for seed, losses, count in zip((1, 2), seeds, counts, strict=False):
        examples = [
            {
                "id": f"{count}-{c}{i}",
                "client": c,
                "group": f"{count}-m{i}",
                "items": 10,
                "loss_sum": 10 * loss,
                "average": 20.0,
            }
            for c, loss in losses.items()
            for i in range(count)
        ]
        history = [
            round_of(n, c, loss, train_loss=3.0 - n, best=n == 2).to_row()
            for n in range(1, rounds + 1)
            for c, loss in losses.items()
        ]
        scores = {"examples": examples, "clients": {c: other[seed - 1] if other else {} for c in losses}}
        rows = [{k: "" if v is None else str(v) for k, v in row.items()} for row in history]
        about = {"fingerprint": "", "precision": "fp32", "source": {}, "cut": {}}
        found[str(seed)] = about | {"scores": scores, "history": rows}
    write_result(layout.result(run), {"seeds": found})


def read(*rows: RunRow) -> Results:
    return of_runs.results_of(rows, read_results_of(rows), 200, "test")


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("there")
def test_a_run_is_read_over_its_seeds() -> None:
    """Losses of 2.0 and 4.0: 3.0, and each seed's own; its last round's model lost 5.0 and 6.0."""
    rows = [*run_of("ours", 1), *run_of("ours", 2)]
    save("ours", {"A": 2.0}, {"A": 4.0}, other=[{"last_loss": 5.0}, {"last_loss": 6.0, "server_loss": 1.0}])
    results = read(*rows)
    assert results.metrics["ours"]["A"].metrics["loss"].value == 3.0
    assert results.metrics["ours"]["A"].other_losses == {"last": 5.5}, "the server's is known of one seed alone"
    assert {seed: own["ours"]["mean"].metrics["loss"].value for seed, own in results.by_seed.items()} == {
        1: 2.0,
        2: 4.0,
    }
    assert [own["ours"][0].values["loss"] for own in results.scored_by_seed.values()] == [20.0, 40.0]
    assert [(one.seed, one.round) for one in results.histories["ours"]] == [(1, 1), (2, 1)]


@pytest.mark.usefixtures("there")
def test_a_seed_counts_by_what_it_tests() -> None:
    """One example with a loss of 2.0 and three of 4.0: 3.5. The last rounds' models are the best ones: as much."""
    rows = [*run_of("ours", 1), *run_of("ours", 2)]
    save("ours", {"A": 2.0}, {"A": 4.0}, other=[{"last_loss": 2.0}, {"last_loss": 4.0}], counts=(1, 3))
    figures = read(*rows).metrics["ours"]["A"]
    assert figures.metrics["loss"].value == figures.other_losses["last"] == 3.5


@pytest.mark.usefixtures("there")
def test_a_run_without_examples_has_no_results() -> None:
    """It was left out."""
    save("ours", {"A": 2.0})
    save("gone", {})
    results = read(*run_of("ours"), *run_of("gone"))
    assert set(results.rows) == set(results.metrics) == {"ours"}


@pytest.mark.usefixtures("there")
def test_a_training_that_patience_did_not_end_was_ended_by_the_cap() -> None:
    """The best round is the second of five, with a patience of three; of four rounds more might be better.

    A prolonged training's own patience is all its rounds, but the last three brought nothing.
    """
    longer = run_of("longer")[0].model_copy(
        update={"training": TRAINING.model_copy(update={"patience": 5, "rounds": 5}), "patience": 3}
    )
    for run, rounds in (("ended", 5), ("open", 4), ("longer", 5)):
        save(run, {"A": 2.0}, rounds=rounds)
    results = read(*run_of("ended"), *run_of("open"), longer)
    assert [run for run in results.rows if results.capped(run)] == ["open"]


@pytest.mark.usefixtures("there")
def test_metrics_are_small_for_people_and_whole_for_programs() -> None:
    """Two means a run to three digits; every figure with its interval, over seeds and of each."""
    interval = Interval(20.12345, 19.0, 21.0, 0.5)
    own = {client: Figures(4, {"average": interval, "rouge1": interval}) for client in ("A", "mean")}
    loss = {"mean": Figures(2, {"loss": Interval(2.5, 2.0, 3.0, 0.1)}, {"last": 2.75})}
    write_metrics({"ours": own, "loss": loss}, {}, ("average", "loss"))
    assert read_json(layout.METRICS) == {"ours": {"average": 20.123}, "loss": {"loss": 2.5}}
    write_metrics({"loss": loss}, {1: {"loss": loss}, 2: {"loss": loss}}, ("loss",))
    whole = {
        "loss": {
            "mean": {
                "loss": {"value": 2.5, "low": 2.0, "high": 3.0, "standard_error": 0.1},
                "last_loss": 2.75,
                "examples": 2,
            }
        }
    }
    assert read_json(layout.all_metrics()) == whole
    assert [read_json(layout.seed_metrics(seed)) for seed in (1, 2)] == [whole, whole]
