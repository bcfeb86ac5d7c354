"""Audits of one seed's table that need models: validation ROUGE by round, rounds chosen by it, beams, and fp32.

None of it decides anything. Each audit is kept in results/, and made again where a run that it looks at is another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.prepared import examples_of
from pipeline.errors import QuorumError
from pipeline.federated.history import best_rounds
from pipeline.model.entry import Entry
from pipeline.plan.orders import RunRow
from pipeline.plan.resolve import corpora_of
from pipeline.plan.schema import Params, read_params
from pipeline.plan.training import training_order
from pipeline.runs.aside import encode_aside
from pipeline.runs.audit_scores import decode_missing, examples_of_runs, scored_rows, scores_by_client, to_four_digits
from pipeline.runs.audits import (
    BY_ROUND,
    IN_FP32,
    KNOBS,
    ROUNDS,
    WITH_BEAMS,
    Audited,
    identity,
    runs_of_audits,
)
from pipeline.runs.export import export
from pipeline.runs.histories import read_history
from pipeline.runs.index import Encoded, planned_key, read_encoded, training_key
from pipeline.runs.jobs import DecodingJob, decoding_job, decoding_job_of, planned_decoding
from pipeline.runs.kept import refuse_results_in_another_precision, stage_of
from pipeline.runs.meetings import train_on_meetings
from pipeline.runs.training import POOLED
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import read_table

TOGETHER = 12
"""Models of a run's rounds that write in one batch: they are compared with each other alone."""


def audit() -> None:
    """Make what is missing of the audits, at the seeds that `keep_rounds` names.

    Raises:
        QuorumError: a run is not trained and scored yet, its rounds' models are not on this machine, or the table that
            they stand beside was made in another precision.
    """
    refuse_results_in_another_precision()
    runs = runs_of_audits()
    if not runs[ROUNDS]:
        raise QuorumError("params.yaml: keep_rounds: names no seed of a run that writes summaries; set one")
    audits: dict[str, Callable[[Sequence[RunRow]], Audited]] = {
        BY_ROUND: lambda own: by_round(own, **KNOBS[BY_ROUND]),
        ROUNDS: lambda own: by_rouge(own, read_json(layout.audit(BY_ROUND))["rows"], KNOBS[ROUNDS]["around"]),
        WITH_BEAMS: lambda own: with_beams(own, **KNOBS[WITH_BEAMS]),
        IN_FP32: lambda own: in_precision(own, **KNOBS[IN_FP32]),
    }
    for name, make in audits.items():
        own = runs[name]
        about = identity(name, own)
        if layout.audit(name).is_file() and read_json(layout.audit(name))["identity"] == about:
            say(f"audit {name}: is there")
            continue
        write_json(layout.audit(name), {"identity": about, "rows": make(own)})
        say(f"audit {name}: kept in {layout.audit(name)}")


# -- rounds by validation ROUGE --


def by_round(rows: Sequence[RunRow], validated: int) -> Audited:
    """A row a run, client and round: what the round's model scores on so many validation examples a client."""
    jobs: list[tuple[RunRow, int, DecodingJob]] = []
    for row in rows:
        models, tests = _models(row), _validated(read_encoded(row.id), validated)
        numbers = sorted({number for _, rounds in models.values() for number in rounds})
        jobs += [(row, number, _job_at(row, number, models, tests)) for number in numbers]
    decode_missing("validation by round", [job for _, _, job in jobs], together=TOGETHER)
    examples = examples_of_runs(rows)
    return [
        {"run": row.name, "client": client, "round": number} | own
        for row, number, job in jobs
        for client, own in to_four_digits(scores_by_client(row, job, examples)).items()
    ]


def by_rouge(rows: Sequence[RunRow], validated: Audited, around: int) -> Audited:
    """Test scores where each client keeps the round whose validation summaries score best, near its best by loss.

    Args:
        validated: what `by_round` found of these runs.
        around: rounds before and after the best by loss that stand for choice.
    """
    found = {row.id: _models(row) for row in rows}
    metric = load_task(planned_decoding(rows[0].id).task).metrics[0].name
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for one in validated:
        scores.setdefault((one["run"], one["client"]), {})[one["round"]] = one[metric]
    chosen = {
        row.id: {
            client: _best_near(best, scores[row.name, client], around) for client, (best, _) in found[row.id].items()
        }
        for row in rows
    }
    tests = {row.id: _job_of(row, chosen[row.id], found[row.id]) for row in rows}
    decode_missing("rounds, tests", list(tests.values()))
    examples = examples_of_runs(rows)
    audited: Audited = []
    for row in rows:
        told = {c: {"by_loss": best, "by_rouge": chosen[row.id][c]} for c, (best, _) in found[row.id].items()}
        audited += scored_rows(row, tests[row.id], examples, read_encoded(row.id), told)
    return audited


def _best_near(best: int, scores: Mapping[int, float], around: int) -> int:
    """The round that scores best of those at most `around` from the best by loss; of equals, the nearest to it."""
    near = sorted((number for number in scores if abs(number - best) <= around), key=lambda number: abs(number - best))
    return max(near, key=lambda number: scores[number])


Models = dict[str, tuple[int, dict[int, Path]]]
"""Client -> (best round by loss, round -> the file of the model that its row is about)."""


def _models(row: RunRow) -> Models:
    encoded = read_encoded(row.id)
    key = _trained_as(row)
    folder = layout.rounds() / key
    numbers = sorted(int(path.name.removeprefix("round-")) for path in folder.glob("round-*"))
    if not numbers:
        raise QuorumError(
            f"{folder}: holds no models of {row.id}: it was trained on another machine, or they were removed; remove "
            f"{layout.checkpoints() / key}, and train it again: {_training_again(row)}"
        )
    history = read_history(row.id, row.seed)
    pooled = not (layout.round_adapter(key, numbers[0], next(iter(encoded.clients)))).is_file()
    models: Models = {}
    for client in encoded.clients:
        owner = "server" if row.evaluate == "server" else POOLED if pooled else client
        (best,) = best_rounds(history, client)
        models[client] = best, {number: layout.round_adapter(key, number, owner) for number in numbers}
    return models


def _trained_as(row: RunRow) -> str:
    """The key of the training behind a run's models: the planned one, or that of its kept result.

    A result stays one where code has changed since, and so do the models behind it.

    Raises:
        QuorumError: the models are missing, or another plan's: the audit would be filed under the run as planned.
    """
    path = layout.trained_as(row.id)
    key = str(read_json(path, remedy=f"run `dvc repro {stage_of(row)}` on this machine")["training"])
    kept = read_json(layout.kept(row.id))["history"] if layout.kept(row.id).is_file() else None
    if key != planned_key(row.id) and read_table(layout.history(row.id)) != kept:
        raise QuorumError(f"{path}: is neither the planned training nor the kept one; run {_training_again(row)}")
    return key


def _training_again(row: RunRow) -> str:
    return f"dvc repro --force --single-item {stage_of(row).replace('evaluate', 'train', 1)}"


def _validated(encoded: Encoded, count: int) -> list[tuple[str, Entry]]:
    """(client, entry) of each client's first `count` validation examples in a fixed shuffle."""
    found = []
    for client, splits in encoded.clients.items():
        chosen = set(hash_order([entry.id for entry in splits["val"]])[:count])
        found += [(client, entry) for entry in splits["val"] if entry.id in chosen]
    return found


def _job_at(row: RunRow, number: int, models: Models, tests: Sequence[tuple[str, Entry]]) -> DecodingJob:
    """What the models of one round write, of the clients that have one."""
    there = {client: rounds[number] for client, (_, rounds) in models.items() if number in rounds}
    own = [(client, entry) for client, entry in tests if client in there]
    return decoding_job(row.id, planned_decoding(row.id), read_encoded(row.id), own, there)


def _job_of(row: RunRow, chosen: Mapping[str, int], models: Models) -> DecodingJob:
    encoded = read_encoded(row.id)
    adapters = {client: models[client][1][number] for client, number in chosen.items()}
    return decoding_job(row.id, planned_decoding(row.id), encoded, encoded.tests, adapters)


# -- another decoding, another precision --


def with_beams(rows: Sequence[RunRow], beams: int) -> Audited:
    """Test scores of the same models with so many beams."""
    jobs = {}
    for row in rows:
        _trained_as(row)
        job = decoding_job_of(row.id)
        assert job.order.rule is not None
        order = job.order.model_copy(update={"rule": replace(job.order.rule, beams=beams)})
        jobs[row.id] = decoding_job(row.id, order, read_encoded(row.id), job.tests, job.adapters)
    decode_missing(f"{beams} beams", list(jobs.values()))
    examples = examples_of_runs(rows)
    return [one for row in rows for one in scored_rows(row, jobs[row.id], examples, read_encoded(row.id), {})]


def in_precision(rows: Sequence[RunRow], precision: str) -> Audited:
    """Test scores of the same runs, encoded, trained, decoded and scored in another precision."""
    params = Params.model_validate(
        read_params().model_dump(by_alias=True, exclude_unset=True) | {"precision": precision, "keep_rounds": []}
    )
    ids = {layout.run_id(layout.AUDIT, row.name, row.seed): (row.name, row.seed) for row in rows}
    examples = examples_of(corpora_of(params, layout.AUDIT))
    encode_aside(params, layout.AUDIT, ids, examples)
    jobs, encodings = {}, {}
    for run, row in zip(ids, rows, strict=True):
        planned = training_order(params, row.name, row.seed)
        assert planned.training is not None
        assert planned.evaluate is not None
        encodings[row.id] = encoded = read_encoded(run)
        finished = train_on_meetings(
            planned.training, encoded, training_key(planned.training, encoded), run, lambda told: None
        )
        export(run, finished, planned.evaluate, encoded)
        order = planned_decoding(row.id).model_copy(update={"precision": precision})
        adapters = {client: layout.adapter(run, client) for client in encoded.clients}
        jobs[row.id] = decoding_job(run, order, encoded, encoded.tests, adapters)
    decode_missing(precision, list(jobs.values()))
    return [one for row in rows for one in scored_rows(row, jobs[row.id], examples, encodings[row.id], {})]
