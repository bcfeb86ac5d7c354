"""Results of runs as if they had been made: what the tests of pages and of claims share."""

from __future__ import annotations

from typing import Any

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures
from pipeline.federated.history import Round
from pipeline.plan.orders import RunRow, TrainingKnobs
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric

AVERAGE = Metric("average", "average ROUGE", "F1 x 100", "more", 2)
LENGTH = Metric("length", "words (over the reference's)", "words", None, 1, over="reference_length")
AT_LIMIT = Metric("at_limit", "cut at the limit, %", "%", "less", 1, ranked=False)


def round_of(number: int, client: str, loss: float, seed: int = 1, **more: Any) -> Round:
    """A round of one client, with its validation loss; `figures` are the objective's."""
    return Round(seed, number, client, validation_loss=loss, **more)


TRAINING = TrainingKnobs(
    task="pipeline.tasks.summarize",
    algorithm="pipeline.federated.algorithms.fedselectkd",
    hyperparameters={},
    seed=1,
    device="cpu",
    precision="fp32",
    threads=1,
    adapted_layers=2,
    bottleneck=16,
    lora_rank=None,
    rounds=2,
    patience=3,
    clients_per_round=None,
    joins={},
    client_optimizer="adamw",
    client_schedule="constant",
    weights={},
    keep_rounds=False,
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
    """A run at one seed that is judged by its clients' own models."""
    return [
        RunRow(
            id=f"more/{name}-1",
            name=name,
            seed=1,
            method="AdaFedSelectKD",
            part="AdaFedSelectKD",
            setting="domains",
            orders="",
            fingerprint="",
            training=TRAINING.model_copy(update={"hyperparameters": hyperparameters}),
            patience=TRAINING.patience,
            evaluate="local",
        )
    ]


def figures(examples: int = 1, *, spread: float = 0.0, **metrics: float) -> Figures:
    """A client's figures; every interval reaches `spread` to both sides of its value."""
    return Figures(examples, {name: Interval(v, v - spread, v + spread, spread / 2) for name, v in metrics.items()})


def results_of(**parts: Any) -> Results:
    names = ("rows", "scored", "scored_by_seed", "metrics", "by_seed", "histories")
    return Results(**{name: parts.get(name, {}) for name in names})
