"""A run's learner and its training, by params.yaml, and whether its backbone and rounds allow it."""

import json
import math

from pydantic import BaseModel

from pipeline.clients.setting import Balanced, Domains, Iid
from pipeline.clients.skews import Natural
from pipeline.errors import QuorumError, listed
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import TURNS, UNITS
from pipeline.federated.tolerance import STRICT
from pipeline.model.frozen_part import Above, FrozenPart
from pipeline.model.precision import Precision, resolve, threads_of
from pipeline.model.presets import ENCODERS, PRESETS
from pipeline.plan.code import WORDS, code_of, packages_of
from pipeline.plan.learner import Learner, Training, View
from pipeline.plan.orders import TrainOrder
from pipeline.plan.schema import Params
from pipeline.tasks import TASKS
from pipeline.tasks.task import chooses_units, load_task, writes
from pipeline.workspace.layout import PARAMS
from pipeline.workspace.record import Json

LORA_RANK = 8  # r of LoRA's tensors, where params.yaml has none
LEARNED = ("head", "classes", "render", "head_input", "initial", "items", "outputs")
"""The members of a task that decide what is learned, so not those that predict or score."""


def learner_of(params: Params, name: str) -> Learner | None:
    """A run's learner; None for turns of the source, which need no model; an error where its limits do not fit."""
    run, data = params.runs[name], params.settings[params.runs[name].setting].data_sets[0]
    if run.method in TURNS:
        return None
    backbone = str(params.value_of(name, "backbone"))
    keys = ("source_tokens",) if backbone in ENCODERS else ("source_tokens", "target_tokens")
    limits = {key: params.value_of(name, key) for key in keys}
    if missing := [key for key in keys if limits[key] is None]:
        raise QuorumError(f"{PARAMS}: data.{data}.{missing[0]}: is missing; add it here or in `scales`")
    size = params.value_of(name, "size")
    above: Above = params.value_of(name, "above") or ("layers" if backbone in ENCODERS else "bottleneck")
    shared: Json = {"task": TASKS[params.data[data].task], "above": above, "device": params.device}
    shared |= {"precision": precision_of(params), "threads": threads_of(params.threads)}
    if backbone in ENCODERS:
        frozen = params.value_of(name, "frozen") or "none"
        depth = ENCODERS[backbone].layers if run.layers is None else len(run.layers)
        if FrozenPart.parse(frozen).layers > depth:
            wrong = f"frozen: {frozen}, but its encoder has {depth} layers"
            raise QuorumError(f"{PARAMS}: runs.{name}: {wrong}; freeze fewer")
        view = View(backbone=backbone, frozen=frozen, layers=run.layers, **limits)
        return Learner(view=view, size=size, **shared)
    usual = params.adapted_layers or PRESETS[backbone].adapted_layers
    layers = run.adapted_layers or usual
    return Learner(
        view=View(backbone=backbone, adapted_layers=layers, **limits),
        size=size or (LORA_RANK if above == "lora" else PRESETS[backbone].bottleneck),
        dropout=run.dropout,
        adapted_positions=run.adapted_positions,
        uncached=layers != usual or run.dropout > 0 or run.adapted_positions == "all",
        **shared,
    )


def algorithm_of(params: Params, name: str) -> tuple[Algorithm, BaseModel]:
    """A run's algorithm, with its hyperparameters; an error where they do not fit."""
    module = listed(ALGORITHMS[params.runs[name].method])
    hyper = params.hyperparameters_of(name, module.Hyperparameters)
    return module.build(hyper), hyper


def train_order(params: Params, name: str) -> TrainOrder:
    """A run's training at its seeds, with only those hyperparameters that its algorithm has, if they fit it."""
    run, task = params.runs[name], TASKS[params.data_of(name).task]
    learner = None if run.method in UNITS else learner_of(params, name)  # a rule's models would be empty
    seeds, kept = params.seeds_of(name), set(params.keep_rounds)
    common: Json = {"setting": run.setting, "seeds": seeds, "keep_rounds": sorted(kept & set(seeds))}
    common |= {"learner": learner, "evaluated": params.evaluated, "left_out": left_out(params, name)}
    if not run.trains or learner is None:
        code = code_of("pipeline.stages.train", task, parts=LEARNED)
        return TrainOrder(code=code, training=None, evaluate=None, **common)
    module, knobs, setting = ALGORITHMS[run.method], params.training_of(name), params.setting_of(run.setting)
    algorithm, hyper = algorithm_of(params, name)
    _check_fits(params, name, algorithm, hyper)
    code = code_of("pipeline.runs.learners", module, task, parts=LEARNED)
    tagged = WORDS if "pipeline.corpora.tagging" in code else ()
    alone = {} if algorithm.communicates else {"clients_per_round": None}
    training = Training(
        code=code,
        packages=packages_of("train", *tagged),
        learner=learner,
        algorithm=module,
        hyperparameters=json.loads(hyper.model_dump_json(by_alias=True)),
        seed=seeds[0],
        joins=dict.fromkeys(run.late, knobs.rounds - params.added_rounds + 1),
        weights=setting.weights if isinstance(setting, Domains) else {},
        learning_rate=_rate_of(params, name, algorithm, hyper),
        **knobs.model_dump() | alone,
    )
    code = code_of("pipeline.stages.train", module, task, parts=LEARNED)
    return TrainOrder(code=code, training=training, evaluate=run.evaluate or algorithm.evaluates, **common)


def _rate_of(params: Params, name: str, algorithm: Algorithm, hyper: BaseModel) -> float:
    """A run's own learning rate, else the file's, else that of its family; a data set's rates before the file's."""
    if algorithm.pooled:
        family = "pooled"
    elif params.training_of(name).client_optimizer == "sgd":
        family = "sgd"
    elif not algorithm.communicates or getattr(hyper, "local_start", None) == "own":
        family = "own"
    else:
        family = params.runs[name].evaluate or algorithm.evaluates
    known = (family, "adamw") if family in ("own", "local", "server") else (family,)
    rates = [getattr(rates, key) for rates in (params.data_of(name).rates, params.rates) for key in known]
    rate = next((rate for rate in (params.value_of(name, "learning_rate"), *rates) if rate), None)
    if rate is None:
        raise QuorumError(f"{PARAMS}: rates.{family}: is missing, and runs.{name} needs it; add it")
    return float(rate)


def _check_fits(params: Params, name: str, algorithm: Algorithm, hyper: BaseModel) -> None:
    """Check that a run's algorithm fits its own knobs, its task, its setting and its optimizer."""
    run, where, task = params.runs[name], f"{PARAMS}: runs.{name}", params.data_of(name).task
    knobs = params.training_of(name)
    if not algorithm.communicates and run.evaluate == "server":
        raise QuorumError(f"{where}.evaluate: server, but {run.method} has no server; correct it")
    if not algorithm.communicates and (run.late or run.knobs.get("clients_per_round")):
        raise QuorumError(f"{where}: late and clients_per_round are of federated methods; remove them")
    if algorithm.marks_words and not writes(load_task(TASKS[task])):
        wrong = f"{run.method} distils at nouns and verbs of what is written, and {task} writes nothing"
        raise QuorumError(f"{where}: {wrong}; choose another method, such as AdaFedSelectKD")
    if algorithm.states and not chooses_units(load_task(TASKS[task])):
        raise QuorumError(f"{where}: {run.method} needs states before a head, which {task} lacks; choose task: extract")
    if algorithm.states and knobs.loss_over != "examples":
        raise QuorumError(f"{where}: {run.method} divides its losses by documents; write loss_over: examples")
    setting = params.settings[run.setting]
    present = min(params.clients_of(name), knobs.clients_per_round or math.inf)
    if (needed := max(algorithm.needs, algorithm.buffer or 1)) > present:
        raise QuorumError(f"{where}: {run.method} needs {needed} clients in a round, and {present} take part; let more")
    rules = knobs.tolerance or STRICT
    if knobs.rounds % algorithm.rounds_a_draw:
        wrong = f"{run.method} has {algorithm.rounds_a_draw} rounds for each draw of clients"
        raise QuorumError(f"{where}.rounds: {knobs.rounds}, but {wrong}; set a multiple of {algorithm.rounds_a_draw}")
    if algorithm.rounds_a_draw > 1 and (rules.minimum or rules.without_quorum == "skip"):
        wrong = f"{run.method} needs all clients of a draw in {algorithm.rounds_a_draw} rounds"
        raise QuorumError(f"{where}: tolerance: {wrong}; remove minimum and without_quorum from it")
    by_client = isinstance(setting, Domains | Iid | Balanced) or (isinstance(setting, Natural) and setting.own)
    all_models = algorithm.evaluates == "local" and params.evaluated == "last" and not writes(load_task(TASKS[task]))
    if (run.evaluate or algorithm.evaluates) == "local" and not (algorithm.pooled or by_client or all_models):
        wrong = f"{run.method} evaluates each client's own model, and setting {run.setting} the server's"
        remedy = "natural clients with own: true, a method with a server, or, without generation, evaluated: last"
        raise QuorumError(f"{where}: {wrong}; choose {remedy}")
    of_steps = (knobs.client_optimizer, knobs.client_schedule, knobs.trunk_rate)
    if getattr(hyper, "option", "I") == "II" and of_steps != ("sgd", "constant", 1.0):
        remedy = "set client_optimizer: sgd, client_schedule: constant and trunk_rate: 1.0"
        raise QuorumError(f"{where}.option: II: divides by the steps' one learning rate; {remedy}")
    if knobs.trunk_rate != 1 and writes(load_task(TASKS[task])):
        raise QuorumError(f"{where}.trunk_rate: is of heads, and {task} trains none; remove it")
    kept = getattr(hyper, "client_optimizer_state", "fresh") == "keep"
    if kept and knobs.client_optimizer == "sgd":
        raise QuorumError(f"{where}.client_optimizer_state: keep: SGD has no moments to keep; remove it")


def batch_of(params: Params, setting: str) -> tuple[int, int] | None:
    """The largest batch and the fewest local epochs of a setting's trainings; None without trainings."""
    users = [name for name in params.runs_of_scale if params.runs[name].setting == setting and params.runs[name].trains]
    knobs = [params.training_of(name) for name in users]
    return (max(one.batch_size for one in knobs), min(one.local_epochs for one in knobs)) if knobs else None


def precision_of(params: Params) -> Precision:
    """The precision of products with frozen weights on this machine; an error where it lacks that of params.yaml."""
    return resolve(params.precision, params.device)


def left_out(params: Params, name: str) -> str | None:
    """Why a run is left out: the scale omits it, or its backbone or rounds do not allow it; None if it is not."""
    run = params.runs[name]
    if name not in params.runs_of_scale:
        return f"is omitted at scale {params.scale}"
    first, rounds = run.knobs.get("kd_from_round"), params.training_of(name).rounds
    if isinstance(first, int) and first > rounds:
        return f"kd_from_round: {first}, but of {rounds} rounds"
    learner = learner_of(params, name)
    if learner is None or learner.view.adapted_layers is None:
        return None
    backbone, layers = learner.view.backbone, learner.view.adapted_layers
    preset = PRESETS[backbone]
    if layers > preset.decoder_layers:
        return f"adapted_layers: {layers}, but {backbone} has {preset.decoder_layers} decoder layers"
    if preset.family == "seq2seq" and run.adapted_positions == "all":
        return f"adapted_positions: all, but the encoder of {backbone} reads the prompt, and has no adapters"
    return None
