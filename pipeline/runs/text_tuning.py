"""Fair tuning of an experiment on labelled texts, by development loss.

Rates of data sets come first, then hyperparameters of their methods at these rates, then rates of single runs at both.

A trial is a run at a seed that no table reports, measured by the development loss after its last round. Grids of rates
widen at their ends. Each trial is a file in git, and the resulting table shows from which values those of params.yaml
were chosen. Test texts are left out before anything is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from pipeline.clients.manifest import Manifest
from pipeline.corpora.prepared import examples_of
from pipeline.errors import QuorumError
from pipeline.plan.code import without_code
from pipeline.plan.grids import beyond
from pipeline.plan.orders import read_order
from pipeline.plan.text_grids import Grid
from pipeline.plan.text_orders import EncodeTextsOrder, TextTraining
from pipeline.plan.text_resolve import task_of, training_on_texts, view_of
from pipeline.plan.texts import TextParams, read_text_params
from pipeline.plan.view import name_of
from pipeline.runs.learning import key_of, train_on_texts
from pipeline.runs.prune import remove_checkpoints
from pipeline.runs.text_encoding import Indexed, encode_texts, index_of
from pipeline.runs.text_groups import draw_federation
from pipeline.runs.training import bind
from pipeline.runs.trials import make_missing, without_tests
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table, write_table

COLUMNS = ("scale", "dataset", "chooses", "run", "knob", "value", "validation_loss", "chosen")
RATE = "learning_rate"
WIDENED = 4
"""How often a grid of rates is widened, at most. Grids of mu are not: below them is FedAvg, which is tried anyway."""

Row = dict[str, Any]


def tune() -> None:
    """Train the missing trials and write reports/tables/tuning.csv, where other scales' rows stay.

    Raises:
        QuorumError: a data set is not encoded, or a value does not fit its knob.
    """
    params = read_text_params()
    rows: list[Row] = []
    known: dict[str, Indexed] = {}
    for dataset, families in params.tune.rates.items():
        for family, (run, values) in _of_this_scale(params, families).items():
            found = _chosen(params, dataset, family, run, RATE, values, known)
            rows += found
            params = with_rate(params, dataset, family, _best(found))
    for dataset, knobs in params.tune.knobs.items():
        for knob, (run, values) in _of_this_scale(params, knobs).items():
            found = _chosen(params, dataset, params.runs[run].method, run, knob, values, known)
            rows += found
            params = with_knob(params, dataset, params.runs[run].method, knob, _best(found))
    for run, values in params.tune.own_rates.items():
        if run in params.runs_of_scale:
            rows += _chosen(params, params.settings[params.runs[run].setting].data, run, run, RATE, values, known)
    before = read_table(layout.TUNING_TABLE) if layout.TUNING_TABLE.is_file() else []
    others = [row for row in before if row["scale"] != params.scale]
    write_table(layout.TUNING_TABLE, [*others, *({"scale": params.scale, **row} for row in rows)], COLUMNS)
    for row in (row for row in rows if row["chosen"]):
        say(f"tune: {row['dataset']}, {row['chooses']}: {row['knob']}={row['value']:g} has the least loss")


def _of_this_scale(params: TextParams, grids: Mapping[Any, Grid]) -> dict[str, Grid]:
    """The grids whose runs belong to this scale."""
    return {name: (run, values) for name, (run, values) in grids.items() if run in params.runs_of_scale}


def _chosen(
    params: TextParams,
    dataset: str,
    chooses: str,
    run: str,
    knob: str,
    values: Sequence[float],
    known: dict[str, Indexed],
) -> list[Row]:
    """One row for each value tried; if the best rate is at an end of its grid, one beyond it is tried, too.

    Args:
        known: a cache of data sets' indices.
    """
    grid = sorted(values)
    losses: dict[float, float] = {}
    for _ in range(WIDENED + 1):
        losses |= _losses(params, dataset, run, knob, [value for value in grid if value not in losses], known)
        more = beyond(grid, min(losses, key=lambda value: losses[value])) if knob.endswith(RATE) else None
        if more is None:
            best = min(losses, key=lambda value: losses[value])
            about = {"dataset": dataset, "chooses": chooses, "run": run, "knob": knob}
            return [
                about
                | {
                    "value": value,
                    "validation_loss": round(losses[value], 5) if math.isfinite(losses[value]) else "",
                    "chosen": int(value == best),
                }
                for value in grid
            ]
        grid = sorted([*grid, more])
    raise QuorumError(f"params.yaml: tune: {run}, {knob}: {WIDENED} times wider, and still the best is at an end")


def _best(rows: Sequence[Row]) -> float:
    return next(float(row["value"]) for row in rows if row["chosen"])


def with_rate(params: TextParams, dataset: str, family: str, rate: float) -> TextParams:
    """Return the parameters with a data set's chosen rate."""
    data = params.datasets[dataset]
    rates = data.rates.model_copy(update={family: rate})
    return params.model_copy(update={"datasets": params.datasets | {dataset: data.model_copy(update={"rates": rates})}})


def with_knob(params: TextParams, dataset: str, method: str, knob: str, value: float) -> TextParams:
    """Return the parameters with a chosen hyperparameter of a data set's runs."""
    data = params.datasets[dataset]
    knobs = data.knobs | {method: data.knobs.get(method, {}) | {knob: value}}
    return params.model_copy(update={"datasets": params.datasets | {dataset: data.model_copy(update={"knobs": knobs})}})


def with_value(params: TextParams, run: str, knob: str, value: float) -> TextParams:
    """Return the parameters with one changed knob of a run."""
    row = params.runs[run]
    changed = type(row).model_validate(row.model_dump(exclude_unset=True) | {knob: value})
    return params.model_copy(update={"runs": params.runs | {run: changed}})


def _losses(
    params: TextParams, dataset: str, run: str, knob: str, values: Sequence[float], known: dict[str, Indexed]
) -> dict[float, float]:
    """Value -> mean development loss; infinite where the training diverged."""
    view = f"{dataset} {name_of(view_of(params, run))}"
    if view not in known:
        known[view] = _encoded(params, dataset, run)
    index, seed = known[view], params.tune.seed
    manifest, texts = _data(params, run, seed)
    trials: dict[Path, Callable[[Path], None]] = {}
    files: dict[float, Path] = {}
    for value in values:
        order = training_on_texts(with_value(params, run, knob, value), run).model_copy(update={"seed": seed})
        knobs = without_code(order.model_dump(mode="json"))
        files[value] = layout.trial(sha256_json([knobs, manifest, texts, index.classes, index.digest]))
        trials[files[value]] = partial(_try, order, manifest, index, {"run": run, "knob": knob, "value": value})
    make_missing(trials)
    found = {value: read_json(path)["losses"] for value, path in files.items()}
    return {value: fmean(losses.values()) if losses else math.inf for value, losses in found.items()}


def _try(order: TextTraining, manifest: Manifest, index: Indexed, about: Mapping[str, Any], file: Path) -> None:
    losses = _trained(order, manifest, index, f"{about['run']}, {about['knob']}={about['value']:g}")
    write_json(file, {**about, "losses": losses})


def _encoded(params: TextParams, dataset: str, run: str) -> Indexed:
    """Encode a run's data set for its model at the seed of tuning, without test texts."""
    view = view_of(params, run)
    planned = read_order(layout.order("encode", dataset), EncodeTextsOrder)
    order = planned.model_copy(update={"views": {name_of(view): view}, "seeds": {name_of(view): [params.tune.seed]}})
    texts = without_tests(examples_of([dataset], load_task(order.task).kind))
    order = order.model_copy(update={"take": order.take.model_copy(update={"test": None})})
    return index_of(encode_texts(order, dataset, texts), view, "")


def _data(params: TextParams, run: str, seed: int) -> tuple[Manifest, str]:
    """Draw the federation without test texts: which client has which texts, and a hash of these."""
    setting = params.runs[run].setting
    name, data = params.settings[setting].data, params.data_of(run)
    take = data.take.model_copy(update={"test": None})
    texts = without_tests(examples_of([name], load_task(task_of(data)).kind))
    one = draw_federation(params.skew_of(setting), take, texts, seed, name)
    return one.manifest, sha256_json({identity: asdict(text) for identity, text in one.used.items()})


def _trained(order: TextTraining, manifest: Manifest, index: Indexed, label: str) -> Mapping[str, float]:
    """Each evaluated client's loss after the last round; empty for a training that diverged."""
    key = key_of(order, manifest, index)
    try:
        finished = train_on_texts(order, manifest, index, key, label, lambda rows: None)
    except QuorumError as error:
        if error.code != "not_finite":
            raise
        say(f"tune: {label}: diverged: {error}")
        remove_checkpoints([layout.checkpoints() / key])
        return {}
    owner = bind(order).evaluates
    found = {row.client: row.known_loss(owner) for row in finished.progress.last}
    remove_checkpoints([layout.checkpoints() / key])
    return {client: loss for client, loss in found.items() if loss is not None}
