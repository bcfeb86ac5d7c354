"""One run at one seed -> models/<run>: its adapters, its history, and which tokens were distilled."""

from __future__ import annotations

import shutil
from typing import Any

from pipeline.federated.algorithm import Kind
from pipeline.federated.bits import pack_bits
from pipeline.federated.loop import POOLED, Progress
from pipeline.model.adapter import pack, write_adapter
from pipeline.plan.orders import TrainStageSpec, read_spec
from pipeline.runs.index import Encoded, read_encoded, training_key
from pipeline.runs.training import train
from pipeline.workspace import layout
from pipeline.workspace.files import write_bytes, write_json
from pipeline.workspace.progress import OnRound
from pipeline.workspace.tables import write_table

HISTORY = (
    "round",
    "client",
    "train_loss",
    "validation_loss",
    "local_validation_loss",
    "server_validation_loss",
    "teacher_validation_loss",
    "share_distilled",
    "teacher_entropy",
    "tau",
    "steps",
    "bytes_down",
    "bytes_up",
    "best",
)


def run(run_id: str, on_round: OnRound = lambda rows: None) -> None:
    """Train, or resume; `on_round` is told every finished round's rows."""
    spec = read_spec(layout.stage_spec("train", run_id), TrainStageSpec)
    encoded = read_encoded(run_id)
    shutil.rmtree(layout.MODELS / run_id, ignore_errors=True)
    key = None if spec.training is None else training_key(spec.training, encoded)
    rows: list[dict[str, Any]] = []
    if spec.training is None or spec.evaluate is None or key is None or not encoded.clients:
        _export_untrained(run_id, list(encoded.clients))
    else:
        finished = train(spec.training, encoded, key, run_id, on_round)
        _export(run_id, finished, spec.evaluate, encoded)
        rows = [{k: row[k] for k in ("round", "client", "seconds")} for row in finished.history]
    write_json(layout.trained_as(run_id), {"training": key})
    # A pooled training's one time stands in every client's row.
    total = sum({(r["round"], r["seconds"]): r["seconds"] for r in rows}.values())
    write_json(layout.timing("train", run_id), {"seconds": total, "rounds": rows, "training": key})


def _export_untrained(run_id: str, clients: list[str]) -> None:
    """The bare backbone: every adapter is the empty one; a run that is left out has no clients."""
    for client in clients:
        write_adapter(layout.adapter(run_id, client), {}, {"round": 0})
    write_table(layout.history(run_id), [], HISTORY)
    write_bytes(layout.distilled(run_id), pack({}))


def _export(run_id: str, progress: Progress, evaluate: Kind, encoded: Encoded) -> None:
    best = progress.best[evaluate]
    for kind, own in progress.best.items():
        for client, kept in own.items():
            about = {"round": kept.round, "validation_loss": kept.loss}
            write_adapter(layout.adapter(run_id, client, "" if kind == evaluate else kind), kept.adapter, about)
    if "server" in progress.best:
        write_adapter(layout.adapter(run_id, "server"), progress.server.adapter)
        for client, kept in best.items():
            write_adapter(layout.adapter(run_id, client, "teacher"), kept.teacher)
    last = {client: progress.clients.get(client, progress.clients.get(POOLED)) for client in best}
    for client, state in last.items():
        final = progress.server.adapter if evaluate == "server" or state is None else state.adapter
        if best[client].round != progress.round:
            write_adapter(layout.adapter(run_id, client, "last"), final, {"round": progress.round})
    scored = f"{evaluate}_validation_loss"
    rows = [
        row | {"validation_loss": row[scored], "best": int(best[row["client"]].round == row["round"])}
        for row in progress.history
    ]
    write_table(layout.history(run_id), rows, HISTORY)
    bits = {client: pack_bits(rows) for client, rows in progress.distilled.items()}
    lengths = {client: sum(e.tokens for e in encoded.clients[client]["train"]) for client in bits if client != POOLED}
    write_bytes(layout.distilled(run_id), pack(bits, {"tokens": lengths}))
