"""One run at each of its seeds -> models/<run>/<seed>: its models, its history, and its masks over target tokens."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from pipeline.federated.history import OnRound, Round
from pipeline.model.tensor_file import is_intact
from pipeline.plan.orders import LEFT_OUT, TrainOrder, planned_run, read_order
from pipeline.runs.index import Index, read_index, read_manifest, training_key
from pipeline.runs.prune import remove_unless_awaited
from pipeline.runs.result_files import refuse_to_retrain
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.progress import say

Log = Callable[[str], AbstractContextManager[OnRound]]
"""Run id -> a context with a function that logs each round's rows."""


def unlogged(_: str) -> AbstractContextManager[OnRound]:
    """Log nothing."""
    return nullcontext(lambda rows: None)


def run(name: str, log: Log = unlogged) -> None:
    """Train a run at each seed that is not trained yet; a killed training resumes at its last finished round."""
    order = read_order(layout.order("train", name), TrainOrder)
    if order.says_left_out(f"train {name}", layout.MODELS / name):
        return
    (layout.MODELS / name / LEFT_OUT).unlink(missing_ok=True)
    index = None if order.learner is None else read_index(order.setting, name)
    for seed in order.seeds:
        _train(name, seed, order, index, log)


def _train(name: str, seed: int, order: TrainOrder, index: Index | None, log: Log) -> None:
    run_id, manifest = layout.run_id(name, seed), read_manifest(order.setting, seed)
    training = order.at(seed)
    key = None if training is None or index is None else training_key(training, manifest, index)
    model = order.learner and order.learner.model_dump(mode="json")
    exported = sha256_json([order.evaluate, order.evaluated, model, seed])  # decides which models are written
    path, note = layout.trained_as(run_id), {"training": key, "exported": exported}
    # DVC leaves earlier files: if only another seed has changed, they are of this plan.
    if path.is_file() and read_json(path) == note and is_intact(run_id):
        say(f"train {run_id}: has been trained")
        return
    refuse_to_retrain(planned_run(run_id))
    path.unlink(missing_ok=True)  # Removed first, so that models that are only partly removed never seem complete.
    shutil.rmtree(layout.MODELS / run_id, ignore_errors=True)
    history: Sequence[Round] = ()
    # These imports take seconds, which a run that is finished or left out saves.
    from pipeline.runs.export import export, export_untrained
    from pipeline.runs.training import train_learner

    if training is None or index is None or key is None:
        export_untrained(run_id, order.learner, index, seed)
    else:
        with log(run_id) as on_round:
            finished = train_learner(training, manifest, index, key, run_id, on_round)
        export(run_id, finished, order, manifest, index)
        history = finished.progress.history
    write_json(path, note)
    write_json(layout.timing("train", run_id), _timing(history) | {"training": key})
    if key is not None:
        remove_unless_awaited(run_id, key)


def _timing(history: Sequence[Round]) -> dict[str, object]:
    """Seconds in total and by row; all clients' rows of a pooled round have the same seconds, which count once."""
    total = sum(seconds for _, seconds in {(row.round, row.seconds) for row in history})
    rounds = [{"round": row.round, "client": row.client, "seconds": row.seconds} for row in history]
    return {"seconds": total, "rounds": rounds}
