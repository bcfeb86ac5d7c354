"""The scores and histories of planned runs, read and put into figures with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import yaml

from pipeline.evaluation.scores import MEAN, Scored, intervals_of, over_seeds
from pipeline.federated.history import Round, read_history
from pipeline.federated.objectives.threshold import quantile_of
from pipeline.plan.orders import EncodeSpec, ReportSpec, RunRow, read_spec
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import progress, say
from pipeline.workspace.tables import read_table

SIZES = ("rounds", "seed", "device", "hyperparameters", "joins")
"""What a scale, a machine or a seed decides of a training, and what says nothing on its own."""
REMEDY_FULL = "run `make repro-full`"

Metrics = dict[str, dict[str, dict[str, Any]]]
"""run -> client -> figures."""


@dataclass(frozen=True)
class Results:
    """By run: its rows (one a seed), its examples' scores, its figures over seeds and of each seed, its history."""

    rows: dict[str, list[RunRow]]
    scored: dict[str, list[Scored]]
    metrics: Metrics
    by_seed: dict[int, Metrics]
    histories: dict[str, list[Round]]


def read_results(rows: Sequence[RunRow], samples: int, label: str) -> Results:
    """Everything that tables and figures are made from; intervals from `samples` resamples of meetings.

    Raises:
        QuorumError: a run's scores or history are missing.
    """
    files = {row.id: read_json(layout.scores(row.id)) for row in rows}
    by_name: dict[str, list[RunRow]] = {}
    for row in rows:
        if files[row.id]["examples"]:  # else it was left out
            by_name.setdefault(row.name, []).append(row)
    scored = {name: over_seeds([files[r.id]["examples"] for r in own]) for name, own in by_name.items()}
    metrics: Metrics = {}
    with progress(f"{label}: intervals", len(by_name)) as advance:
        for name, own in by_name.items():
            metrics[name] = intervals_of(scored[name], samples)
            add_other_losses(metrics[name], [files[row.id]["clients"] for row in own])
            advance(1)
    return Results(
        rows=by_name,
        scored=scored,
        metrics=metrics,
        by_seed=_by_seed(by_name, files, metrics, samples),
        histories={
            name: [one for row in own for one in read_history(row.id, row.seed)] for name, own in by_name.items()
        },
    )


def _by_seed(
    by_name: Mapping[str, Sequence[RunRow]], files: Mapping[str, Any], metrics: Metrics, samples: int
) -> dict[int, Metrics]:
    seeds = sorted({row.seed for rows in by_name.values() for row in rows})
    if len(seeds) == 1:
        return {seeds[0]: metrics}
    found: dict[int, Metrics] = {}
    for seed in seeds:
        found[seed] = {}
        for name, rows in by_name.items():
            own = next(files[row.id] for row in rows if row.seed == seed)
            found[seed][name] = intervals_of(over_seeds([own["examples"]]), samples)
            add_other_losses(found[seed][name], [own["clients"]])
    return found


def add_other_losses(figures: dict[str, dict[str, Any]], seeds: Sequence[Mapping[str, Mapping[str, Any]]]) -> None:
    """Test loss of the last round's model, and of the server's or the client's own where the row is about the other."""
    for client, own in figures.items():
        for other in ("last_loss", "local_loss", "server_loss"):
            found = [clients[client][other] for clients in seeds if other in clients.get(client, ())]
            if len(found) == len(seeds):
                own[other] = round(sum(found) / len(found), 4)


@dataclass(frozen=True)
class Full:
    """What was kept of the main table on all of QMSum: by run, examples' scores and history; Fig. 11's shares."""

    scored: dict[str, list[Scored]]
    histories: dict[str, list[Round]]
    shares: list[dict[str, str]]
    backbone: str = ""
    seeds: tuple[int, ...] = ()

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.seeds))
        return f"on all of QMSum ({self.backbone}, seed{'s' if len(self.seeds) > 1 else ''} {numbers})"


def read_full(spec: ReportSpec) -> Full:
    """Empty, if `make repro-full` left nothing, or had another backbone or other knobs than its scale's sizes."""
    known = layout.FULL / layout.PARAMS
    made_with = yaml.safe_load(known.read_text(encoding="utf-8")) or {} if known.is_file() else {}
    others = _other_knobs(made_with, spec)
    if others:
        say(f"report: {layout.FULL} was made with another {', '.join(others)}, and is left out; {REMEDY_FULL}")
    if others or not made_with:
        return Full({}, {}, [])
    files: dict[str, list[Any]] = {}
    for path in sorted(layout.full_scores().glob("*.json")):
        files.setdefault(path.stem.rpartition("-")[0], []).append(read_json(path, REMEDY_FULL)["examples"])
    histories: dict[str, list[Round]] = {name: [] for name in files}
    for line in read_table(layout.FULL / layout.HISTORY, REMEDY_FULL) if files else ():
        histories.setdefault(line["run"], []).append(Round.of_row(line, int(line["seed"])))
    shares = read_table(layout.FULL / layout.WORD_SHARES, REMEDY_FULL) if files else []
    scored = {name: over_seeds(seeds) for name, seeds in files.items()}
    return Full(scored, histories, shares, spec.backbone, tuple(made_with.get("seeds", ())))


def _other_knobs(made_with: Mapping[str, Any], spec: ReportSpec) -> list[str]:
    """The knobs of the main table's runs that differ from those of a params.yaml, its scale's own sizes left out.

    Args:
        made_with: a params.yaml; what it does not name is no difference.
    """
    scale = made_with.get("scales", {}).get(made_with.get("scale"), {})
    wanted: dict[str, set[Any]] = {"backbone": {spec.backbone}, "span_end": {spec.span_end}}
    for row in spec.runs:
        if row.training is not None and layout.group_of(row.id) == layout.MAIN:
            own = made_with.get("runs", {}).get(row.name, {})
            for knob, value in (row.training.model_dump() | row.training.hyperparameters).items():
                if value is not None and knob not in own and knob not in SIZES:
                    wanted.setdefault(knob, set()).add(value)
    known = {knob: scale.get(knob) if value is None else value for knob, value in made_with.items() if knob in wanted}
    return [knob for knob, value in known.items() if value is not None and wanted[knob] != {value}]


def target_limit(run_id: str) -> int:
    """How many tokens of a reference a run reads, its end token included."""
    spec = read_spec(layout.stage_spec("encode", layout.group_of(run_id)), EncodeSpec)
    return spec.limits[spec.manifests[run_id]][1]


def common_clients(metrics: Mapping[str, Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """(The clients that means over several runs are over, all that any of the runs has).

    They are those that all runs have; of runs without a common client each has a mean of its own, over all.
    """
    everyone = list(dict.fromkeys(client for own in metrics.values() for client in own if client != MEAN))
    common = [client for client in everyone if all(client in own for own in metrics.values())]
    return common or everyone, everyone


def side_by_side(results: Results, names: Sequence[str], samples: int) -> Metrics:
    """The figures of runs that are compared, with their means over the clients that all of them have.

    SAMSum's dialogues are easier than meetings: a mean over four clients beside one over three would say nothing.
    """
    known = {name: results.metrics[name] for name in names if name in results.metrics}
    common, everyone = common_clients(known)
    if common == everyone:
        return known
    found: Metrics = {}
    for name in known:
        own = [row for row in results.scored[name] if row.client in common]
        found[name] = results.metrics[name] | {MEAN: intervals_of(own, samples)[MEAN]}
    return found


def knob_of(results: Results, run: str, knob: str) -> float:
    """A run's value of a hyperparameter; of a threshold that is a quantile, the mean of what it was in nats.

    NaN, if the run has no such hyperparameter.
    """
    training = results.rows[run][0].training
    value = training.hyperparameters.get(knob, math.nan) if training is not None else math.nan
    if knob != "tau" or quantile_of(value) is None:
        return float(value)
    return fmean(used for one in results.histories[run] if (used := one.tau) is not None)


def share_of_tokens(results: Results, selective: str) -> float:
    """What share of the target tokens a run distilled, mean over clients, rounds and seeds."""
    return fmean(one.share_distilled for one in results.histories[selective] if one.share_distilled is not None)


def weight_of_all(results: Results, selective: str) -> float:
    """The λ at which distilling every token weighs as much as a run's selected ones do: its λ times their share."""
    return knob_of(results, selective, "lambda") * share_of_tokens(results, selective)
