"""A run's learner and its training, by params.yaml, and whether its backbone and rounds allow it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable

from pydantic import BaseModel

from pipeline.clients.setting import Balanced, Domains, Iid
from pipeline.clients.skews import Natural
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import TURNS
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.precision import Precision, resolve, threads_of
from pipeline.model.presets import ENCODERS, PRESETS
from pipeline.plan.code import code_of
from pipeline.plan.learner import Learner, View
from pipeline.plan.orders import Training, TrainOrder
from pipeline.plan.packages import WORDS, packages_of
from pipeline.plan.run import Rates, Run
from pipeline.plan.schema import Params
from pipeline.tasks import TASKS
from pipeline.tasks.task import load_task, writes
from pipeline.workspace.record import Json

LORA_RANK = 8
"""r of LoRA's tensors, where params.yaml has none."""
LEARNED = ("head", "classes", "render", "head_input", "initial", "items", "outputs")
"""The members of a task that decide what is learned, so not those that predict or score."""


def learner_of(params: Params, name: str) -> Learner | None:
    """A run's learner; None for turns of the source, which need no model.

    Raises:
        QuorumError: nothing says how much of an example it reads, or an encoder is cut above its last layer.
    """
    run, data = params.runs[name], params.data_of(name)
    if run.method in TURNS:
        return None
    backbone = str(params.backbone_of(name))
    setting = params.settings[run.setting]
    limits: Json = {}
    keys = ("source_tokens", "target_tokens") if backbone in PRESETS else ("source_tokens",)
    for key in keys:
        limits[key] = getattr(setting, key, None) or getattr(data, key) or getattr(params, key)
        if limits[key] is None:
            raise QuorumError(f"params.yaml: data.{setting.data_sets[0]}.{key}: is missing; add it here or in `scales`")
    how: Json = {
        "device": params.device,
        "precision": precision_of(params),
        "threads": threads_of(params.threads),
    }
    above, size = run.above or params.above, run.size or params.size
    if backbone in ENCODERS:
        frozen = run.frozen or data.frozen or "none"
        _check_cut(name, run, frozen, ENCODERS[backbone].layers)
        view = View(backbone=backbone, frozen=frozen, layers=run.layers, **limits)
        return Learner(task=TASKS[data.task], view=view, above=above or "layers", size=size, **how)
    preset = PRESETS[backbone]
    layers = run.adapted_layers or layers_of(params, backbone)
    above = above or "bottleneck"
    return Learner(
        task=TASKS[data.task],
        view=View(backbone=backbone, adapted_layers=layers, **limits),
        above=above,
        size=size or (LORA_RANK if above == "lora" else preset.bottleneck),
        dropout=run.dropout,
        adapted_positions=run.adapted_positions,
        uncached=layers != layers_of(params, backbone) or run.dropout > 0 or run.adapted_positions == "all",
        **how,
    )


def _check_cut(name: str, run: Run, frozen: str, depth: int) -> None:
    """Check that an encoder has all layers that are frozen."""
    has = depth if run.layers is None else len(run.layers)
    if FrozenPart.parse(frozen).layers > has:
        raise QuorumError(f"params.yaml: runs.{name}: frozen: {frozen}, but it has {has} layers; freeze fewer")


def train_order(params: Params, name: str) -> TrainOrder:
    """A run's training at its seeds, with only those hyperparameters that its algorithm has.

    Raises:
        QuorumError: its hyperparameters do not fit its algorithm, its data set, its setting or its optimizer.
    """
    run, task = params.runs[name], TASKS[params.data_of(name).task]
    learner, seeds = learner_of(params, name), params.seeds_of(name)
    common: Json = {
        "setting": run.setting,
        "seeds": seeds,
        "keep_rounds": sorted(set(seeds) & set(params.keep_rounds)),
        "learner": learner,
        "evaluated": params.evaluated,
        "left_out": left_out(params, name),
    }
    if not run.trains or learner is None:
        code = code_of("pipeline.stages.train", task, parts=LEARNED)
        return TrainOrder(code=code, training=None, evaluate=None, **common)
    module = ALGORITHMS[run.method]
    algorithm = importlib.import_module(module)
    hyper = params.hyperparameters_of(name, algorithm.Hyperparameters)
    bound = algorithm.build(hyper)
    knobs = params.training_of(name)
    if not bound.communicates:
        _check_alone(f"runs.{name}", run)
        knobs = knobs.model_copy(update={"clients_per_round": None})
    _check_fits(params, name, bound, hyper)
    code = code_of("pipeline.runs.learners", module, task, parts=LEARNED)
    tagged = WORDS if "pipeline.corpora.tagging" in code else ()
    setting = params.setting_of(run.setting)
    training = Training(
        code=code,
        packages=packages_of("train", *tagged),
        learner=learner,
        algorithm=module,
        hyperparameters=json.loads(hyper.model_dump_json(by_alias=True)),
        seed=seeds[0],
        joins=dict.fromkeys(run.late, knobs.rounds - params.added_rounds + 1),
        weights=setting.weights if isinstance(setting, Domains) else {},
        learning_rate=_rate_of(params, name, bound, hyper),
        **knobs.model_dump(),
    )
    return TrainOrder(
        code=code_of("pipeline.stages.train", module, task, parts=LEARNED),
        training=training,
        evaluate=run.evaluate or bound.evaluates,
        **common,
    )


def _rate_of(params: Params, name: str, bound: Algorithm, hyper: BaseModel) -> float:
    """A run's own learning rate, else the file's, else that of its family; a data set's rates before the file's."""
    run = params.runs[name]
    if own := run.learning_rate or params.learning_rate:
        return own
    if bound.pooled:
        family = "pooled"
    elif params.training_of(name).client_optimizer == "sgd":
        family = "sgd"
    elif not bound.communicates or getattr(hyper, "local_start", None) == "own":
        family = "own"
    else:
        family = "server" if (run.evaluate or bound.evaluates) == "server" else "local"
    for rates in (params.data_of(name).rates, params.rates):
        if rate := _among(rates, family):
            return rate
    raise QuorumError(f"params.yaml: rates.{family}: is missing, and runs.{name} needs it; add it")


def _among(rates: Rates, family: str) -> float | None:
    found: float | None = getattr(rates, family)
    return found or (rates.adamw if family in ("own", "local", "server") else None)


def _check_alone(where: str, run: Run) -> None:
    """Check that a method without a server has no knobs of a server."""
    if run.evaluate == "server":
        raise QuorumError(f"params.yaml: {where}.evaluate: server, but {run.method} has no server; correct it")
    if run.late or run.knobs.get("clients_per_round"):
        wrong = "late and clients_per_round are of federated methods"
        raise QuorumError(f"params.yaml: {where}: {wrong}; {run.method} is none; correct it")


def _check_fits(params: Params, name: str, bound: Algorithm, hyper: BaseModel) -> None:
    """Check that a run's algorithm fits its data set, its setting and its optimizer.

    Raises:
        QuorumError: the method evaluates clients' own models and the setting the server's, it marks words of a task
            that writes none, or it saves the moments of SGD, which has none.
    """
    run, where, data = params.runs[name], f"params.yaml: runs.{name}", params.data_of(name)
    if bound.marks_words and not writes(load_task(TASKS[data.task])):
        raise QuorumError(
            f"{where}: {run.method} distils at nouns and verbs of what is written, and {data.task} writes nothing; "
            "choose another method, such as AdaFedSelectKD"
        )
    setting = params.settings[run.setting]
    by_client = isinstance(setting, Domains | Iid | Balanced) or (isinstance(setting, Natural) and setting.own)
    if (run.evaluate or bound.evaluates) == "local" and not bound.pooled and not by_client:
        raise QuorumError(
            f"{where}: {run.method} evaluates each client's own model, and setting {run.setting} the server's; "
            "choose natural clients with own: true, or a method whose server has a model"
        )
    keeps_state = getattr(hyper, "client_optimizer_state", "fresh") == "keep"
    if keeps_state and params.training_of(name).client_optimizer == "sgd":
        raise QuorumError(f"{where}.client_optimizer_state: keep: SGD has no moments to keep; remove it")


def batches_of(params: Params, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Setting -> (largest batch, fewest local epochs) of its trainings; a setting without trainings is left out."""
    found: dict[str, tuple[int, int]] = {}
    for name in sorted(names):
        run, knobs = params.runs[name], params.training_of(name)
        if run.trains:
            batch, epochs = found.get(run.setting, (0, knobs.local_epochs))
            found[run.setting] = max(batch, knobs.batch_size), min(epochs, knobs.local_epochs)
    return found


def layers_of(params: Params, backbone: str) -> int:
    """N, the number of adapted layers of a language model, of all runs that do not set it."""
    return params.adapted_layers or PRESETS[backbone].adapted_layers


def precision_of(params: Params) -> Precision:
    """The precision of products with frozen weights on this machine.

    Raises:
        QuorumError: the machine does not support the precision in params.yaml.
    """
    return resolve(params.precision, params.device)


def left_out(params: Params, name: str) -> str | None:
    """Why a run is left out: it is of another scale, or its backbone or rounds do not allow it; None if it is not."""
    run = params.runs[name]
    if name not in params.runs_of_scale:
        return f"is a run of scale {run.at}"
    first, rounds = run.knobs.get("kd_from_round"), params.training_of(name).rounds
    if isinstance(first, int) and first > rounds:
        return f"kd_from_round: {first}, but of {rounds} rounds"
    learner = learner_of(params, name)
    if learner is None or learner.view.adapted_layers is None:
        return None
    backbone = learner.view.backbone
    preset = PRESETS[backbone]
    if learner.view.adapted_layers > preset.decoder_layers:
        return (
            f"adapted_layers: {learner.view.adapted_layers}, but {backbone} has {preset.decoder_layers} decoder layers"
        )
    if preset.family == "seq2seq" and run.adapted_positions == "all":
        return f"adapted_positions: all, but the encoder of {backbone} reads the prompt, and has no adapters"
    return None
