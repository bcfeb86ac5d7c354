"""What is scored of each run, and work/evaluated, which keeps the scores; see `shared_work`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import QuorumError
from pipeline.plan.orders import EvaluateOrder, read_order
from pipeline.runs.index import read_encoded
from pipeline.workspace import layout
from pipeline.workspace.files import sha256_file, sha256_json


@dataclass(frozen=True)
class ScoringJob:
    """One run's scores, and where they are kept."""

    run_id: str
    order: EvaluateOrder
    path: Path

    def waits(self) -> bool:
        return not self.path.is_file()


def scoring_job_of(run_id: str) -> ScoringJob:
    """A run's job.

    Raises:
        QuorumError: its order, predictions, index or adapters are missing.
    """
    order = read_order(layout.order("evaluate", run_id), EvaluateOrder)
    needed = [layout.predictions(run_id), layout.encoded_index(run_id), layout.BACKBONE / layout.ABOUT_BACKBONE]
    for path in needed:
        if not path.is_file():
            raise QuorumError(f"{path}: is missing; run `dvc repro`")
    adapters = sorted(layout.adapters(run_id).glob("*.safetensors"))
    if not adapters and read_encoded(run_id).clients:
        raise QuorumError(f"{layout.adapters(run_id)}: holds no adapter; run `dvc repro`")
    contents = {path.name: sha256_file(path) for path in [*needed, *adapters]}
    key = sha256_json([order.model_dump(mode="json"), contents])
    return ScoringJob(run_id, order, layout.evaluated() / f"{key}.json")
