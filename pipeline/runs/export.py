"""What a training leaves in models/<run>: adapters, history, masks."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.federated.algorithm import Owner
from pipeline.federated.history import COLUMNS, columns_of, judged
from pipeline.federated.masks import pack_masks
from pipeline.model.adapter import pack, write_adapter
from pipeline.model.tensor_file import save_checksums
from pipeline.runs.index import Encoded
from pipeline.runs.training import POOLED, Finished
from pipeline.workspace import layout
from pipeline.workspace.files import write_bytes
from pipeline.workspace.tables import write_table


def export_untrained(run_id: str, clients: Sequence[str]) -> None:
    """The bare backbone: every adapter is the empty one; a run that is left out has no clients."""
    for client in clients:
        write_adapter(layout.adapter(run_id, client), {}, {"round": 0})
    write_table(layout.history(run_id), [], COLUMNS)
    write_bytes(layout.masks(run_id), pack({}))
    save_checksums(run_id)


def export(run_id: str, finished: Finished, owner: Owner, encoded: Encoded) -> None:
    """The models that a run's row is about, those beside them, and what is told of its rounds."""
    progress, private = finished.progress, finished.private
    best = private.best[owner]
    for other, own in private.best.items():
        for client, kept in own.items():
            about = {"round": kept.round, "validation_loss": kept.loss}
            write_adapter(layout.adapter(run_id, client, "" if other == owner else other), kept.adapter, about)
    if "server" in private.best:
        write_adapter(layout.adapter(run_id, "server"), progress.server.adapter)
        for client, kept in best.items():
            write_adapter(layout.adapter(run_id, client, "teacher"), kept.sent)
    if private.masks and owner == "local":
        # As the teacher met it: analyses compare the two.
        for client, kept in best.items():
            write_adapter(layout.adapter(run_id, client, "before"), kept.before)
    for client, kept in best.items():
        if kept.round != progress.round:
            state = private.states.get(client) or private.states[POOLED]
            last = progress.server.adapter if owner == "server" else state.adapter
            write_adapter(layout.adapter(run_id, client, "last"), last, {"round": progress.round})
    history = judged(progress.history, owner)
    write_table(layout.history(run_id), [row.to_row() for row in history], columns_of(history))
    lengths = {client: sum(e.tokens for e in splits["train"]) for client, splits in encoded.clients.items()}
    write_bytes(layout.masks(run_id), pack(pack_masks(private.masks), {"tokens": lengths}))
    save_checksums(run_id)
