"""One run at one seed -> models/<run>: its adapters, its history, and its masks over target tokens."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from pipeline.federated.history import OnRound, Round
from pipeline.plan.orders import TrainOrder, planned_run, read_order
from pipeline.runs.export import export, export_untrained
from pipeline.runs.index import read_encoded, training_key
from pipeline.runs.meetings import train_on_meetings
from pipeline.runs.result_files import refuse_to_retrain
from pipeline.runs.training import write_events
from pipeline.workspace import layout
from pipeline.workspace.files import write_json


def run(run_id: str, on_round: OnRound = lambda rows: None) -> None:
    """Train, or resume, and write the models; `on_round` is called with every finished round's rows."""
    order = read_order(layout.order("train", run_id), TrainOrder)
    encoded = read_encoded(run_id)
    refuse_to_retrain(planned_run(run_id))
    shutil.rmtree(layout.MODELS / run_id, ignore_errors=True)
    key: str | None = None
    history: Sequence[Round] = ()
    if order.training is not None:
        key = training_key(order.training, encoded)
    if order.training is None or order.evaluate is None or key is None or not encoded.clients:
        export_untrained(run_id, list(encoded.clients))
    else:
        finished = train_on_meetings(order.training, encoded, key, run_id, on_round)
        export(run_id, finished, order.evaluate, encoded)
        write_events(run_id, order.training, finished.progress)
        history = finished.progress.history
    write_json(layout.trained_as(run_id), {"training": key})
    write_json(layout.timing("train", run_id), _timing(history) | {"training": key})


def _timing(history: Sequence[Round]) -> dict[str, object]:
    """Seconds in total and by row; all clients' rows of a pooled round have the same seconds, which count once."""
    total = sum(seconds for _, seconds in {(row.round, row.seconds) for row in history})
    rounds = [{"round": row.round, "client": row.client, "seconds": row.seconds} for row in history]
    return {"seconds": total, "rounds": rounds}
