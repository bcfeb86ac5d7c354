"""params.yaml -> one resolved spec a stage and run, so that a change re-runs exactly what depends on it."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pipeline import layout
from pipeline.closure import code_of
from pipeline.errors import QuorumError
from pipeline.federated.registry import ALGORITHMS, ZEROSHOT
from pipeline.files import read_json, sha256_file, sha256_json, write_json
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.presets import PRESETS
from pipeline.params import Params, read_params
from pipeline.progress import say
from pipeline.spec import (
    BackboneSpec,
    EncodeSpec,
    EvaluateSpec,
    GenerateSpec,
    IngestSpec,
    MainSpec,
    PartitionSpec,
    PrepareSpec,
    RunRow,
    Spec,
    TrainSpec,
    TrainStageSpec,
)

TEMPLATE = Path(__file__).parents[1] / "figures" / "report.html.j2"


def run() -> None:
    """Check params.yaml, write `data/plan/`, and say what changed since the last plan."""
    params = read_params()
    specs = resolve(params)
    for path, spec in specs.items():
        write_json(layout.PLAN / path, spec)
    _report_changes(specs)


def resolve(params: Params) -> dict[str, dict[str, Any]]:
    """Path under data/plan -> spec, for every stage and run.

    Raises:
        QuorumError: a run's hyperparameters do not fit its algorithm.
    """
    ids = {layout.run_id(name, seed): (name, seed) for name in params.runs for seed in params.seeds}
    specs: dict[str, Spec] = {**_shared(params, ids)}
    rows = []
    for identity, (name, seed) in ids.items():
        stages = _of_run(params, name, seed)
        specs |= {f"{stage}/{identity}": spec for stage, spec in stages.items()}
        rows.append(_row(params, identity, name, seed, stages))
    specs["main"] = _main(params, rows)
    return {f"{name}.json": json.loads(spec.model_dump_json()) for name, spec in specs.items()}


def _shared(params: Params, ids: Mapping[str, tuple[str, int]]) -> dict[str, Spec]:
    """The stages that all runs share."""
    sizes = params.sizes()
    own = sorted(params.own)
    settings = sorted({row.setting for row in params.runs.values()})
    return {
        "ingest": IngestSpec(
            code=_code("ingest"), data_source=params.data_source, own={n: str(params.own[n].folder) for n in own}
        ),
        "backbone": BackboneSpec(code=_code("backbone"), backbone=params.backbone),
        "prepare": PrepareSpec(code=_code("prepare"), span_end=params.span_end, own=own),
        "partition": PartitionSpec(
            code=_code("partition"),
            settings={name: params.settings[name].model_dump() for name in settings},
            own=own,
            seeds=params.seeds,
            train_fraction=sizes.train_fraction,
            validation_examples=sizes.validation_examples,
        ),
        "encode": EncodeSpec(
            code=_code("encode"),
            device=params.device,
            adapted_layers=_layers(params),
            source_tokens=sizes.source_tokens,
            target_tokens=sizes.target_tokens,
            manifests={i: f"{params.runs[name].setting}-{seed}" for i, (name, seed) in ids.items()},
        ),
    }


def _of_run(params: Params, name: str, seed: int) -> dict[str, Spec]:
    """A run's own stages."""
    layers = _layers(params)
    return {
        "train": _train(params, name, seed),
        "generate": GenerateSpec(
            code=_code("generate"),
            device=params.device,
            adapted_layers=layers,
            rule=DecodingRule(**{field.name: getattr(params, field.name) for field in fields(DecodingRule)}),
        ),
        "evaluate": EvaluateSpec(
            code=_code("evaluate"), device=params.device, adapted_layers=layers, use_stemmer=params.use_stemmer
        ),
    }


def _row(params: Params, identity: str, name: str, seed: int, stages: Mapping[str, Spec]) -> RunRow:
    """How the tables name a run, and the hash of all that it is."""
    row, train = params.runs[name], stages["train"]
    assert isinstance(train, TrainStageSpec)
    knobs = train.training.model_dump(mode="json", exclude={"code"}) if train.training else {}
    return RunRow(
        id=identity,
        name=name,
        seed=seed,
        method=row.method,
        setting=row.setting,
        spec=sha256_json([json.loads(spec.model_dump_json()) for spec in stages.values()]),
        params=knobs | {"evaluate": train.evaluate},
    )


def _main(params: Params, rows: list[RunRow]) -> MainSpec:
    sizes = params.sizes()
    return MainSpec(
        # The page's template is no module, and the page depends on it all the same.
        code=_code("main") | {TEMPLATE.name: sha256_file(TEMPLATE)},
        scale=params.scale,
        backbone=params.backbone,
        span_end=params.span_end,
        source_tokens=sizes.source_tokens,
        target_tokens=sizes.target_tokens,
        train_fraction=sizes.train_fraction,
        validation_examples=sizes.validation_examples,
        tau=params.tau,
        bootstrap_samples=params.bootstrap_samples,
        permutation_samples=params.permutation_samples,
        runs=rows,
    )


def _layers(params: Params) -> int:
    return params.adapted_layers or PRESETS[params.backbone].adapted_layers


def _code(stage: str, *more: str) -> dict[str, str]:
    return code_of(f"pipeline.stages.{stage}", *more)


def _train(params: Params, name: str, seed: int) -> TrainStageSpec:
    """A run's training spec; what its algorithm does not know is no part of it."""
    row = params.runs[name]
    if row.method == ZEROSHOT:
        if row.model_extra:
            raise QuorumError(f"params.yaml: runs.{name}: {ZEROSHOT} trains nothing, so it takes no knobs; remove them")
        return TrainStageSpec(training=None, evaluate=None, code=_code("train"))
    module = ALGORITHMS[row.method]
    algorithm = importlib.import_module(module)
    hyper = params.hyperparameters_of(name, algorithm.Hyperparameters)
    training = TrainSpec(
        code=_code("train", module),
        algorithm=module,
        hyperparameters=json.loads(hyper.model_dump_json(by_alias=True)),
        seed=seed,
        device=params.device,
        adapted_layers=_layers(params),
        bottleneck=params.bottleneck or PRESETS[params.backbone].bottleneck,
        **params.training_of(name).model_dump(),
    )
    return TrainStageSpec(training=training, evaluate=row.evaluate or algorithm.build(hyper).evaluates, code={})


def _report_changes(specs: dict[str, dict[str, Any]]) -> None:
    """Say which stages' specs differ from the last plan's, and how long they took when they last ran."""
    known = layout.work() / "plan.json"
    before = read_json(known) if known.is_file() else {}
    now = {path.removesuffix(".json"): sha256_json(spec) for path, spec in specs.items()}
    changed = [name for name in now if before.get(name) != now[name]]
    write_json(known, now)
    if not changed:
        say("plan: nothing has changed")
        return
    times = [_seconds(name) for name in changed]
    measured = sum(t for t in times if t is not None)
    unknown = sum(t is None for t in times)
    say(f"plan: {len(changed)} of {len(now)} stages have a new spec: {', '.join(changed)}")
    if measured or not unknown:
        more = f", plus {unknown} not yet timed" if unknown else ""
        say(f"plan: when last run here they took {measured / 60:.0f} min{more}; what depends on them runs too")
    else:
        say("plan: none was timed here yet; laptop scale with the embedded backbone takes about 35 min on two cores")


def _seconds(stage: str) -> float | None:
    path = layout.timings() / f"{stage}.json"
    if not path.is_file():
        return None
    # The first run's stage works for all: what one run costs is the mean.
    alike = sorted(path.parent.glob("*.json")) if stage.startswith(("generate/", "evaluate/")) else [path]
    return sum(float(read_json(p)["seconds"]) for p in alike) / len(alike)
