"""What a site reports about itself: hashes of its order, code and data, its backbone, packages and precision."""

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
    """A run's training and its order.

    Raises:
        QuorumError: a federation cannot train the run, because it communicates nothing, pools data or simulates faults.
    """
    order = read_order(layout.order("train", run_id), TrainOrder)
    if order.training is None:
        raise QuorumError(f"{run_id}: trains nothing; choose another run in federation.yaml")
    algorithm: Algorithm = bind(order.training)
    if algorithm.pooled:
        raise QuorumError(f"{run_id}: pools all data in one place, which a federation does not; choose another run")
    if not algorithm.communicates:
        raise QuorumError(f"{run_id}: sends no adapter, so it needs no federation; run it in each organisation")
    if order.training.faults is not None:
        raise QuorumError(f"{run_id}: only a simulation has faults; set faults: null in params.yaml")
    return order.training, order


def order_hash(run_id: str, training: Training) -> str:
    """A hash of all of params.yaml that affects a run: training, decoding and the lengths that are read."""
    encode = read_order(layout.order("encode", layout.group_of(run_id)), EncodeOrder)
    decode = read_order(layout.order("generate", run_id), GenerateOrder)
    orders = [without_code(order.model_dump(mode="json")) for order in (training, decode)]
    return sha256_json([*orders, list(encode.limits[encode.manifests[run_id]])])


def job_name(order: str, training: Training, facts: Mapping[str, Facts]) -> str:
    """The training's name at every site, `ORDER-HASH`.

    The hash changes with the set of organisations, with any organisation's data, and with code, packages or precision.
    """
    data = {name: facts[name].data for name in sorted(facts)}
    return f"{order}-{sha256_json([training.model_dump(mode='json'), data])}"


def site_facts(training: Training, order: str, counts: dict[str, int], weight: float = 1.0, data: str = "") -> Facts:
    """The facts of this site.

    Args:
        order: see `order_hash`.
        counts: number of examples in each split; empty for a server.
        weight: the weight of one example in an average.
        data: a hash of the site's examples.
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
