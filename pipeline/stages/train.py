"""One run at one seed -> models/<run>: its adapters, its history, and its masks over target tokens."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from pipeline.federated.algorithm import Owner
from pipeline.federated.callbacks.telling import OnRound
from pipeline.federated.history import COLUMNS, Round, columns_of, judged
from pipeline.federated.masks import packed
from pipeline.model.adapter import pack, write_adapter
from pipeline.plan.orders import TrainOrder, read_order
from pipeline.runs.index import Encoded, read_encoded, training_key
from pipeline.runs.training import POOLED, Finished, train
from pipeline.workspace import layout
from pipeline.workspace.files import write_bytes, write_json
from pipeline.workspace.tables import write_table


def run(run_id: str, on_round: OnRound = lambda rows: None) -> None:
    """Train, or resume; `on_round` is told every finished round's rows."""
    order = read_order(layout.order("train", run_id), TrainOrder)
    encoded = read_encoded(run_id)
    shutil.rmtree(layout.MODELS / run_id, ignore_errors=True)
    key = None if order.training is None else training_key(order.training, encoded)
    history: Sequence[Round] = ()
    if order.training is None or order.evaluate is None or key is None or not encoded.clients:
        _export_untrained(run_id, list(encoded.clients))
    else:
        finished = train(order.training, encoded, key, run_id, on_round)
        _export(run_id, finished, order.evaluate, encoded)
        history = finished.progress.history
    write_json(layout.trained_as(run_id), {"training": key})
    # A pooled training's one time stands in every client's row.
    total = sum(seconds for _, seconds in {(row.round, row.seconds) for row in history})
    rows = [{"round": row.round, "client": row.client, "seconds": row.seconds} for row in history]
    write_json(layout.timing("train", run_id), {"seconds": total, "rounds": rows, "training": key})


def _export_untrained(run_id: str, clients: Sequence[str]) -> None:
    """The bare backbone: every adapter is the empty one; a run that is left out has no clients."""
    for client in clients:
        write_adapter(layout.adapter(run_id, client), {}, {"round": 0})
    write_table(layout.history(run_id), [], COLUMNS)
    write_bytes(layout.masks(run_id), pack({}))


def _export(run_id: str, finished: Finished, owner: Owner, encoded: Encoded) -> None:
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
    write_bytes(layout.masks(run_id), pack(packed(private.masks), {"tokens": lengths}))
