"""A run's predictions and adapters, scored an example at a time -> reports/scores/<run>.json; the lens beside it."""

from __future__ import annotations

import time

from pipeline.runs.jobs import ScoringJob, label, scoring_job_of, sharing_with
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.progress import progress


def run(run_id: str) -> None:
    began = time.monotonic()
    job = scoring_job_of(run_id)
    if job.waits():
        from pipeline.runs.scoring import score  # seconds, which the other runs' stages save

        jobs = sharing_with(job, scoring_job_of, ScoringJob.waits)
        with progress(label("evaluate", jobs), len(jobs)) as advance:
            score(jobs, advance)
    kept = read_json(job.path, remedy=f"delete {job.path} and run again")
    write_json(layout.scores(run_id), kept["scores"])
    write_json(layout.lens(run_id), kept["lens"])
    write_json(layout.timing("evaluate", run_id), {"seconds": time.monotonic() - began})
