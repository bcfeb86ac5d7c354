"""What the audits of models have in common: many models that write at once, and their scores by client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from pipeline.corpora.example import Example
from pipeline.corpora.prepared import examples_of
from pipeline.evaluation.scores import LOSS, MEAN
from pipeline.federated.inputs import inputs
from pipeline.federated.token_figures import token_cross_entropy
from pipeline.model.adapter import read_adapter
from pipeline.model.loader import Loader
from pipeline.model.loading import planned_backbone
from pipeline.plan.orders import EvaluateOrder, GenerateOrder, RunRow, read_order
from pipeline.runs.audits import Audited
from pipeline.runs.decoding import decode, steps_of
from pipeline.runs.index import Encoded
from pipeline.runs.jobs import DecodingJob, planned_decoding
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.progress import progress


def examples_of_runs(rows: Sequence[RunRow]) -> dict[str, Example]:
    return examples_of({corpus for row in rows for corpus in planned_decoding(row.id).corpora})


def decode_missing(what: str, jobs: Sequence[DecodingJob], *, together: int = 1) -> None:
    """Write what is missing of jobs that differ in their adapters and test examples alone.

    Args:
        together: so many models of one run share a batch. Their summaries then depend on each other, so it is for those
            that stand in no table beside a run's own.
    """
    if not any(job.waits() for job in jobs):
        return
    order: GenerateOrder = jobs[0].order
    with progress(f"audit {what}", steps_of(jobs)) as advance:
        decode(jobs, planned_backbone(order), examples_of(order.corpora), advance, together=together)


def scores_by_client(row: RunRow, job: DecodingJob, examples: Mapping[str, Example]) -> dict[str, dict[str, float]]:
    """Client -> its mean of each metric of the predictions."""
    if not job.tests:
        return {}
    made, task = job.made(), load_task(job.order.task)
    stemmer = read_order(layout.order("evaluate", row.id), EvaluateOrder).use_stemmer
    scored = task.score(
        [examples[entry.id].target for _, entry in job.tests], [made[e.id] for _, e in job.tests], use_stemmer=stemmer
    )
    found: dict[str, list[Mapping[str, float]]] = {}
    for (client, _), scores in zip(job.tests, scored, strict=True):
        found.setdefault(client, []).append(scores)
    return {client: {name: fmean(one[name] for one in own) for name in own[0]} for client, own in found.items()}


def scored_rows(
    row: RunRow,
    job: DecodingJob,
    examples: Mapping[str, Example],
    encoded: Encoded,
    told: Mapping[str, Mapping[str, Any]],
) -> Audited:
    """A row a client with every metric, the loss of the references among them, and the mean over clients."""
    scores = scores_by_client(row, job, examples)
    for client, loss in _losses(row, job, encoded).items():
        scores[client][LOSS] = loss
    scores[MEAN] = {name: fmean(own[name] for own in scores.values()) for name in next(iter(scores.values()))}
    return [
        {"run": row.name, "client": client, **told.get(client, {}), **own}
        for client, own in to_four_digits(scores).items()
    ]


def to_four_digits(scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    return {client: {name: round(value, 4) for name, value in own.items()} for client, own in scores.items()}


def _losses(row: RunRow, job: DecodingJob, encoded: Encoded) -> dict[str, float]:
    """Client -> the mean loss of a reference's token, in nats."""
    planned = read_order(layout.order("evaluate", row.id), EvaluateOrder)
    order = planned.model_copy(update={"precision": job.order.precision})
    backbone = planned_backbone(order)
    loader = Loader(layout.store(), backbone.device)
    found = {}
    for client, path in job.adapters.items():
        entries = encoded.clients[client]["test"]
        seen, load = inputs(order, load_task(order.task), backbone, loader, entries)
        losses = token_cross_entropy(seen, load, entries, read_adapter(path))
        found[client] = sum(float(one.double().sum()) for one in losses) / sum(one.numel() for one in losses)
    return found
