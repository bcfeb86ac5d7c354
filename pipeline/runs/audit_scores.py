"""What the audits of models have in common: many models that write at once, and their scores an example at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from pipeline.corpora.example import Example
from pipeline.corpora.prepared import examples_of
from pipeline.evaluation.scores import NO_SCORES
from pipeline.federated.inputs import inputs
from pipeline.federated.token_figures import token_cross_entropy
from pipeline.model.adapter import read_adapter
from pipeline.model.loader import Loader
from pipeline.model.loading import planned_backbone
from pipeline.plan.orders import EvaluateOrder, GenerateOrder, RunRow, read_order
from pipeline.runs.audits import Rows
from pipeline.runs.decoding import decode, steps_of
from pipeline.runs.index import Encoded
from pipeline.runs.jobs import DecodingJob
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.progress import progress

DIGITS = 4


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


def text_scores(row: RunRow, job: DecodingJob, examples: Mapping[str, Example]) -> Rows:
    """A row an example that was decoded: `run`, `id`, `client`, and every metric of its text."""
    if not job.tests:
        return []
    made, task = job.made(), load_task(job.order.task)
    stemmer = read_order(layout.order("evaluate", row.id), EvaluateOrder).use_stemmer
    scored = task.score(
        [examples[entry.id].target for _, entry in job.tests], [made[e.id] for _, e in job.tests], use_stemmer=stemmer
    )
    return [
        {"run": row.name, "id": entry.id, "client": client} | {name: round(one[name], DIGITS) for name in one}
        for (client, entry), one in zip(job.tests, scored, strict=True)
    ]


def means(scores: Rows) -> dict[str, dict[str, float]]:
    """Client -> its mean of each metric."""
    by_client: dict[str, Rows] = {}
    for row in scores:
        by_client.setdefault(row["client"], []).append(row)
    names = [name for name in (scores[0] if scores else ()) if name not in (*NO_SCORES, "run")]
    return {
        client: {name: round(fmean(row[name] for row in own), DIGITS) for name in names}
        for client, own in by_client.items()
    }


def scored_examples(row: RunRow, job: DecodingJob, examples: Mapping[str, Example], encoded: Encoded) -> Rows:
    """What `text_scores` has, and the example's meeting, its reference's tokens, and their summed loss in nats."""
    losses = _losses(row, job, encoded)
    return [
        own | {"meeting": examples[own["id"]].meeting, "tokens": tokens, "loss_sum": round(loss, DIGITS)}
        for own in text_scores(row, job, examples)
        for tokens, loss in (losses[own["client"], own["id"]],)
    ]


def _losses(row: RunRow, job: DecodingJob, encoded: Encoded) -> dict[tuple[str, str], tuple[int, float]]:
    """(Client, example) -> (its reference's tokens, their summed loss in nats)."""
    planned = read_order(layout.order("evaluate", row.id), EvaluateOrder)
    order = planned.model_copy(update={"precision": job.order.precision})
    backbone = planned_backbone(order)
    loader = Loader(layout.store(), backbone.device)
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for client, path in job.adapters.items():
        entries = encoded.clients[client]["test"]
        seen, load = inputs(order, load_task(order.task), backbone, loader, entries)
        losses = token_cross_entropy(seen, load, entries, read_adapter(path))
        found |= {
            (client, entry.id): (one.numel(), float(one.double().sum()))
            for entry, one in zip(entries, losses, strict=True)
        }
    return found
