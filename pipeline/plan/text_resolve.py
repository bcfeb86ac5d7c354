"""The params.yaml of an experiment on labelled texts -> one order for each stage."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pipeline.corpora.options import Options
from pipeline.corpora.sources import checksum_file
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import ZEROSHOT
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.precision import Precision, resolve, threads_of
from pipeline.model.presets import ENCODERS, PRESETS
from pipeline.plan.code import code_of
from pipeline.plan.federations import GivenOn, NaturalOn
from pipeline.plan.orders import BackboneOrder, IngestOrder, Order, PrepareOrder
from pipeline.plan.packages import packages_of
from pipeline.plan.text_datasets import Dataset
from pipeline.plan.text_orders import (
    EncodeTextsOrder,
    FederateOrder,
    TextEvaluateOrder,
    TextKnobs,
    TextPageOrder,
    TextRow,
    TextTraining,
    TextTrainOrder,
)
from pipeline.plan.text_pages import code_of_page, tables_of
from pipeline.plan.texts import TextParams
from pipeline.plan.view import View, name_of
from pipeline.tasks import TASKS
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file, sha256_json

PLAIN = "pipeline.federated.algorithms.fedavg"
"""The algorithm whose knobs an untrained run has; none of them is used."""
READING, LOADING = "pipeline.runs.text_reading", "pipeline.model.encoder_loading"
READ = ("classes", "render", "head_input")
"""The members of a task that decide what is stored of a text."""
LEARNED = (*READ, "initial", "items", "outputs")
"""The members of a task that decide what is learned, so not those that predict or score."""


def resolve_texts(params: TextParams) -> dict[str, dict[str, Any]]:
    """Path under data/plan -> order.

    Raises:
        QuorumError: a run's knobs do not fit its algorithm or its backbone.
    """
    precision = resolve(params.precision, params.device)
    orders: dict[str, Order] = {}
    for name, data in params.datasets.items():
        orders |= _of_data(params, name, data, precision)
    used = {view_of(params, name).backbone for name in params.runs_of_scale}
    for backbone in params.backbones:
        code, wanted = code_of("pipeline.stages.text_backbone"), backbone if backbone in used else ""
        orders[f"backbone/{backbone}"] = BackboneOrder(
            code=code, packages=packages_of("backbone"), backbone=wanted, weights=None
        )
    for name, setting in params.settings.items():
        data = params.datasets[setting.data]
        orders[f"federate/{name}"] = FederateOrder(
            code=code_of("pipeline.stages.federate"),
            packages=packages_of("federate"),
            dataset=setting.data,
            task=task_of(data),
            skew=params.skew_of(name),
            contents=_partitions(setting, data.seeds or params.seeds) if isinstance(setting, GivenOn) else None,
            take=data.take,
            seeds=data.seeds or params.seeds,
        )
    rows = []
    for name in params.runs:
        own = _of_run(params, name)
        orders |= {f"{stage}/{name}": order for stage, order in own.items()}
        if name in params.runs_of_scale:
            rows.append(_row(params, name, own))
    orders["page"] = TextPageOrder(
        code=code_of_page(params.page),
        packages=packages_of("main"),
        scale=params.scale,
        precision=precision,
        sign_flips=params.sign_flips,
        datasets={name: task_of(data) for name, data in params.datasets.items()},
        published=[name for name, data in params.datasets.items() if data.published],
        settings={name: params.skew_of(name) for name in params.settings},
        runs=rows,
        tables=tables_of(params),
    )
    return {f"{name}.json": json.loads(order.model_dump_json()) for name, order in orders.items()}


def task_of(data: Dataset) -> str:
    """The module of a data set's task."""
    return TASKS[data.task]


def view_of(params: TextParams, name: str) -> View:
    """How a run's model reads its data set.

    Raises:
        QuorumError: it is cut where its backbone cannot be.
    """
    run, data = params.runs[name], params.data_of(name)
    backbone, frozen = run.backbone or data.backbone, run.frozen or data.frozen
    if not data.writes:
        cut = FrozenPart.parse(frozen)
        depth = ENCODERS[backbone].layers if run.layers is None else len(run.layers)
        if cut.layers > depth:
            where = f"datasets.{params.settings[run.setting].data}" if run.frozen is None else f"runs.{name}"
            has = f"run {name} has {depth} layers"
            raise QuorumError(f"params.yaml: {where}.frozen: {frozen}: {has}; freeze fewer, in it or in the run")
    return View(
        backbone=backbone,
        frozen=frozen,
        layers=run.layers,
        tokens=data.tokens,
        target_tokens=data.target_tokens,
    )


def _contents(file: Path) -> str | None:
    """A hash of a user's file in the main workspace; None where there is none."""
    path = layout.workspace_file(file)
    return sha256_file(path) if path.is_file() else None


def _partitions(setting: GivenOn, seeds: Sequence[int]) -> str | None:
    """A hash of a partition's file; where there is one a seed, of all."""
    contents = [_contents(file) for file in dict.fromkeys(layout.at_seed(setting.file, seed) for seed in seeds)]
    return contents[0] if len(contents) == 1 else sha256_json(contents)


def _of_data(params: TextParams, name: str, data: Dataset, precision: Precision) -> dict[str, Order]:
    runs = [run for run in params.runs_of_scale if params.settings[params.runs[run].setting].data == name]
    views = {name_of(view): view for view in (view_of(params, run) for run in runs)}
    seeds: dict[str, set[int]] = {}
    for run in runs:
        seeds.setdefault(name_of(view_of(params, run)), set()).update(params.seeds_of(run))
    task = task_of(data)
    family = "pipeline.model.encoder" if not data.writes else f"pipeline.model.{PRESETS[data.backbone].family}"
    orders: dict[str, Order] = {
        f"prepare/{name}": PrepareOrder(
            code=code_of("pipeline.stages.prepare", task, parts=("classes",)),
            task=task,
            source=data.published,
            file=None if data.file is None else str(data.file),
            contents=None if data.file is None else _contents(data.file),
            options=Options(headers=data.headers),
        ),
        f"encode/{name}": EncodeTextsOrder(
            code=code_of("pipeline.stages.encode_texts", task, parts=READ),
            packages=packages_of("encode"),
            task=task,
            views=views,
            take=data.take,
            seeds={view: sorted(own) for view, own in seeds.items()},
            device=params.device,
            precision=precision,
            threads=threads_of(params.threads),
            encoding=sha256_json([code_of(READING, family, LOADING, task, parts=READ), packages_of("encode")]),
        ),
    }
    if data.published is not None:
        listed = checksum_file(data.published)
        orders[f"ingest/{data.published}"] = IngestOrder(
            code=code_of("pipeline.stages.ingest"),
            data_source=params.data_source,
            checksums=sha256_file(listed) if listed.is_file() else None,
            own={},
        )
    return orders


def _of_run(params: TextParams, name: str) -> dict[str, Order]:
    run, data = params.runs[name], params.data_of(name)
    training = training_on_texts(params, name)
    seeds, task = params.seeds_of(name), task_of(data)
    rule = DecodingRule(no_repeat_ngram=3, max_tokens=data.max_tokens) if data.writes else None
    return {
        "train": TextTrainOrder(
            code=code_of("pipeline.stages.train_texts"),
            dataset=params.settings[run.setting].data,
            setting=run.setting,
            seeds=seeds,
            training=training,
            untrained=run.method == ZEROSHOT,
            left_out=name not in params.runs_of_scale,
        ),
        "evaluate": TextEvaluateOrder(
            code=code_of("pipeline.stages.evaluate_texts", task),
            packages=packages_of("evaluate"),
            dataset=params.settings[run.setting].data,
            setting=run.setting,
            seeds=seeds,
            learner=training.learner,
            rule=rule,
            left_out=name not in params.runs_of_scale,
        ),
    }


def training_on_texts(params: TextParams, name: str) -> TextTraining:
    """A run's training, at its first seed.

    Raises:
        QuorumError: its knobs do not fit its algorithm or its backbone.
    """
    run, data, view = params.runs[name], params.data_of(name), view_of(params, name)
    module = PLAIN if run.method == ZEROSHOT else ALGORITHMS[run.method]
    algorithm = importlib.import_module(module)
    hyper = params.hyperparameters_of(name, algorithm.Hyperparameters)
    bound = algorithm.build(hyper)
    knobs = params.training_of(name)
    _check_fits(params, name, bound, hyper)
    if not bound.communicates:
        knobs = knobs.model_copy(update={"clients_per_round": None})
    family = "pooled" if bound.pooled else knobs.client_optimizer
    task = task_of(data)
    return TextTraining(
        code=code_of("pipeline.runs.learning", module, task, parts=LEARNED),
        packages=packages_of("train"),
        task=task,
        view=view,
        above="bottleneck" if data.writes else run.above,
        size=PRESETS[view.backbone].bottleneck if data.writes else run.size,
        algorithm=module,
        hyperparameters=json.loads(hyper.model_dump_json(by_alias=True)),
        seed=params.seeds_of(name)[0],
        device=params.device,
        precision=resolve(params.precision, params.device),
        threads=threads_of(params.threads),
        learning_rate=run.learning_rate or getattr(data.rates, family),
        **knobs.model_dump(),
    )


def _check_fits(params: TextParams, name: str, bound: Algorithm, hyper: BaseModel) -> None:
    """Check that a run's algorithm fits its data set, its setting and its optimizer.

    Raises:
        QuorumError: the method evaluates clients' own models and the setting evaluates the server's, it marks words of
            a task that writes none, or it saves the moments of SGD, which has none.
    """
    run, where = params.runs[name], f"params.yaml: runs.{name}"
    if bound.marks_words and not params.data_of(name).writes:
        raise QuorumError(
            f"{where}: {run.method} distils at nouns and verbs of what is written, and a {params.data_of(name).task} "
            "writes nothing; choose another method, such as AdaFedSelectKD"
        )
    skew = params.settings[run.setting]
    by_client = isinstance(skew, NaturalOn) and skew.own
    if bound.evaluates == "local" and not bound.pooled and not by_client:
        raise QuorumError(
            f"{where}: {run.method} evaluates each client's own model, and setting {run.setting} the server's; "
            "choose natural clients with own: true, or a method whose server has a model"
        )
    keeps_state = getattr(hyper, "client_optimizer_state", "fresh") == "keep"
    if keeps_state and params.training_of(name).client_optimizer == "sgd":
        raise QuorumError(f"{where}.client_optimizer_state: keep: SGD has no moments to keep; remove it")


def _row(params: TextParams, name: str, orders: dict[str, Order]) -> TextRow:
    run, train = params.runs[name], orders["train"]
    assert isinstance(train, TextTrainOrder)
    return TextRow(
        name=name,
        dataset=train.dataset,
        setting=run.setting,
        method=run.method,
        seeds=train.seeds,
        training=TextKnobs(**train.training.model_dump(exclude={"code", "packages"})),
        untrained=train.untrained,
        orders=sha256_json([json.loads(order.model_dump_json()) for order in orders.values()]),
    )
