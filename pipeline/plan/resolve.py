"""What params.yaml means: one resolved spec a stage and run, holding only what that stage's result depends on."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pipeline.corpora.sources import checksum_file
from pipeline.errors import QuorumError
from pipeline.evaluation.paper_scores import OURS
from pipeline.federated.algorithms.registry import ALGORITHMS, ZEROSHOT
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.presets import PRESETS
from pipeline.plan.code import code_of
from pipeline.plan.orders import (
    AnalyzeSpec,
    BackboneSpec,
    EncodeSpec,
    EvaluateSpec,
    GenerateSpec,
    IngestSpec,
    MainSpec,
    OwnFolder,
    PartitionSpec,
    PrepareSpec,
    ReportSpec,
    RunRow,
    Spec,
    TrainKnobs,
    TrainSpec,
    TrainStageSpec,
    WeightsFolder,
)
from pipeline.plan.schema import Params
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file, sha256_json

TEMPLATES = Path(__file__).parents[1] / "report" / "templates"


def resolve(params: Params) -> dict[str, dict[str, Any]]:
    """Path under data/plan -> spec, for every stage, corpus, group and run.

    Raises:
        QuorumError: hyperparameters do not fit their algorithm, or a run of the main table its backbone or rounds.
    """
    weights = None if params.weights is None else weights_folder(params.weights)
    backbone = BackboneSpec(code=_code("backbone"), backbone=params.backbone, weights=weights)
    for name in params.runs:
        if reason := unfit(params, name):
            raise QuorumError(f"params.yaml: runs.{name}: {reason}; correct it")
    specs: dict[str, Spec] = {"backbone": backbone}
    specs |= _of_corpora(params)
    rows: dict[str, list[RunRow]] = {}
    for group, runs in ((layout.MAIN, params.runs), (layout.MORE, params.more_runs)):
        ids = {layout.run_id(group, name, seed): (name, seed) for name in runs for seed in params.seeds}
        specs |= _of_group(params, group, ids)
        rows[group] = []
        for identity, (name, seed) in ids.items():
            stages = _of_run(params, name, seed)
            specs |= {f"{stage}/{identity}": spec for stage, spec in stages.items()}
            rows[group].append(_row(params, identity, name, seed, stages))
    compared = _distinct_settings(params)
    manifests = [layout.manifest(layout.MORE, name, seed).stem for name in compared for seed in params.seeds]
    specs["analyze"] = _analyze(params, rows[layout.MAIN], manifests)
    specs["main"] = _main(params, rows[layout.MAIN])
    specs["report"] = _report(params, rows[layout.MAIN] + rows[layout.MORE])
    return {f"{name}.json": json.loads(spec.model_dump_json()) for name, spec in specs.items()}


def _of_corpora(params: Params) -> dict[str, Spec]:
    """Each corpus's way from its source to examples; one's own meetings are read with QMSum's."""
    specs: dict[str, Spec] = {}
    for corpus in params.corpora:
        own = {n: _own_folder(client.folder) for n, client in sorted(params.own.items())} if corpus == "qmsum" else {}
        listed = checksum_file(corpus)
        specs[f"ingest/{corpus}"] = IngestSpec(
            code=_code("ingest"),
            data_source=params.data_source,
            checksums=sha256_file(listed) if listed.is_file() else None,
            own=own,
        )
        code = _code("prepare")
        if corpus == "qmsum":
            specs[f"prepare/{corpus}"] = PrepareSpec(code=code, span_end=params.span_end, own=list(own))
        else:
            specs[f"prepare/{corpus}"] = PrepareSpec(code=code, query=params.queries[corpus])
    return specs


def _own_folder(folder: Path) -> OwnFolder:
    here = layout.home() / folder
    files = {str(path.relative_to(here)): sha256_file(path) for path in sorted(here.rglob("*.json"))}
    return OwnFolder(folder=str(folder), meetings=sha256_json(files))


def weights_folder(folder: Path) -> WeightsFolder:
    """A local folder of weights as it is now."""
    here = layout.home() / folder
    found = {path.name: path.stat() for path in sorted(here.iterdir())} if here.is_dir() else {}
    files = {name: [about.st_size, about.st_mtime_ns] for name, about in found.items()}
    return WeightsFolder(folder=str(folder), files=sha256_json(files))


def _of_group(params: Params, group: str, ids: Mapping[str, tuple[str, int]]) -> dict[str, Spec]:
    """What the runs of a group share."""
    settings = sorted({params.all_runs[name].setting for name, _ in ids.values()})
    manifests = {i: layout.manifest(group, params.all_runs[name].setting, seed).stem for i, (name, seed) in ids.items()}
    return {
        f"partition/{group}": PartitionSpec(
            code=_code("partition"),
            settings={name: params.setting_of(name) for name in settings},
            seeds=params.seeds,
        ),
        f"encode/{group}": EncodeSpec(
            code=_code("encode"),
            device=params.device,
            adapted_layers=_layers(params),
            manifests=manifests,
            uncached=[i for i, (name, _) in ids.items() if _is_uncached(params, name)],
            left_out=[i for i, (name, _) in ids.items() if unfit(params, name)],
            limits={manifests[i]: params.limits_of(params.all_runs[name].setting) for i, (name, _) in ids.items()},
        ),
    }


def _of_run(params: Params, name: str, seed: int) -> dict[str, Spec]:
    """A run's own stages."""
    layers = _layers(params)
    knobs = {field.name: getattr(params, field.name) for field in fields(DecodingRule)}
    longer = params.sizes_of(params.all_runs[name].setting).max_tokens
    rule = DecodingRule(**(knobs | ({"max_tokens": longer} if longer else {})))
    return {
        "train": train_spec_of(params, name, seed),
        "generate": GenerateSpec(
            code=_code("generate"),
            device=params.device,
            adapted_layers=layers,
            rule=rule if params.all_runs[name].decode else None,
        ),
        "evaluate": EvaluateSpec(
            code=_code("evaluate"),
            device=params.device,
            adapted_layers=layers if unfit(params, name) else params.all_runs[name].adapted_layers or layers,
            adapted_positions=params.all_runs[name].adapted_positions,
            uncached=_is_uncached(params, name),
            use_stemmer=params.use_stemmer,
        ),
    }


def _row(params: Params, identity: str, name: str, seed: int, stages: Mapping[str, Spec]) -> RunRow:
    """How the tables name a run, and the hash of all that it is."""
    row, train = params.all_runs[name], stages["train"]
    assert isinstance(train, TrainStageSpec)
    return RunRow(
        id=identity,
        name=name,
        seed=seed,
        method=row.method,
        kind=f"{row.method}-local" if row.method == "AdaFedAvg" and row.evaluate == "local" else row.method,
        setting=row.setting,
        spec=sha256_json([json.loads(spec.model_dump_json()) for spec in stages.values()]),
        training=train.training and TrainKnobs(**train.training.model_dump(exclude={"code"})),
        evaluate=train.evaluate,
    )


def _distinct_settings(params: Params) -> list[str]:
    """Settings whose clients can be compared: of several with the same clients and examples, the first."""
    found: dict[str, str] = {}
    for name in sorted({row.setting for row in params.more_runs.values()}):
        setting = params.setting_of(name)
        if len(setting.clients) > 1:
            found.setdefault(sha256_json(asdict(setting)), name)
    return list(found.values())


def _analyze(params: Params, rows: list[RunRow], manifests: list[str]) -> AnalyzeSpec:
    """The main table's selective runs, what their clients and the lone ones do on all tests, and every manifest."""

    def ids(*methods: str) -> list[str]:
        return [row.id for row in rows if row.method in methods and row.evaluate == "local"]

    return AnalyzeSpec(
        code=_code("analyze"),
        device=params.device,
        adapted_layers=_layers(params),
        distilling=ids(OURS),
        crossed=ids("AdaSingle", OURS),
        manifests=manifests,
        topics=params.topics,
        tested=rows[0].id,
        use_stemmer=params.use_stemmer,
    )


def _main(params: Params, rows: list[RunRow]) -> MainSpec:
    return MainSpec(code=_code("main") | _texts("main_page.html.j2", "page.css"), runs=rows, **_common(params))


def _report(params: Params, rows: list[RunRow]) -> ReportSpec:
    return ReportSpec(
        code=_code("report") | _texts("paper_page.html.j2", "page.css"),
        runs=rows,
        corpora=params.corpora,
        studies=params.studies,
        **_common(params),
    )


def _texts(*names: str) -> dict[str, str]:
    """A page's template and style are no modules, and the page depends on them all the same."""
    return {name: sha256_file(TEMPLATES / name) for name in names}


def _common(params: Params) -> dict[str, Any]:
    """What both pages say of the whole."""
    sizes = params.sizes()
    return {
        "scale": params.scale,
        "backbone": params.backbone,
        "span_end": params.span_end,
        "source_tokens": sizes.source_tokens,
        "target_tokens": sizes.target_tokens,
        "train_fraction": sizes.train_fraction,
        "validation_examples": sizes.validation_examples,
        "bootstrap_samples": params.bootstrap_samples,
        "permutation_samples": params.permutation_samples,
    }


def _layers(params: Params) -> int:
    return params.adapted_layers or PRESETS[params.backbone].adapted_layers


def _is_uncached(params: Params, name: str) -> bool:
    """Whether the store cannot serve a run."""
    run = params.all_runs[name]
    other = run.adapted_layers is not None and run.adapted_layers != _layers(params)
    return other or run.dropout > 0 or run.adapted_positions == "all"


def unfit(params: Params, name: str) -> str | None:
    """Why a run cannot be made with this backbone, or in these rounds, if it cannot."""
    preset, layers = PRESETS[params.backbone], params.all_runs[name].adapted_layers or _layers(params)
    first, rounds = (params.all_runs[name].model_extra or {}).get("kd_from_round"), params.training_of(name).rounds
    if isinstance(first, int) and first > (rounds or first):
        return f"kd_from_round: {first}, but of {rounds} rounds"
    if layers > preset.decoder_layers:
        return f"adapted_layers: {layers}, but {params.backbone} has {preset.decoder_layers} decoder layers"
    if preset.family == "seq2seq" and params.all_runs[name].adapted_positions == "all":
        return f"adapted_positions: all, but the encoder of {params.backbone} reads the prompt, and has no adapters"
    return None


def _code(stage: str, *more: str) -> dict[str, str]:
    return code_of(f"pipeline.stages.{stage}", *more)


def train_spec_of(params: Params, name: str, seed: int) -> TrainStageSpec:
    """A run's training spec; what its algorithm does not know is no part of it.

    Raises:
        QuorumError: its hyperparameters do not fit its algorithm.
    """
    row = params.all_runs[name]
    if row.method == ZEROSHOT:
        return TrainStageSpec(training=None, evaluate=None, code=_code("train"))
    module = ALGORITHMS[row.method]
    algorithm = importlib.import_module(module)
    lora = row.adapter == "lora" if row.adapter else params.adapter == "lora"
    hyper = params.hyperparameters_of(name, algorithm.Hyperparameters)
    knobs = params.training_of(name)
    training = TrainSpec(
        code=_code("train", module),
        algorithm=module,
        hyperparameters=json.loads(hyper.model_dump_json(by_alias=True)),
        seed=seed,
        device=params.device,
        adapted_layers=row.adapted_layers or _layers(params),
        uncached=_is_uncached(params, name),
        dropout=row.dropout,
        adapted_positions=row.adapted_positions,
        bottleneck=None if lora else params.bottleneck or PRESETS[params.backbone].bottleneck,
        lora_rank=params.lora_rank if lora else None,
        joins=params.joins_of(name),
        **knobs.model_dump(),
    )
    return TrainStageSpec(training=training, evaluate=row.evaluate or algorithm.build(hyper).evaluates, code={})
