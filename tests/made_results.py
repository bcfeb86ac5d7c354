"""Results of runs as if they had been made: what the tests of verdicts and of pages share."""

from __future__ import annotations

from typing import Any

from pipeline.federated.history import Round
from pipeline.plan.orders import RunRow, TrainingKnobs
from pipeline.runs.results import Results


def round_of(number: int, client: str, loss: float, seed: int = 1, **more: Any) -> Round:
    return Round(seed, number, client, None, loss, **more)


TRAINING = TrainingKnobs(
    algorithm="pipeline.federated.algorithms.fedselectkd",
    hyperparameters={},
    seed=1,
    device="cpu",
    adapted_layers=2,
    bottleneck=16,
    lora_rank=None,
    rounds=2,
    patience=3,
    clients_per_round=None,
    joins={},
    local_epochs=1,
    batch_size=4,
    learning_rate=0.001,
    weight_decay=0.01,
    dropout=0.0,
    adapted_positions="targets",
    uncached=False,
    clip_norm=1.0,
)


def run_of(name: str, **hyperparameters: Any) -> list[RunRow]:
    return [
        RunRow(
            id=f"more/{name}-1",
            name=name,
            seed=1,
            method="AdaFedSelectKD",
            kind="AdaFedSelectKD",
            setting="domains",
            spec="",
            training=TRAINING.model_copy(update={"hyperparameters": hyperparameters}),
            evaluate="local",
        )
    ]


def results_of(**parts: Any) -> Results:
    known: dict[str, Any] = {"rows": {}, "scored": {}, "metrics": {}, "by_seed": {}, "histories": {}}
    return Results(**(known | parts))
