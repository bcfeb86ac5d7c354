"""A run's adapters on every client's test set -> reports/predictions/<run>.jsonl."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.prepared import examples_of
from pipeline.runs.jobs import DecodingJob, decoding_job_of, label, sharing_with
from pipeline.runs.turns import WRITERS
from pipeline.tasks.task import Prediction, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import write_json, write_jsonl
from pipeline.workspace.progress import progress


def run(run_id: str) -> None:
    """Write a run's predictions: decoded ones, turns of the source, or none."""
    began = time.monotonic()
    job = decoding_job_of(run_id)
    examples = examples_of(job.order.corpora, load_task(job.order.task).kind)
    if job.order.turns is not None:
        write = WRITERS[job.order.turns]
        made = {entry.id: Prediction(write(examples[entry.id])) for _, entry in job.tests}
    else:
        made = _decoded(job, examples)
    rows = [
        {
            "id": entry.id,
            "client": client,
            "query": examples[entry.id].query,
            "reference": examples[entry.id].target,
            "prediction": made[entry.id].text if entry.id in made else None,
            "ended": made[entry.id].ended if entry.id in made else None,
        }
        for client, entry in job.tests
    ]
    write_jsonl(layout.predictions(run_id), rows)
    write_json(layout.timing("generate", run_id), {"seconds": time.monotonic() - began})


def _decoded(job: DecodingJob, examples: Mapping[str, Conversation]) -> dict[str, Prediction]:
    """Conversation -> what the run's adapters predict; the first run decodes for all that share its order."""
    if job.has_work():
        # Seconds of imports, which the other runs' stages save.
        from pipeline.model.loading import planned_backbone
        from pipeline.runs.decoding import decode, steps_of

        jobs = sharing_with(job, decoding_job_of)
        backbone = planned_backbone(job.order)
        with progress(label("generate", jobs), steps_of(jobs)) as advance:
            decode(jobs, backbone, examples, advance)
    return job.predictions()
