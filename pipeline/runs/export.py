"""Writes a training's models, history and masks to models/<run>."""

from __future__ import annotations

from pipeline.clients.manifest import Manifest
from pipeline.clients.skews import SERVER
from pipeline.federated.algorithm import Owner
from pipeline.federated.history import COLUMNS, columns_of, judged
from pipeline.federated.masks import pack_masks
from pipeline.federated.state import Best
from pipeline.model.adapter import Adapter, pack, write_adapter
from pipeline.model.tensor_file import save_checksums
from pipeline.plan.orders import TrainOrder
from pipeline.runs.index import Index
from pipeline.runs.learners import POOLED
from pipeline.runs.training import Finished, write_events
from pipeline.workspace import layout
from pipeline.workspace.files import write_bytes
from pipeline.workspace.tables import write_table


def export_untrained(run_id: str, initial: Adapter) -> None:
    """Write the initial model, which the server has; for a language model it is empty, as the bare backbone."""
    write_adapter(layout.adapter(run_id, SERVER), initial, {"round": 0})
    write_table(layout.history(run_id), [], COLUMNS)
    save_checksums(run_id)


def export(run_id: str, finished: Finished, order: TrainOrder, manifest: Manifest, index: Index) -> None:
    """Write the evaluated models and the others, the history, the masks, and what went wrong."""
    owner, training = order.evaluate, order.training
    assert owner is not None
    assert training is not None
    if order.evaluated == "best":
        _best_models(run_id, finished, owner)
        lengths = {client: sum(e.tokens for e in index.learned(own["train"])) for client, own in manifest.items()}
        write_bytes(layout.masks(run_id), pack(pack_masks(finished.private.masks), {"tokens": lengths}))
    else:
        _last_models(run_id, finished, owner)
    history = judged(finished.progress.history, owner)
    write_table(layout.history(run_id), [row.to_row() for row in history], columns_of(history))
    write_events(run_id, training, finished.progress)
    save_checksums(run_id)


def _best_models(run_id: str, finished: Finished, owner: Owner) -> None:
    """Each client's best round: the evaluated model, and the other one, teacher, student before it, and last round."""
    progress, private = finished
    if "server" in private.best:  # first: where the server's data are evaluated, its best round has the same name
        write_adapter(layout.adapter(run_id, SERVER), progress.server.adapter)
    for other, own in private.best.items():
        for client, best in own.items():
            _write_best(run_id, client, "" if other == owner else other, best)
    for client, best in private.best[owner].items():
        if "server" in private.best:
            write_adapter(layout.adapter(run_id, client, "teacher"), best.sent)
        if private.masks and owner == "local":
            # The student before this round's teacher: analyses compare the two.
            write_adapter(layout.adapter(run_id, client, "before"), best.before)
        if best.round != progress.round:
            last = progress.server if owner == "server" else private.states.get(client) or private.states[POOLED]
            write_adapter(layout.adapter(run_id, client, "last"), last.adapter, {"round": progress.round})


def _last_models(run_id: str, finished: Finished, owner: Owner) -> None:
    """The last round: the server's model, or each evaluated client's own; and each client's best round."""
    progress, private = finished
    last = {SERVER: progress.server.adapter}
    if owner == "local" and POOLED in private.states:
        last = {SERVER: private.states[POOLED].adapter}
    elif owner == "local":
        last = {client: private.states[client].adapter for client in private.best["local"]}
    for name, model in last.items():
        write_adapter(layout.adapter(run_id, name), model, {"round": progress.round})
    for client, best in private.best[owner].items():
        _write_best(run_id, client, "best", best)


def _write_best(run_id: str, client: str, which: str, best: Best) -> None:
    about = {"round": best.round, "validation_loss": best.loss}
    write_adapter(layout.adapter(run_id, client, which), best.adapter, about)
