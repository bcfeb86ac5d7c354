"""What a site is, beside its data: hashes of its order and code, its backbone and packages, how it multiplies."""

from __future__ import annotations

from pipeline.engines.messages import Facts
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm
from pipeline.model.loading import backbone_digest
from pipeline.plan.orders import Training, TrainOrder, read_order
from pipeline.runs.training import bind
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_json

MADE_BY_SITES = ("code", "packages", "precision", "threads")
"""What of an order is compared by itself, so that what differs can be named."""


def planned_training(run_id: str) -> tuple[Training, TrainOrder]:
    """A run's order, if a federation can train it.

    Raises:
        QuorumError: nothing of it travels, or it needs the data of all in one place.
    """
    order = read_order(layout.order("train", run_id), TrainOrder)
    if order.training is None:
        raise QuorumError(f"{run_id}: trains nothing; choose another run in federation.yaml")
    algorithm: Algorithm = bind(order.training)
    if algorithm.pooled:
        raise QuorumError(f"{run_id}: pools all data in one place, which a federation does not; choose another run")
    if not algorithm.communicates:
        raise QuorumError(f"{run_id}: nothing of it travels; run it at each organisation by itself")
    if order.training.faults is not None:
        raise QuorumError(f"{run_id}: faults are of the simulation; set faults: null in params.yaml")
    return order.training, order


def job_of(training: Training) -> str:
    """The training's name at every site."""
    return sha256_json(training.model_dump(mode="json"))


def facts_of(training: Training, counts: dict[str, int], weight: float = 1.0, data: str = "") -> Facts:
    """Of this site.

    Args:
        counts: examples of each split; a server has none.
        weight: how many examples one stands for in an average.
        data: a hash of its examples.
    """
    told = training.model_dump(mode="json", exclude=set(MADE_BY_SITES))
    return Facts(
        code=sha256_json(training.code),
        order=sha256_json(told),
        backbone=backbone_digest(layout.BACKBONE),
        packages=training.packages,
        precision=training.precision,
        threads=training.threads,
        weight=weight,
        train=counts.get("train", 0),
        val=counts.get("val", 0),
        test=counts.get("test", 0),
        data=data,
    )
