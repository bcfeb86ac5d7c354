"""One run's training by params.yaml, and whether its backbone and rounds allow it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable

from pydantic import BaseModel

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import UNTRAINED
from pipeline.model.precision import Precision, resolve, threads_of
from pipeline.model.presets import PRESETS
from pipeline.plan.code import code_of
from pipeline.plan.orders import Training, TrainOrder
from pipeline.plan.packages import WORDS, packages_of
from pipeline.plan.run import Run
from pipeline.plan.schema import Params
from pipeline.tasks import TASKS

HEAD = ("head",)
"""The members of a task that a training calls."""


def training_order(params: Params, name: str, seed: int) -> TrainOrder:
    """A run's training, with only those hyperparameters that its algorithm has.

    Raises:
        QuorumError: its hyperparameters do not fit its algorithm.
    """
    run = params.all_runs[name]
    if run.method in UNTRAINED:
        return TrainOrder(training=None, evaluate=None, code=code_of("pipeline.stages.train"))
    module = ALGORITHMS[run.method]
    algorithm = importlib.import_module(module)
    lora = params.is_lora(name)
    hyper = params.hyperparameters_of(name, algorithm.Hyperparameters)
    bound = algorithm.build(hyper)
    knobs = params.training_of(name)
    if not bound.communicates:
        _check_alone(params.where(name), run)
        knobs = knobs.model_copy(update={"clients_per_round": None})
    task = TASKS[params.task]
    code = code_of("pipeline.runs.meetings", module, task, parts=HEAD)
    tagged = WORDS if "pipeline.corpora.tagging" in code else ()
    training = Training(
        code=code,
        packages=packages_of("train", *(("peft",) if lora else ()), *tagged),
        task=task,
        algorithm=module,
        hyperparameters=json.loads(hyper.model_dump_json(by_alias=True)),
        seed=seed,
        device=params.device,
        precision=precision_of(params),
        threads=threads_of(params.threads),
        adapted_layers=run.adapted_layers or layers_of(params),
        uncached=is_uncached(params, name),
        dropout=run.dropout,
        adapted_positions=run.adapted_positions,
        bottleneck=None if lora else params.bottleneck or PRESETS[params.backbone].bottleneck,
        lora_rank=params.lora_rank if lora else None,
        joins=params.joins_of(name),
        weights=params.weights_of(name),
        keep_rounds=seed in params.keep_rounds,
        learning_rate=_rate_of(params, run, bound, hyper),
        **knobs.model_dump(),
    )
    return TrainOrder(
        training=training,
        evaluate=run.evaluate or bound.evaluates,
        code=code_of("pipeline.stages.train", module, task, parts=HEAD),
    )


def _rate_of(params: Params, run: Run, bound: Algorithm, hyper: BaseModel) -> float:
    """A run's own learning rate, else the file's, else that of its family."""
    if own := run.learning_rate or params.learning_rate:
        return own
    rates = params.learning_rates
    if bound.pooled:
        return rates.pooled
    if not bound.communicates or getattr(hyper, "local_start", None) == "own":
        return rates.own
    return rates.server if (run.evaluate or bound.evaluates) == "server" else rates.local


def _check_alone(where: str, run: Run) -> None:
    """Check that a method without a server has no knobs of a server."""
    if run.evaluate == "server":
        raise QuorumError(f"params.yaml: {where}.evaluate: server, but {run.method} has no server; correct it")
    if run.late or "clients_per_round" in run.knobs:
        wrong = "only federated methods have late and clients_per_round"
        raise QuorumError(f"params.yaml: {where}: {wrong}; {run.method} is not one; remove them")


def batches_of(params: Params, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Setting -> (largest batch, fewest local epochs) of its trainings; a setting without trainings is left out."""
    found: dict[str, tuple[int, int]] = {}
    for name in sorted(names):
        run, knobs = params.all_runs[name], params.training_of(name)
        if run.method not in UNTRAINED:
            batch, epochs = found.get(run.setting, (0, knobs.local_epochs))
            found[run.setting] = max(batch, knobs.batch_size), min(epochs, knobs.local_epochs)
    return found


def layers_of(params: Params) -> int:
    """N, the number of adapted layers, of all runs that do not set it."""
    return params.adapted_layers or PRESETS[params.backbone].adapted_layers


def precision_of(params: Params) -> Precision:
    """The precision of products with frozen weights on this machine.

    Raises:
        QuorumError: the machine does not support the precision in params.yaml.
    """
    return resolve(params.precision, params.device)


def is_uncached(params: Params, name: str) -> bool:
    """Whether a run cannot use the store."""
    run = params.all_runs[name]
    other = run.adapted_layers is not None and run.adapted_layers != layers_of(params)
    return other or run.dropout > 0 or run.adapted_positions == "all"


def unfit(params: Params, name: str) -> str | None:
    """Why this backbone or these rounds do not allow a run; None if they do."""
    run, preset = params.all_runs[name], PRESETS[params.backbone]
    layers = run.adapted_layers or layers_of(params)
    first, rounds = run.knobs.get("kd_from_round"), params.training_of(name).rounds
    if isinstance(first, int) and first > rounds:
        return f"kd_from_round: {first}, but of {rounds} rounds"
    if layers > preset.decoder_layers:
        return f"adapted_layers: {layers}, but {params.backbone} has {preset.decoder_layers} decoder layers"
    if preset.family == "seq2seq" and run.adapted_positions == "all":
        return f"adapted_positions: all, but the encoder of {params.backbone} reads the prompt, and has no adapters"
    return None
