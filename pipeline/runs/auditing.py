"""Audits of one seed's table that need models: validation ROUGE by round, rounds chosen by it, beams, and fp32.

None of it decides anything. Each audit is kept in results/, and made again where a run that it looks at is another.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

from pipeline.corpora.example import Example
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.prepared import examples_of
from pipeline.errors import QuorumError
from pipeline.model.entry import Entry
from pipeline.plan.orders import RunRow
from pipeline.plan.resolve import corpora_of
from pipeline.plan.schema import Params, read_params
from pipeline.plan.training import training_order
from pipeline.runs.aside import encode_aside
from pipeline.runs.audit_rounds import RoundModels, models_of, to_train
from pipeline.runs.audit_scores import decode_missing, means, scored_examples, text_scores
from pipeline.runs.audits import (
    ANEW,
    BEAMS,
    BY_ROUND,
    FP32,
    KNOBS,
    ROUNDS,
    Audited,
    Rows,
    identity,
    kept_audits,
    of_these_models,
    read_audits,
    runs_of_audits,
)
from pipeline.runs.export import export
from pipeline.runs.index import Encoded, read_encoded, training_key
from pipeline.runs.jobs import DecodingJob, decoding_job, decoding_job_of, planned_decoding
from pipeline.runs.meetings import train_on_meetings
from pipeline.runs.prune import remove_checkpoints
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import say

TOGETHER = 12
"""Models of a run's rounds that write in one batch: they are compared with each other alone."""

Chosen = dict[str, dict[str, tuple[int, int]]]
"""Run -> client -> (the best round by loss, the round that is kept)."""


def audit() -> None:
    """Make what is missing of the audits, at the seed that `keep_rounds` names.

    Raises:
        QuorumError: an audit is missing, and a run is not trained here, models of its rounds are not here, or results
            are kept in another precision; see `to_train`.
    """
    if needed := to_train():
        raise QuorumError(
            f"audit: {', '.join(needed)}: not trained here, or without models of every round; `make audit` does it"
        )
    if set(read_audits()) == set(KNOBS):
        say("audit: all of it is there")
        _give_back()  # which a kill may have left undone
        return
    runs = runs_of_audits()
    models = {row.name: decoding_job_of(row.id).path.stem for row in runs[ANEW]}
    found = of_these_models(kept_audits(), models)
    audits: dict[str, Callable[[Sequence[RunRow]], tuple[Rows, Chosen]]] = {
        ANEW: lambda own: (anew(own), {}),
        BY_ROUND: lambda own: (by_round(own, **KNOBS[BY_ROUND]), {}),
        ROUNDS: lambda own: by_rouge(own, found[BY_ROUND].rows, KNOBS[ROUNDS]["around"]),
        BEAMS: lambda own: (with_beams(own, **KNOBS[BEAMS]), {}),
        FP32: lambda own: (in_precision(own, **KNOBS[FP32]), {}),
    }
    for name, make in audits.items():
        own = runs[name]
        if name in found:
            say(f"audit {name}: is there")
            continue
        rows, rounds = make(own)
        found[name] = Audited({row.name: models[row.name] for row in own}, rows, rounds)
        write_json(layout.audit(name), {"identity": identity(name, own), **asdict(found[name])})
        say(f"audit {name}: kept in {layout.audit(name)}")
    _give_back()


def anew(rows: Sequence[RunRow]) -> Rows:
    """The table itself, of the models that the audits look at, written by the code that writes theirs."""
    return _scored("the table anew", rows, {row.id: decoding_job_of(row.id) for row in rows})


# -- rounds by validation ROUGE --


def by_round(rows: Sequence[RunRow], validated: int) -> Rows:
    """A row a run, client and round: what the round's model scores on so many validation examples a client."""
    jobs: list[tuple[RunRow, int, DecodingJob]] = []
    for row in rows:
        models, tests = models_of(row), _validated(read_encoded(row.id), validated)
        numbers = sorted({number for own in models.values() for number in own.files})
        jobs += [(row, number, _job_at(row, dict.fromkeys(models, number), models, tests)) for number in numbers]
    decode_missing("validation by round", [job for _, _, job in jobs], together=TOGETHER)
    examples = _examples_of(rows)
    return [
        {"run": row.name, "client": client, "round": number} | own
        for row, number, job in jobs
        for client, own in means(text_scores(row, job, examples)).items()
    ]


def by_rouge(rows: Sequence[RunRow], validated: Rows, around: int) -> tuple[Rows, Chosen]:
    """Test scores where each client keeps the round whose validation summaries score best, near its best by loss.

    Args:
        validated: what `by_round` found of these runs.
        around: rounds before and after the best by loss that stand for choice.
    """
    metric = load_task(planned_decoding(rows[0].id).task).metrics[0].name
    scores: dict[tuple[str, str], dict[int, float]] = {}
    for one in validated:
        scores.setdefault((one["run"], one["client"]), {})[one["round"]] = one[metric]
    jobs, rounds = {}, {}
    for row in rows:
        models = models_of(row)
        chosen = {client: _best_near(own.best, scores[row.name, client], around) for client, own in models.items()}
        rounds[row.name] = {client: (own.best, chosen[client]) for client, own in models.items()}
        jobs[row.id] = _job_at(row, chosen, models, read_encoded(row.id).tests)
    return _scored("rounds by ROUGE", rows, jobs), rounds


def _best_near(best: int, scores: Mapping[int, float], around: int) -> int:
    """The round that scores best of those at most `around` from the best by loss; of equals, the nearest to it."""
    near = sorted((number for number in scores if abs(number - best) <= around), key=lambda number: abs(number - best))
    return max(near, key=lambda number: scores[number])


def _validated(encoded: Encoded, count: int) -> list[tuple[str, Entry]]:
    """(client, entry) of each client's first `count` validation examples in a fixed shuffle."""
    found = []
    for client, splits in encoded.clients.items():
        chosen = set(hash_order([entry.id for entry in splits["val"]])[:count])
        found += [(client, entry) for entry in splits["val"] if entry.id in chosen]
    return found


def _job_at(
    row: RunRow, rounds: Mapping[str, int], models: Mapping[str, RoundModels], tests: Sequence[tuple[str, Entry]]
) -> DecodingJob:
    """What each client's model of its round writes."""
    adapters = {client: models[client].files[number] for client, number in rounds.items()}
    return decoding_job(row.id, planned_decoding(row.id), read_encoded(row.id), tests, adapters)


# -- another decoding, another precision --


def with_beams(rows: Sequence[RunRow], beams: int) -> Rows:
    """Test scores of the same models with so many beams."""
    jobs = {}
    for row in rows:
        job = decoding_job_of(row.id)
        assert job.order.rule is not None
        order = job.order.model_copy(update={"rule": replace(job.order.rule, beams=beams)})
        jobs[row.id] = decoding_job(row.id, order, read_encoded(row.id), job.tests, job.adapters)
    return _scored(f"{beams} beams", rows, jobs)


def in_precision(rows: Sequence[RunRow], precision: str) -> Rows:
    """Test scores of the same runs, encoded, trained, decoded and scored in another precision."""
    params = Params.model_validate(
        read_params().model_dump(by_alias=True, exclude_unset=True) | {"precision": precision, "keep_rounds": []}
    )
    ids = {layout.run_id(layout.AUDIT, row.name, row.seed): (row.name, row.seed) for row in rows}
    encode_aside(params, layout.AUDIT, ids, examples_of(corpora_of(params, layout.AUDIT)))
    jobs, encodings = {}, {}
    for run, row in zip(ids, rows, strict=True):
        planned = training_order(params, row.name, row.seed)
        assert planned.training is not None
        assert planned.evaluate is not None
        encodings[row.id] = encoded = read_encoded(run)
        key = training_key(planned.training, encoded)
        finished = train_on_meetings(planned.training, encoded, key, run, lambda told: None)
        export(run, finished, planned.evaluate, encoded)
        order = planned_decoding(row.id).model_copy(update={"precision": precision})
        adapters = {client: layout.adapter(run, client) for client in encoded.clients}
        jobs[row.id] = decoding_job(run, order, encoded, encoded.tests, adapters)
        write_json(layout.trained_as(run), {"training": key})
    return _scored(precision, rows, jobs, encodings)


def _give_back() -> None:
    """What the audits trained of their own: nothing else reads it, and what came of it is kept."""
    keys = [
        read_json(path)["training"] for path in (layout.MODELS / layout.AUDIT).glob(f"*/{layout.trained_as('x').name}")
    ]
    remove_checkpoints([layout.checkpoints() / key for key in keys])
    for folder in (layout.MODELS, layout.ENCODED, layout.PARTITIONS):
        shutil.rmtree(folder / layout.AUDIT, ignore_errors=True)


def _scored(
    what: str, rows: Sequence[RunRow], jobs: Mapping[str, DecodingJob], encodings: Mapping[str, Encoded] | None = None
) -> Rows:
    """A row a run and test example, once all of the runs' jobs are decoded.

    Args:
        encodings: run id -> what its models read, where that is not as planned.
    """
    decode_missing(what, list(jobs.values()))
    examples = _examples_of(rows)
    known = encodings or {row.id: read_encoded(row.id) for row in rows}
    return [one for row in rows for one in scored_examples(row, jobs[row.id], examples, known[row.id])]


def _examples_of(rows: Sequence[RunRow]) -> dict[str, Example]:
    return examples_of({corpus for row in rows for corpus in planned_decoding(row.id).corpora})
