"""Whether what lies in models/ is what the plan asks for."""

from __future__ import annotations

from pipeline.plan.orders import TrainStageSpec, read_spec
from pipeline.runs.index import read_encoded, training_key
from pipeline.workspace import layout
from pipeline.workspace.files import read_json


def planned_key(run_id: str) -> str | None:
    """The key of a run's planned training; None for the untrained backbone.

    Raises:
        QuorumError: its spec or index is missing.
    """
    spec = read_spec(layout.stage_spec("train", run_id), TrainStageSpec)
    return None if spec.training is None else training_key(spec.training, read_encoded(run_id))


def is_as_planned(run_id: str) -> bool:
    """Whether a run's adapters are those of its planned training."""
    note = layout.trained_as(run_id)
    return note.is_file() and read_json(note)["training"] == planned_key(run_id)
