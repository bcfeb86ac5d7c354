"""Writes a training's adapters, history and masks to models/<run>."""

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
    """Write an empty adapter for each client, as the bare backbone has; a run that is left out has no clients."""
    for client in clients:
        write_adapter(layout.adapter(run_id, client), {}, {"round": 0})
    write_table(layout.history(run_id), [], COLUMNS)
    write_bytes(layout.masks(run_id), pack({}))
    save_checksums(run_id)


def export(run_id: str, finished: Finished, owner: Owner, encoded: Encoded) -> None:
    """Write the models that a run's row reports, the others (teacher, before, last, local), its rounds and masks."""
    progress, private = finished.progress, finished.private
    best = private.best[owner]
    for other, own in private.best.items():
        for client, at_best in own.items():
            about = {"round": at_best.round, "validation_loss": at_best.loss}
            write_adapter(layout.adapter(run_id, client, "" if other == owner else other), at_best.adapter, about)
    if "server" in private.best:
        write_adapter(layout.adapter(run_id, "server"), progress.server.adapter)
        for client, at_best in best.items():
            write_adapter(layout.adapter(run_id, client, "teacher"), at_best.sent)
    if private.masks and owner == "local":
        # The student before this round's teacher: analyses compare the two.
        for client, at_best in best.items():
            write_adapter(layout.adapter(run_id, client, "before"), at_best.before)
    for client, at_best in best.items():
        if at_best.round != progress.round:
            state = private.states.get(client) or private.states[POOLED]
            last = progress.server.adapter if owner == "server" else state.adapter
            write_adapter(layout.adapter(run_id, client, "last"), last, {"round": progress.round})
    history = judged(progress.history, owner)
    write_table(layout.history(run_id), [row.to_row() for row in history], columns_of(history))
    lengths = {client: sum(e.tokens for e in splits["train"]) for client, splits in encoded.clients.items()}
    write_bytes(layout.masks(run_id), pack(pack_masks(private.masks), {"tokens": lengths}))
    save_checksums(run_id)
