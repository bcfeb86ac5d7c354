"""Results of runs as if they had been made: what the tests of pages and of claims share."""

from __future__ import annotations

from typing import Any

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import Figures
from pipeline.federated.history import Round
from pipeline.plan.learner import Learner, View
from pipeline.plan.orders import RunRow, TrainingKnobs
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric
from pipeline.workspace.layout import run_id

AVERAGE = Metric("average", "average ROUGE", "F1 x 100", "more", 2)
LENGTH = Metric("length", "words (over the reference's)", "words", None, 1, over="reference_length")
AT_LIMIT = Metric("at_limit", "cut at the limit, %", "%", "less", 1, ranked=False)


def round_of(number: int, client: str, loss: float, seed: int = 1, **more: Any) -> Round:
    """A round of one client, with its validation loss; `figures` are the objective's."""
    return Round(seed, number, client, validation_loss=loss, **more)


LEARNER = Learner(
    task="pipeline.tasks.summarize",
    view=View(backbone="tiny-llama", adapted_layers=2, source_tokens=300, target_tokens=60),
    above="bottleneck",
    size=16,
    device="cpu",
    precision="fp32",
    threads=1,
)
TRAINING = TrainingKnobs(
    learner=LEARNER,
    algorithm="pipeline.federated.algorithms.fedselectkd",
    hyperparameters={},
    seed=1,
    rounds=2,
    batch_size=4,
    learning_rate=0.001,
)


def run_of(name: str, seed: int = 1, **hyperparameters: Any) -> list[RunRow]:
    """A run at one seed that is judged by its clients' own models."""
    return [
        RunRow(
            id=run_id(name, seed),
            name=name,
            seed=seed,
            method="AdaFedSelectKD",
            part="AdaFedSelectKD",
            setting="domains",
            data=["qmsum"],
            learner=LEARNER,
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
