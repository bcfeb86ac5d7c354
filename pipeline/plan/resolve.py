"""params.yaml -> one order for each stage and run, with only what that stage's result depends on."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pipeline.corpora.options import Options
from pipeline.corpora.sources import checksum_file
from pipeline.errors import QuorumError
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.methods import OURS, TURNS
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.precision import threads_of
from pipeline.model.presets import PRESETS
from pipeline.plan.code import code_of, without_code
from pipeline.plan.orders import (
    AnalyzeOrder,
    BackboneOrder,
    EncodeOrder,
    EvaluateOrder,
    GenerateOrder,
    IngestOrder,
    MainOrder,
    Order,
    OwnFolder,
    PartitionOrder,
    PrepareOrder,
    ReportOrder,
    RunRow,
    TrainingKnobs,
    TrainOrder,
    WeightsFolder,
)
from pipeline.plan.packages import packages_of
from pipeline.plan.schema import OwnClient, Params
from pipeline.plan.training import batches_of, is_uncached, layers_of, precision_of, training_order, unfit
from pipeline.tasks import TASKS
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file, sha256_json

TEMPLATES = Path(__file__).parents[1] / "report" / "templates"
PAPER = "../paper.yaml"

Ids = Mapping[str, tuple[str, int]]
"""Run id -> (run, seed)."""


def resolve(params: Params) -> dict[str, dict[str, Any]]:
    """Path under data/plan -> order, for every stage, corpus, group and run.

    Raises:
        QuorumError: hyperparameters do not fit their algorithm, or a run of the main table its backbone or rounds.
    """
    for name in params.runs:
        if reason := unfit(params, name):
            raise QuorumError(f"params.yaml: runs.{name}: {reason}; correct it")
    orders: dict[str, Order] = {"backbone": _backbone(params)}
    orders |= _of_corpora(params)
    rows: dict[str, list[RunRow]] = {}
    for group, runs in ((layout.MAIN, params.runs), (layout.MORE, params.more_runs)):
        rows[group] = []
        ids = {layout.run_id(group, name, seed): (name, seed) for name in runs for seed in params.seeds}
        if runs or group == layout.MORE:
            orders |= of_group(params, group, ids)
        for identity, (name, seed) in ids.items():
            stages = _of_run(params, name, seed)
            orders |= {f"{stage}/{identity}": order for stage, order in stages.items()}
            rows[group].append(_row(params, identity, name, seed, stages))
    if rows[layout.MAIN]:
        orders |= {"analyze": _analyze(params, rows[layout.MAIN]), "main": _main(params, rows[layout.MAIN])}
    orders["report"] = ReportOrder(
        code=_code("report", TASKS[params.task], parts=("metrics", "score")) | _texts("paper_page.html.j2", PAPER),
        packages=packages_of("report"),
        runs=rows[layout.MAIN] + rows[layout.MORE],
        corpora=params.corpora,
        studies=params.studies,
        **_common(params),
    )
    return {f"{name}.json": json.loads(order.model_dump_json()) for name, order in orders.items()}


def _backbone(params: Params) -> BackboneOrder:
    weights = None if params.weights is None else weights_folder(params.weights)
    packages = packages_of("backbone")
    return BackboneOrder(code=_code("backbone"), packages=packages, backbone=params.backbone, weights=weights)


def _of_corpora(params: Params) -> dict[str, Order]:
    """The orders of `ingest` and `prepare` for each corpus; users' meetings are read with QMSum's."""
    orders: dict[str, Order] = {}
    for corpus in params.corpora:
        own = {n: _own_folder(client) for n, client in sorted(params.own.items())} if corpus == "qmsum" else {}
        listed = checksum_file(corpus)
        orders[f"ingest/{corpus}"] = IngestOrder(
            code=_code("ingest"),
            data_source=params.data_source,
            checksums=sha256_file(listed) if listed.is_file() else None,
            own=own,
        )
        is_queried = corpus == "qmsum"
        orders[f"prepare/{corpus}"] = PrepareOrder(
            code=_code("prepare", TASKS[params.task], parts=("classes",)),
            task=TASKS[params.task],
            source=corpus,
            options=Options(span_end=params.span_end, own=list(own))
            if is_queried
            else Options(query=params.queries[corpus]),
        )
    return orders


def _own_folder(client: OwnClient) -> OwnFolder:
    here = layout.home() / client.folder
    files = {str(path.relative_to(here)): sha256_file(path) for path in sorted(here.rglob("*")) if path.is_file()}
    return OwnFolder(folder=str(client.folder), meetings=sha256_json(files), roles=client.roles)


def weights_folder(folder: Path) -> WeightsFolder:
    """A local folder of weights, and a hash of its present files."""
    here = layout.home() / folder
    found = {path.name: path.stat() for path in sorted(here.iterdir())} if here.is_dir() else {}
    files = {name: [about.st_size, about.st_mtime_ns] for name, about in found.items()}
    return WeightsFolder(folder=str(folder), files=sha256_json(files))


def of_group(params: Params, group: str, ids: Ids) -> dict[str, Order]:
    """The orders of `partition` and `encode` for a group of runs.

    Args:
        ids: run id -> (run, seed).
    """
    settings = sorted({params.all_runs[name].setting for name, _ in ids.values()})
    manifests = {i: layout.manifest(group, params.all_runs[name].setting, seed).stem for i, (name, seed) in ids.items()}
    return {
        f"partition/{group}": PartitionOrder(
            code=_code("partition"),
            task=TASKS[params.task],
            corpora=corpora_of(params, group),
            settings={name: params.setting_of(name) for name in settings},
            seeds=sorted({seed for _, seed in ids.values()}),
            folds=params.folds,
            batches=batches_of(params, {name for name, _ in ids.values()}),
        ),
        f"encode/{group}": EncodeOrder(
            code=_code("encode", TASKS[params.task], parts=("render",)),
            packages=packages_of("encode"),
            task=TASKS[params.task],
            corpora=corpora_of(params, group),
            encoding=_encoding(params),
            device=params.device,
            precision=precision_of(params),
            threads=threads_of(params.threads),
            adapted_layers=layers_of(params),
            manifests=manifests,
            uncached=[i for i, (name, _) in ids.items() if is_uncached(params, name)],
            left_out=[i for i, (name, seed) in ids.items() if unfit(params, name) or not params.has_seed(name, seed)],
            limits={manifests[i]: params.limits_of(params.all_runs[name].setting) for i, (name, _) in ids.items()},
        ),
    }


def corpora_of(params: Params, group: str) -> list[str]:
    """The corpora of a group's settings: for the main table and tuning QMSum alone (with the users' meetings)."""
    return ["qmsum"] if group in (layout.MAIN, layout.TUNE) else params.corpora


def _encoding(params: Params) -> str:
    """A hash of what stored prefixes depend on, apart from weights and tokens: the family's code and packages."""
    family = f"pipeline.model.{PRESETS[params.backbone].family}"
    return sha256_json([code_of(family), packages_of("encode")])


def _of_run(params: Params, name: str, seed: int) -> dict[str, Order]:
    """A run's own stages."""
    run, layers = params.all_runs[name], layers_of(params)
    lora = ("peft",) if params.is_lora(name) else ()
    knobs = {field.name: getattr(params, field.name) for field in fields(DecodingRule)}
    longer = params.settings[run.setting].max_tokens
    rule = DecodingRule(**(knobs | ({"max_tokens": longer} if longer else {})))
    return {
        "train": training_order(params, name, seed),
        "generate": GenerateOrder(
            code=_code("generate", TASKS[params.task], parts=("predict",)),
            packages=packages_of("generate", *lora),
            task=TASKS[params.task],
            corpora=corpora_of(params, layout.MAIN if name in params.runs else layout.MORE),
            device=params.device,
            precision=precision_of(params),
            threads=threads_of(params.threads),
            adapted_layers=layers,
            rule=rule if run.decode else None,
            turns=TURNS.get(run.method),
        ),
        "evaluate": EvaluateOrder(
            code=_code("evaluate", TASKS[params.task], parts=("head", "score")),
            packages=packages_of("evaluate", *lora),
            task=TASKS[params.task],
            device=params.device,
            precision=precision_of(params),
            threads=threads_of(params.threads),
            adapted_layers=layers if unfit(params, name) else run.adapted_layers or layers,
            adapted_positions=run.adapted_positions,
            uncached=is_uncached(params, name),
            use_stemmer=params.use_stemmer,
            turns=run.method in TURNS,
        ),
    }


def _row(params: Params, identity: str, name: str, seed: int, stages: Mapping[str, Order]) -> RunRow:
    """A run at a seed, as tables name it, with the hashes of its orders."""
    run, train = params.all_runs[name], stages["train"]
    assert isinstance(train, TrainOrder)
    knobs = train.training and TrainingKnobs(**train.training.model_dump(exclude={"code", "packages"}))
    orders = [json.loads(order.model_dump_json()) for order in stages.values()]
    return RunRow(
        id=identity,
        name=name,
        seed=seed,
        method=run.method,
        part=f"{run.method}-local" if run.evaluate == "local" and _is_servers(params, name) else run.method,
        setting=run.setting,
        orders=sha256_json(orders),
        fingerprint=sha256_json([[without_code(order) for order in orders], *_data_of(params, name, seed)]),
        training=knobs,
        patience=int(run.knobs.get("patience", params.patience)),
        evaluate=train.evaluate,
    )


def _data_of(params: Params, name: str, seed: int) -> list[Any]:
    """Everything that decides a run's clients, examples and tokens."""
    setting = params.all_runs[name].setting
    drawn = params.setting_of(setting).model_dump(mode="json")
    return [setting, drawn, list(params.limits_of(setting)), params.folds.get(seed, "official"), seed, params.backbone]


def _is_servers(params: Params, name: str) -> bool:
    """Whether a run's method evaluates the server's model by default."""
    algorithm = importlib.import_module(ALGORITHMS[params.all_runs[name].method])
    return bool(algorithm.build(params.hyperparameters_of(name, algorithm.Hyperparameters)).evaluates == "server")


def _distinct_settings(params: Params) -> list[str]:
    """Settings with several clients; of those with the same clients and examples, the first."""
    found: dict[str, str] = {}
    for name in sorted({run.setting for run in params.more_runs.values()}):
        setting = params.setting_of(name)
        if len(setting.clients) > 1:
            found.setdefault(setting.model_dump_json(), name)
    return list(found.values())


def _analyze(params: Params, rows: list[RunRow]) -> AnalyzeOrder:
    """The order of `analyze`: the main table's selective runs, adapters on all clients' tests, and every manifest."""

    def ids(*methods: str) -> list[str]:
        return [row.id for row in rows if row.method in methods and row.evaluate == "local"]

    compared = _distinct_settings(params)
    return AnalyzeOrder(
        code=_code("analyze", TASKS[params.task], parts=("head",)),
        packages=packages_of("analyze"),
        task=TASKS[params.task],
        corpora=params.corpora,
        device=params.device,
        precision=precision_of(params),
        threads=threads_of(params.threads),
        adapted_layers=layers_of(params),
        distilling=ids(OURS),
        crossed=ids("AdaSingle", OURS),
        manifests=[layout.manifest(layout.MORE, name, seed).stem for name in compared for seed in params.seeds],
        topics=params.topics,
    )


def _main(params: Params, rows: list[RunRow]) -> MainOrder:
    pages = _texts("main_page.html.j2", "examples_page.html.j2")
    code = _code("main", "pipeline.stages.words", "pipeline.stages.examples", TASKS[params.task], parts=("metrics",))
    return MainOrder(code=code | pages, packages=packages_of("main"), runs=rows, **_common(params))


def _texts(*names: str) -> dict[str, str]:
    """Hashes of the templates and the style behind a page, which `code_of` does not find."""
    return {name: sha256_file(TEMPLATES / name) for name in (*names, "base.html.j2", "pieces.html.j2", "page.css")}


def _common(params: Params) -> dict[str, Any]:
    """The knobs that both pages show."""
    shown = ("scale", "backbone", "span_end", "source_tokens", "target_tokens", "train_fraction", "validation_examples")
    knobs = {knob: getattr(params, knob) for knob in (*shown, "use_stemmer", "sign_flips")}
    return knobs | {"task": TASKS[params.task], "precision": precision_of(params)}


def _code(stage: str, *more: str, parts: tuple[str, ...] | None = None) -> dict[str, str]:
    return code_of(f"pipeline.stages.{stage}", *more, parts=parts)
