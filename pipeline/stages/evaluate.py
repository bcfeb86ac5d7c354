"""A run's predictions and adapters, scored by example -> results/<run>.json.gz; and the lens of a few examples."""

from __future__ import annotations

import time

from pipeline.plan.orders import planned_run
from pipeline.runs.jobs import label, scoring_job_of, sharing_with
from pipeline.runs.result_files import save_result
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import progress


def run(run_id: str) -> None:
    """Score a run, together with other runs of the same order, and write its result and its lens."""
    began = time.monotonic()
    job = scoring_job_of(run_id)
    if job.has_work():
        from pipeline.runs.scoring import score  # seconds, which the other runs' stages save

        jobs = sharing_with(job, scoring_job_of)
        with progress(label("evaluate", jobs), len(jobs)) as advance:
            score(jobs, advance)
    scored = read_json(job.path, remedy=f"delete {job.path} and run again")
    save_result(planned_run(run_id), scored["scores"])
    write_json(layout.lens(run_id), scored["lens"])
    write_json(layout.timing("evaluate", run_id), {"seconds": time.monotonic() - began})
