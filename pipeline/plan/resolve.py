"""params.yaml -> one order for each stage, with only what that stage's result depends on."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from pipeline.clients.setting import Iid
from pipeline.clients.skews import Given
from pipeline.corpora.conversation import Conversation
from pipeline.federated.methods import OURS, RULES
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.presets import ENCODERS, PRESETS
from pipeline.plan import orders
from pipeline.plan.code import code_of, code_of_page, made_by, packages_of, without_code
from pipeline.plan.learner import Learner
from pipeline.plan.schema import Params
from pipeline.plan.training import algorithm_of, batch_of, learner_of, left_out, precision_of, train_order
from pipeline.tasks import TASKS
from pipeline.tasks.task import load_task, writes
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file, sha256_json
from pipeline.workspace.record import Json

READ = ("classes", "render", "head_input")  # the members of a task that decide what is stored of an example
PREDICTED = ("classes", "render", "predict", "decide", "initial", "items", "outputs", "head_input")
"""The members of a task that decide what is predicted."""
SHOWN = (
    *("backbone", "source_tokens", "target_tokens", "train_fraction", "validation_examples"),
    *("use_stemmer", "rouge_tokens", "evaluated"),
)
"""The knobs that pages name."""


def resolve(params: Params) -> dict[str, Json]:
    """Path under data/plan -> order, for every stage.

    Raises QuorumError if a run's knobs do not fit its algorithm or its backbone.
    """
    found: dict[str, orders.Order] = {f"backbone/{name}": _backbone(params, name) for name in params.backbones}
    found |= _of_data(params)
    found |= {f"partition/{name}": partition_order(params, name) for name in params.settings}
    found |= {f"encode/{name}": encode_order(params, name) for name in params.settings}
    rows: list[orders.RunRow] = []
    for name in params.runs:
        train = train_order(params, name)
        predict, evaluate = _predict_order(params, name, train), _evaluate_order(params, train)
        # Committed results have fingerprints that are hashes of these orders without what the evaluation's adds.
        content = [json.loads(one.model_dump_json()) for one in (train, predict)]
        content.append(json.loads(evaluate.model_dump_json(exclude={"fingerprints", "learner"})))
        own = _rows(params, name, train, content)
        known = {row.seed: row.fingerprint for row in own}
        found |= {f"train/{name}": train, f"predict/{name}": predict}
        found[f"evaluate/{name}"] = evaluate.model_copy(update={"fingerprints": known})
        rows += own
    found |= {"analyze": _analyze(params, rows), "report": _report(params, rows)}
    return {f"{name}.json": json.loads(order.model_dump_json()) for name, order in found.items()}


def _backbone(params: Params, name: str) -> orders.BackboneOrder:
    used = name in {params.value_of(run, "backbone") for run in params.runs_of_scale}
    reason = None if used else "only runs of another scale use it"
    weights = None if params.weights is None else weights_folder(params.weights)
    return orders.BackboneOrder(**made_by("backbone"), backbone=name, weights=weights, left_out=reason)


def weights_folder(folder: Path) -> orders.WeightsFolder:
    """A local folder of weights, and a hash of its present files."""
    here = layout.home() / folder
    found = {path.name: path.stat() for path in sorted(here.iterdir())} if here.is_dir() else {}
    files = {name: [about.st_size, about.st_mtime_ns] for name, about in found.items()}
    return orders.WeightsFolder(folder=str(folder), files=sha256_json(files))


def _of_data(params: Params) -> dict[str, orders.Order]:
    """The orders of `ingest` for each source, and of `prepare` for each data set."""
    found: dict[str, orders.Order] = {}
    for name, data in params.data.items():
        file: Json = {"file": str(data.file), "contents": _contents(data.file)} if data.file is not None else {}
        meetings = params.own_meetings if data.source == "qmsum" else {}  # users' meetings are read with QMSum's
        own = {client: _own_folder(params, client, folder) for client, folder in meetings.items()}
        ingest, task = made_by("ingest"), TASKS[data.task]
        found[f"ingest/{data.source}"] = orders.IngestOrder(**ingest, data_source=params.data_source, own=own, **file)
        made, options = made_by("prepare", task, parts=("classes",)), data.options(list(own))
        found[f"prepare/{name}"] = orders.PrepareOrder(**made, task=task, source=data.source, options=options, **file)
    return found


def _own_folder(params: Params, client: str, folder: Path) -> orders.OwnFolder:
    roles, query = params.own[client].roles, params.queries_of(client).whole
    return orders.OwnFolder(folder=str(folder), meetings=_hash_of(layout.home() / folder), roles=roles, query=query)


def _hash_of(folder: Path) -> str:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return sha256_json({str(path.relative_to(folder)): sha256_file(path) for path in paths})


def _contents(file: Path) -> str | None:
    """A hash of a user's file or folder in the main workspace; None where there is none."""
    path = layout.workspace_file(file)
    return _hash_of(path) if path.is_dir() else sha256_file(path) if path.is_file() else None


def task_of(params: Params, setting: str) -> str:
    """The module of the task of a setting's data sets."""
    return TASKS[params.data[params.settings[setting].data_sets[0]].task]


def partition_order(params: Params, name: str, seeds: Sequence[int] = ()) -> orders.PartitionOrder:
    """The order of a setting's partition, at its data set's seeds or at others."""
    setting, task = params.settings[name], task_of(params, name)
    data = params.data[setting.data_sets[0]]
    seeds = sorted(seeds or data.seeds or params.seeds)
    given = {layout.at_seed(setting.file, seed) for seed in seeds} if isinstance(setting, Given) else ()
    contents = [_contents(file) for file in sorted(given)]
    return orders.PartitionOrder(
        **made_by("partition", task, parts=()),
        task=task,
        data=setting.data_sets,
        setting=params.setting_of(name),
        contents=None if not contents else contents[0] if len(contents) == 1 else sha256_json(contents),
        take=data.take,
        seeds=seeds,
        folds={seed: fold for seed, fold in params.folds.items() if seed in seeds},
        batch=batch_of(params, name),
    )


def encode_order(params: Params, name: str, runs: Sequence[str] = (), seeds: Sequence[int] = ()) -> orders.EncodeOrder:
    """The order of a setting's encoding for its runs of the scale at their seeds, or for some runs and seeds."""
    task = task_of(params, name)
    used = [run for run in runs or params.runs_of_scale if params.runs[run].setting == name]
    learners = {run: learner for run in used if (learner := learner_of(params, run)) and not left_out(params, run)}
    return orders.EncodeOrder(
        **made_by("encode", task, parts=READ),
        task=task,
        data=params.settings[name].data_sets,
        classes=sorted(params.data[params.settings[name].data_sets[0]].classes),
        readers={run: learner.reader for run, learner in learners.items()},
        seeds={run: list(seeds or params.seeds_of(run)) for run in learners},
        encoding={run: _encoding(learner) for run, learner in learners.items()},
        unread=[] if runs else [run for run, one in params.runs.items() if one.setting == name and run not in learners],
    )


def _encoding(learner: Learner) -> str:
    """A hash of the code and packages on which a stored prefix depends, apart from weights and tokens."""
    if learner.view.backbone in ENCODERS:
        code = code_of("pipeline.model.encoder_loading", "pipeline.tasks.encoded", learner.task, parts=READ)
    else:
        code = code_of(f"pipeline.model.{PRESETS[learner.view.backbone].family}")
    return sha256_json([code, packages_of("encode")])


def _of_run(params: Params, train: orders.TrainOrder) -> Json:
    """What both `predict` and `evaluate` need of a run."""
    own: Json = {"task": task_of(params, train.setting), "data": params.settings[train.setting].data_sets}
    return own | {"left_out": train.left_out, "setting": train.setting, "seeds": train.seeds}


def _predict_order(params: Params, name: str, train: orders.TrainOrder) -> orders.PredictOrder:
    run, task = params.runs[name], task_of(params, train.setting)
    knobs = {field.name: params.value_of(name, field.name) for field in fields(DecodingRule)}
    decodes = run.decode and run.method not in RULES and writes(load_task(task))
    return orders.PredictOrder(
        **made_by("predict", task, parts=PREDICTED),
        learner=learner_of(params, name),
        rule=DecodingRule(**knobs) if decodes else None,
        decode=run.decode,
        turns=RULES.get(run.method),
        **_of_run(params, train),
    )


def _evaluate_order(params: Params, train: orders.TrainOrder) -> orders.EvaluateOrder:
    scored = made_by("evaluate", task_of(params, train.setting), parts=("metrics", "score", "places"))
    how: Json = {"use_stemmer": params.use_stemmer, "rouge_tokens": params.rouge_tokens}
    return orders.EvaluateOrder(**scored, **how, learner=train.learner, fingerprints={}, **_of_run(params, train))


def _rows(params: Params, name: str, train: orders.TrainOrder, content: list[Json]) -> list[orders.RunRow]:
    """A run at each of its seeds, as tables name it, with the hash of its orders' contents."""
    run = params.runs[name]
    clients = run.evaluate == "local" and algorithm_of(params, name)[0].evaluates == "server"
    drawn = [params.setting_of(run.setting).model_dump(mode="json"), params.data_of(name).take.model_dump(mode="json")]
    rows = []
    for seed in train.seeds:
        training = train.at(seed)
        knobs = training and training.model_copy(update={"code": {}, "packages": {}})
        known = [without_code(order | {"seeds": [seed]}) for order in content]
        rows.append(
            orders.RunRow(
                id=layout.run_id(name, seed),
                name=name,
                seed=seed,
                method=run.method,
                part=f"{run.method}-local" if clients else run.method,
                setting=run.setting,
                data=params.settings[run.setting].data_sets,
                learner=train.learner,
                fingerprint=sha256_json([known, *drawn, params.folds.get(seed, "official"), seed]),
                training=knobs,
                patience=int(run.knobs.get("patience", params.patience)),
                evaluate=train.evaluate,
                left_out=train.left_out,
            )
        )
    return rows


def _analyze(params: Params, rows: Sequence[orders.RunRow]) -> orders.AnalyzeOrder:
    """The selective runs in the first section's settings, those whose adapters are crossed, and every partition."""
    first = next(iter(params.sections.values()), [])

    def ids(*methods: str) -> list[str]:
        return [row.id for row in rows if row.name in first and row.method in methods and row.evaluate == "local"]

    meetings = [name for name in params.settings if load_task(task_of(params, name)).kind is Conversation]
    data = dict.fromkeys(one for name in meetings for one in params.settings[name].data_sets)
    return orders.AnalyzeOrder(
        **made_by("analyze", "pipeline.tasks.summarize", parts=("render", "metrics", "score")),
        task=TASKS["summarize"],
        data=list(data),
        settings={name: partition_order(params, name).seeds for name in params.settings},
        distilling=ids(OURS),
        crossed=ids("AdaSingle", OURS),
        partitions=[f"{name}/{seed}" for name in _distinct(params, meetings) for seed in params.seeds],
        topics=params.topics,
        sign_flips=params.sign_flips,
    )


def _distinct(params: Params, names: Sequence[str]) -> list[str]:
    """Settings with several clients and with runs; of those with the same clients and examples, the first."""
    used = {params.runs[run].setting for run in params.runs_of_scale}
    found: dict[str, str] = {}
    for name in sorted(set(names) & used):
        setting = params.setting_of(name)
        clients = setting.of if isinstance(setting, Iid) else getattr(setting, "clients", [])
        if len(clients) > 1:
            found.setdefault(setting.model_dump_json(), name)
    return list(found.values())


def _report(params: Params, rows: Sequence[orders.RunRow]) -> orders.ReportOrder:
    ends = [data.span_end for data in params.data.values() if data.source == "qmsum"]
    knobs = {knob: getattr(params, knob) for knob in SHOWN} | ({"span_end": ends[0]} if ends else {})
    tasks = {name: TASKS[data.task] for name, data in params.data.items()}
    backbones = [row.learner.view.backbone for row in rows if row.learner is not None]
    return orders.ReportOrder(
        code=code_of_page(params.page, sorted(set(tasks.values()))),
        packages=packages_of("report"),
        page=params.page,
        scale=params.scale,
        precision=precision_of(params),
        sign_flips=params.sign_flips,
        paper=params.paper,
        data=tasks,
        published=[name for name, data in params.data.items() if data.file is None],
        settings={name: params.setting_of(name) for name in params.settings},
        knobs=knobs,
        runs=list(rows),
        sections=params.sections,
        backbone=backbones[0] if backbones else str(params.value_of(rows[0].name, "backbone")),
    )
