"""Writes a training's models, history and masks to models/<run>."""

from collections.abc import Iterator

from pipeline.clients.manifest import Manifest
from pipeline.clients.skews import SERVER
from pipeline.federated.algorithm import Owner
from pipeline.federated.history import COLUMNS, columns_of, judged
from pipeline.federated.masks import pack_masks
from pipeline.federated.state import Best
from pipeline.model.adapter import Adapter, pack, write_adapter
from pipeline.model.tensor_file import save_checksums
from pipeline.plan.learner import Learner, Training
from pipeline.plan.orders import TrainOrder
from pipeline.runs.index import Index
from pipeline.runs.training import POOLED, Finished, clients_of_round, write_events
from pipeline.workspace import layout
from pipeline.workspace.files import write_bytes
from pipeline.workspace.record import Json
from pipeline.workspace.tables import write_table


def export_untrained(run_id: str, learner: Learner | None, index: Index | None, seed: int) -> None:
    """Write the initial model, which the server has: empty for turns, and for a language model as it is."""
    begins: Adapter = {}
    if learner is not None and index is not None and learner.view.adapted_layers is None:
        from pipeline.runs.learners import initial, model_of  # seconds, which the bare backbone saves

        begins = initial(learner, model_of(learner), index.classes, seed)
    write_adapter(layout.adapter(run_id, SERVER), begins, {"round": 0})
    write_table(layout.history(run_id), [], COLUMNS)
    save_checksums(run_id)


def export(run_id: str, finished: Finished, order: TrainOrder, manifest: Manifest, index: Index) -> None:
    """Write the evaluated models and the others, the history, the masks, and what went wrong."""
    owner, training = order.evaluate, order.training
    assert owner is not None
    assert training is not None
    if owner == "local" and not finished.private.best.get("local"):
        found = _models_of_clients(finished, training, manifest, index)
    else:
        found = (_best_models if order.evaluated == "best" else _last_models)(finished, owner)
    for client, which, adapter, about in found:
        write_adapter(layout.adapter(run_id, client, which), adapter, about)
    if order.evaluated == "best":
        lengths = {client: sum(e.tokens for e in index.learned(own["train"])) for client, own in manifest.items()}
        write_bytes(layout.masks(run_id), pack(pack_masks(finished.private.masks), {"tokens": lengths}))
    history = judged(finished.progress.history, owner)
    write_table(layout.history(run_id), [row.to_row() for row in history], columns_of(history))
    write_events(run_id, training, finished.progress)
    save_checksums(run_id)


Model = tuple[str, str, Adapter, Json | None]
"""Client, which of its models (see `layout.adapter`), its tensors, and what the file says about it."""


def _best_models(finished: Finished, owner: Owner) -> Iterator[Model]:
    """Each client's best round: the evaluated model, and the other one, teacher, student before it, and last round."""
    progress, private = finished
    if "server" in private.best:  # first: where the server's data are evaluated, its best round has the same name
        yield SERVER, "", progress.server.adapter, None
    for other, own in private.best.items():
        for client, best in own.items():
            yield client, "" if other == owner else other, best.adapter, _about(best)
    for client, best in private.best[owner].items():
        if "server" in private.best:
            yield client, "teacher", best.sent, None
        if private.masks and owner == "local":
            # The student before this round's teacher: analyses compare the two.
            yield client, "before", best.before, None
        if best.round != progress.round:
            last = progress.server if owner == "server" else private.states.get(client) or private.states[POOLED]
            yield client, "last", last.adapter, {"round": progress.round}


def _last_models(finished: Finished, owner: Owner) -> Iterator[Model]:
    """The last round: the server's model, or each evaluated client's own; and each client's best round."""
    progress, private = finished
    last = {SERVER: progress.server.adapter}
    if owner == "local" and POOLED in private.states:
        last = {SERVER: private.states[POOLED].adapter}
    elif owner == "local":
        last = {client: private.states[client].adapter for client in private.best["local"]}
    yield from ((name, "", model, {"round": progress.round}) for name, model in last.items())
    yield from ((client, "best", best.adapter, _about(best)) for client, best in private.best[owner].items())


def _models_of_clients(finished: Finished, training: Training, manifest: Manifest, index: Index) -> Iterator[Model]:
    """For examples that are of no client: the last model of each client that was ever drawn."""
    sizes = {client: len(index.learned(own["train"])) for client, own in manifest.items() if own["train"]}
    rounds = range(1, finished.progress.round + 1)
    for client in sorted(set().union(*(clients_of_round(training, sizes, number) for number in rounds))):
        yield SERVER, client, finished.private.states[client].adapter, {"round": finished.progress.round}


def _about(best: Best) -> Json:
    return {"round": best.round, "validation_loss": best.loss}
