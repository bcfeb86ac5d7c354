"""Trains a run on labelled texts at each of its seeds, and writes its models and its rounds."""

from __future__ import annotations

import shutil
from pathlib import Path

from pipeline.clients.skews import SERVER
from pipeline.federated.history import COLUMNS, columns_of, judged
from pipeline.model.adapter import Adapter, write_adapter
from pipeline.model.tensor_file import is_intact, save_checksums
from pipeline.plan.text_orders import TextTrainOrder
from pipeline.runs.learning import key_of, seen_through, train_on_texts
from pipeline.runs.prune import remove_checkpoints
from pipeline.runs.text_encoding import read_index
from pipeline.runs.training import POOLED, Finished, bind, write_events
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, sha256_json, write_json
from pipeline.workspace.progress import say
from pipeline.workspace.tables import write_table


def train_seeds(name: str, order: TextTrainOrder) -> None:
    """Train a run at each seed that is not trained, or copy the same training from another run.

    Raises:
        QuorumError: the data set is not encoded, or a training fails.
    """
    index = read_index(order.dataset, order.training.view)
    for seed in order.seeds:
        training = order.training.model_copy(update={"seed": seed})
        manifest = read_json(layout.partition(order.setting, seed))["manifest"]
        run_id = layout.run_on_texts(name, seed)
        key = key_of(training, manifest, index)
        if order.untrained:
            # A training with the same knobs must not reuse these untrained weights.
            key = sha256_json(["untrained", key])
        # DVC leaves earlier files: if only another run's data have changed, they are of this training.
        if _has_trained(run_id, key):
            say(f"train {name}-{seed}: has been trained")
            continue
        # Removed first, so that models that are only partly removed never seem complete.
        layout.trained_as(run_id).unlink(missing_ok=True)
        shutil.rmtree(layout.MODELS / run_id, ignore_errors=True)
        if (twin := _trained_elsewhere(key)) is not None:
            but_the_note = shutil.ignore_patterns(layout.trained_as(run_id).name)
            shutil.copytree(layout.MODELS / twin, layout.MODELS / run_id, ignore=but_the_note)
            say(f"train {name}-{seed}: has been trained, as {'-'.join(twin.parts[1:])}")
        elif order.untrained:
            write_adapter(layout.adapter(run_id, SERVER), seen_through(training.learner, index)[1])
            write_table(layout.history(run_id), [], COLUMNS)
        else:
            finished = train_on_texts(training, manifest, index, key, f"{name}-{seed}", lambda rows: None)
            export(run_id, finished, bind(training).evaluates)
            write_events(run_id, training, finished.progress)
        save_checksums(run_id)
        write_json(layout.trained_as(run_id), {"training": key})
        remove_checkpoints(list(layout.checkpoints().glob(key)))


def _trained_elsewhere(key: str) -> Path | None:
    """Another run of this experiment, with its seed, that is the same training."""
    runs = [folder.relative_to(layout.MODELS) for folder in sorted((layout.MODELS / layout.ON_TEXTS).glob("*/*"))]
    return next((run for run in runs if _has_trained(str(run), key)), None)


def _has_trained(run_id: str, key: str) -> bool:
    """Whether a run has all models of the training with this key, undamaged."""
    note = layout.trained_as(run_id)
    return note.is_file() and read_json(note)["training"] == key and is_intact(run_id)


def export(run_id: str, finished: Finished, owner: str) -> None:
    """Write the models of the last round, the models of each client's best round, and the history."""
    progress, private = finished.progress, finished.private
    for name, model in last_models(finished, owner).items():
        write_adapter(layout.adapter(run_id, name), model, {"round": progress.round})
    for client, best in private.best[owner].items():  # type: ignore[index]
        about = {"round": best.round, "validation_loss": best.loss}
        write_adapter(layout.adapter(run_id, client, "best"), best.adapter, about)
    history = judged(progress.history, owner)  # type: ignore[arg-type]
    write_table(layout.history(run_id), [row.to_row() for row in history], columns_of(history))


def last_models(finished: Finished, owner: str) -> dict[str, Adapter]:
    """Return the last round's server model, or each evaluated client's model if the method is about those."""
    if owner == "server":
        return {SERVER: finished.progress.server.adapter}
    states = finished.private.states
    if POOLED in states:
        return {SERVER: states[POOLED].adapter}
    return {client: states[client].adapter for client in finished.private.best["local"]}
