"""A run on labelled texts, at each of its seeds -> its models and its rounds."""

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
    index = read_index(order.dataset, order.training.view)
    for seed in order.seeds:
        training = order.training.model_copy(update={"seed": seed})
        manifest = read_json(layout.federation(order.setting, seed))["manifest"]
        run_id = layout.run_on_texts(name, seed)
        key = key_of(training, manifest, index)
        if order.untrained:
            # A training with the same knobs must not take these weights for its own.
            key = sha256_json(["untrained", key])
        # DVC leaves what is there: where only another run's data have changed, it is this training's already.
        if _has_trained(run_id, key):
            say(f"train {name}-{seed}: has been trained")
            continue
        # First: of models that are half removed none may look whole.
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
    """Another run of this experiment that is the same training, with its seed."""
    made = [folder.relative_to(layout.MODELS) for folder in sorted((layout.MODELS / layout.ON_TEXTS).glob("*/*"))]
    return next((run for run in made if _has_trained(str(run), key)), None)


def _has_trained(run_id: str, key: str) -> bool:
    """Whether a run has all models of the training with this key, as that training saved them."""
    note = layout.trained_as(run_id)
    return note.is_file() and read_json(note)["training"] == key and is_intact(run_id)


def export(run_id: str, finished: Finished, owner: str) -> None:
    """The models after the last round, and those of each client's best; and every round."""
    progress, private = finished.progress, finished.private
    for name, model in last_models(finished, owner).items():
        write_adapter(layout.adapter(run_id, name), model, {"round": progress.round})
    for client, kept in private.best[owner].items():  # type: ignore[index]
        about = {"round": kept.round, "validation_loss": kept.loss}
        write_adapter(layout.adapter(run_id, client, "best"), kept.adapter, about)
    history = judged(progress.history, owner)  # type: ignore[arg-type]
    write_table(layout.history(run_id), [row.to_row() for row in history], columns_of(history))


def last_models(finished: Finished, owner: str) -> dict[str, Adapter]:
    """The server's; or, of a method that is about clients' own, each scored client's."""
    if owner == "server":
        return {SERVER: finished.progress.server.adapter}
    states = finished.private.states
    if POOLED in states:
        return {SERVER: states[POOLED].adapter}
    return {client: states[client].adapter for client in finished.private.best["local"]}
