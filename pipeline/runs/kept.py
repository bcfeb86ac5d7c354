"""What is committed of each finished run of a long experiment: its scores and its rounds, in results/<run>.json.

A long experiment takes days and machines. Adapters, prefixes and summaries stay on the machine that made them; from
what is kept here every table and figure is made again, without training or decoding. A kept run is known by what it was
told and by its data, so that `missing` names just what is still to be made. Its code and precision are recorded beside:
what has changed since is told, and two precisions never stand in one table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import QuorumError
from pipeline.federated.history import Round
from pipeline.plan.orders import EncodeOrder, EvaluateOrder, GenerateOrder, RunRow, TrainOrder, planned_runs, read_order
from pipeline.runs.index import is_as_planned, read_encoded
from pipeline.runs.results import target_limit
from pipeline.runs.timings import timed_training
from pipeline.runs.truncation import cut_of
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, read_jsonl, sha256_file, sha256_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table

if TYPE_CHECKING:
    from pipeline.runs.jobs import DecodingJob

CODE = ("code", "packages", "precision", "threads", "keep_rounds")
"""What of an order is no part of what a result is known by: how it was made is recorded beside it."""
STAGES = {layout.MAIN: "evaluate", layout.MORE: "evaluate-more"}


def take(stages: Sequence[str]) -> None:
    """Keep the runs whose last stage `dvc repro` has just brought up to date.

    Args:
        stages: as `missing` names them.

    Raises:
        QuorumError: one is no planned stage, or its run is not as planned.
    """
    from pipeline.runs.jobs import decoding_job_of, scoring_job_of  # seconds, which `missing` saves

    planned = {stage_of(row): row for row in planned_runs()}
    for stage in stages:
        if stage not in planned:
            raise QuorumError(f"{stage}: is no stage of a planned run; `make missing` names them")
        run = planned[stage].id
        if not is_as_planned(run):
            raise QuorumError(f"{layout.trained_as(run)}: is of another plan; run `dvc repro {stage}`")
        decoding, scoring = decoding_job_of(run), scoring_job_of(run)
        if decoding.missing() or not _is_written(decoding):
            raise QuorumError(f"{layout.predictions(run)}: is of another plan; run `dvc repro {stage}`")
        if scoring.waits() or read_json(scoring.path)["scores"] != read_json(layout.scores(run)):
            raise QuorumError(f"{layout.scores(run)}: is of another plan; run `dvc repro {stage}`")
        kept = {
            "identity": kept_identity(run),
            **_made_with(run),
            "source": read_json(layout.notes("qmsum"))["source"],
            "cut": asdict(cut_of(read_encoded(run).index, target_limit(run))),
            "scores": read_json(layout.scores(run)),
            "history": read_table(layout.history(run)),
            "training_seconds": timed_training(run).get("seconds"),
        }
        write_text(layout.kept(run), json.dumps(kept, separators=(",", ":")) + "\n")
    say(f"results: {len(stages)} runs kept in {layout.RESULTS}: {', '.join(stages)}")


def _is_written(job: DecodingJob) -> bool:
    """Whether a run's predictions are those of its job, not what another plan's decoding left in their place."""
    made = job.made()
    wanted = {entry.id: made[entry.id].text if entry.id in made else None for _, entry in job.tests}
    return wanted == {row["id"]: row["prediction"] for row in read_jsonl(layout.predictions(job.run_id))}


def missing() -> list[str]:
    """DVC's names of the last stage of every planned run that is not kept, the first seed's first."""
    rows = sorted((row for row in planned_runs() if not _is_left_out(row)), key=lambda row: row.seed)
    return [stage_of(row) for row in rows if not _is_kept(row)]


def to_make() -> list[str]:
    """What is missing, where it can be made as the rest was. Where nothing is missing, any machine will do.

    Raises:
        QuorumError: something is missing, and results are kept in another precision.
    """
    if found := missing():
        refuse_results_in_another_precision()
    else:
        say("results: nothing is missing")
    return found


def refuse_results_in_another_precision() -> None:
    """Compare what is kept with what would be made here.

    Raises:
        QuorumError: what is kept was made in another precision: results of both would stand in one table.
    """
    for row in (row for row in planned_runs() if not _is_left_out(row) and _is_kept(row)):
        here = _encoding_of(row.id).precision
        refuse_another_precision(layout.kept(row.id), here, f"set precision: {here} and remove {layout.RESULTS}")


def refuse_another_precision(kept: Path, here: str, otherwise: str) -> None:
    """Refuse to begin hours of work that could stand in no table with what is kept.

    Args:
        otherwise: what to do where the other precision is not native.

    Raises:
        QuorumError: a kept file was made in another precision than this plan's.
    """
    if (made := read_json(kept)["precision"]) != here:
        raise QuorumError(
            f"{kept}: was made in {made}, and this plan says {here}; go on where {made} is native, or {otherwise}"
        )


def stage_of(row: RunRow) -> str:
    """The last stage of a run, as DVC names it."""
    return f"{STAGES[layout.group_of(row.id)]}@{row.name}-{row.seed}"


def read_kept(rows: Iterable[RunRow]) -> tuple[list[RunRow], dict[str, dict[str, Any]]]:
    """(The rows whose results are kept, run id -> scores and history); what is another run's by now is left out.

    Raises:
        QuorumError: nothing is kept, or results of two precisions are.
    """
    known = [row for row in rows if not _is_left_out(row) and _is_kept(row)]
    if not known:
        raise QuorumError(f"{layout.RESULTS}: holds no result of a planned run; run `make repro-full`")
    files = {row.id: read_json(layout.kept(row.id)) for row in known}
    made = {kept["precision"]: layout.kept(run) for run, kept in files.items()}
    if len(made) > 1:
        told = ", ".join(f"{path} in {precision}" for precision, path in sorted(made.items()))
        raise QuorumError(f"{layout.RESULTS}: {told}: two precisions do not stand in one table; remove one's results")
    return known, files


def changed_since(files: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The runs that were made by other code, packages, precision or number of threads than there are now."""
    return [run for run, kept in files.items() if any(kept[part] != now for part, now in _made_with(run).items())]


def _made_with(run: str) -> dict[str, Any]:
    encoding = _encoding_of(run)
    return {"code": code_of(run), "precision": encoding.precision, "threads": encoding.threads}


def kept_identity(run: str) -> str:
    """What a run was told, its code aside, and on which data.

    Raises:
        QuorumError: its orders, manifest or examples are missing.
    """
    group, encode = layout.group_of(run), _encoding_of(run)
    manifest = encode.manifests[run]
    return sha256_json(
        [
            [without_code(order) for order in _orders(run)],
            list(encode.limits[manifest]),
            read_json(layout.manifest_file(group, manifest), remedy="run `dvc repro partition`"),
            sha256_file(layout.examples("qmsum")),
            read_json(layout.BACKBONE / layout.ABOUT_BACKBONE, remedy="run `dvc repro backbone` in the root")["digest"],
        ]
    )


def without_code(order: Mapping[str, Any]) -> dict[str, Any]:
    """What an order tells of a result, at any depth."""
    return {k: without_code(v) if isinstance(v, Mapping) else v for k, v in order.items() if k not in CODE}


def code_of(run: str) -> str:
    """A hash of all code and packages that a run is encoded, trained, decoded and scored with."""
    encoding, orders = _encoding_of(run).model_dump(mode="json"), _orders(run)
    training = orders[0].get("training") or {}
    return sha256_json([[order.get(part) for part in ("code", "packages")] for order in [encoding, *orders, training]])


def _orders(run: str) -> list[dict[str, Any]]:
    kinds = (("train", TrainOrder), ("generate", GenerateOrder), ("evaluate", EvaluateOrder))
    return [read_order(layout.order(stage, run), kind).model_dump(mode="json") for stage, kind in kinds]


def _is_kept(row: RunRow) -> bool:
    path = layout.kept(row.id)
    return path.is_file() and bool(read_json(path)["identity"] == kept_identity(row.id))


def _is_left_out(row: RunRow) -> bool:
    return row.id in _encoding_of(row.id).left_out


def _encoding_of(run: str) -> EncodeOrder:
    return read_order(layout.order("encode", layout.group_of(run)), EncodeOrder)


def rounds_of(kept: Mapping[str, Any], seed: int) -> list[Round]:
    """A kept run's rounds."""
    return [Round.of_row(row, seed) for row in kept["history"]]
