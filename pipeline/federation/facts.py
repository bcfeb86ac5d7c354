"""What a site reports about itself: hashes of its order, code and data, its backbone, packages and precision."""

from collections.abc import Mapping

from pipeline.engines.messages import Facts
from pipeline.errors import QuorumError
from pipeline.plan.code import without_code
from pipeline.plan.learner import Training
from pipeline.plan.orders import PredictOrder, TrainOrder, planned_run, read_order
from pipeline.runs.learners import digest_of
from pipeline.runs.training import bind
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_json


def planned_training(run_id: str) -> tuple[Training, TrainOrder]:
    """A run's training and its order.

    Raises QuorumError if a federation cannot train the run, because it communicates nothing, pools data or simulates
    faults.
    """
    row = planned_run(run_id)
    order = read_order(layout.order("train", row.name), TrainOrder)
    training = order.at(row.seed)
    if training is None:
        raise QuorumError(f"{run_id}: trains nothing; choose another run in federation.yaml")
    algorithm = bind(training)
    problems = {
        "pools all data in one place, which a federation does not; choose another run": algorithm.pooled,
        "nothing of it travels; run it at each organisation by itself": not algorithm.communicates,
        "faults are of the simulation; set faults: null in params.yaml": training.faults is not None,
    }
    for problem, is_there in problems.items():
        if is_there:
            raise QuorumError(f"{run_id}: {problem}")
    return training, order


def order_hash(run_id: str, training: Training) -> str:
    """A hash of all of params.yaml that affects a run: its training, its learner and its decoding."""
    decode = read_order(layout.order("predict", planned_run(run_id).name), PredictOrder)
    return sha256_json([without_code(order.model_dump(mode="json")) for order in (training, decode)])


def job_name(order: str, training: Training, facts: Mapping[str, Facts]) -> str:
    """The training's name at every site, `ORDER-HASH`.

    The hash changes with the set of organisations, with any organisation's data, and with code, packages or precision.
    """
    data = {name: facts[name].data for name in sorted(facts)}
    return f"{order}-{sha256_json([training.model_dump(mode='json'), data])}"


def site_facts(training: Training, order: str, counts: dict[str, int], weight: float = 1.0, data: str = "") -> Facts:
    """The facts of this site; of a server without `counts`, the examples in each split, and a hash of its `data`.

    `order`: see `order_hash`. `weight`: the weight of one example in an average.
    """
    return Facts(
        code=sha256_json(training.code),
        order=order,
        backbone=digest_of(training.learner.view.backbone),
        packages=training.packages,
        precision=training.learner.precision,
        threads=training.learner.threads,
        weight=weight,
        train=counts.get("train", 0),
        val=counts.get("val", 0),
        test=counts.get("test", 0),
        data=data,
    )
