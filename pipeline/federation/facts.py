"""What a site is, beside its data: hashes of its order and code, its backbone and packages, how it multiplies."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.engines.messages import Facts
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm
from pipeline.model.loading import backbone_digest
from pipeline.plan.code import without_code
from pipeline.plan.orders import EncodeOrder, GenerateOrder, Training, TrainOrder, read_order
from pipeline.runs.training import bind
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_json


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


def order_of(run_id: str, training: Training) -> str:
    """A hash of all that params.yaml says of a run: how it is trained, what is read of a meeting, what is written."""
    encode = read_order(layout.order("encode", layout.group_of(run_id)), EncodeOrder)
    decode = read_order(layout.order("generate", run_id), GenerateOrder)
    told = [without_code(order.model_dump(mode="json")) for order in (training, decode)]
    return sha256_json([*told, list(encode.limits[encode.manifests[run_id]])])


def job_of(order: str, training: Training, facts: Mapping[str, Facts]) -> str:
    """The training's name at every site.

    Another one where an organisation comes, goes, or has other meetings; and where code, packages or precision change.
    """
    held = {name: facts[name].data for name in sorted(facts)}
    return f"{order}-{sha256_json([training.model_dump(mode='json'), held])}"


def facts_of(training: Training, order: str, counts: dict[str, int], weight: float = 1.0, data: str = "") -> Facts:
    """Of this site.

    Args:
        order: see `order_of`.
        counts: examples of each split; a server has none.
        weight: how many examples one stands for in an average.
        data: a hash of its examples.
    """
    return Facts(
        code=sha256_json(training.code),
        order=order,
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
