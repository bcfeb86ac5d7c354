"""Training on meetings: adapters of a language model, on stored prefixes or token ids."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.errors import QuorumError
from pipeline.federated.history import OnRound
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.model.backbone import Backbone
from pipeline.model.lora import init_lora
from pipeline.plan.orders import Training
from pipeline.runs.index import Encoded
from pipeline.runs.training import POOLED, Finished, Learners, in_process, local_training, train
from pipeline.workspace import layout


def train_on_meetings(order: Training, encoded: Encoded, key: str, run_id: str, on_round: OnRound) -> Finished:
    """Train on meetings; see `train`."""

    def load(advance: Callable[[int], None], pooled: bool) -> Learners:
        return learners(order, encoded, advance, pooled=pooled)

    examples = sum(len(splits["train"]) for splits in encoded.clients.values())
    return train(order, in_process(order, key, load), examples, key, run_id, on_round)


def learners(order: Training, encoded: Encoded, advance: Callable[[int], None], *, pooled: bool) -> Learners:
    """Build the clients, which all train and are evaluated; `pooled`: one client trains on the data of all."""
    # These imports take seconds, and a finished training needs none.
    from pipeline.federated.inputs import inputs
    from pipeline.federated.local import LocalClientData
    from pipeline.model.loader import Loader
    from pipeline.model.loading import planned_backbone

    backbone = planned_backbone(order)
    initial = initial_adapter(order, backbone)
    loader = Loader(layout.store(), backbone.device)
    everything = [e for splits in encoded.clients.values() for own in splits.values() for e in own]
    seen, load = inputs(order, backbone, loader, everything, dropped=order.dropout)
    local = local_training(order)
    clients = {
        name: LocalClientData(splits["train"], splits["val"], seen, load, local, advance, order.weights.get(name, 1.0))
        for name, splits in encoded.clients.items()
    }
    if not pooled:
        return Learners(initial, clients, clients)
    together = [entry for splits in encoded.clients.values() for entry in splits["train"]]
    return Learners(initial, {POOLED: LocalClientData(together, [], seen, load, local, advance)}, clients)


def initial_adapter(order: Training, backbone: Backbone) -> Adapter:
    """Create the adapter with which all clients begin, of the order's kind.

    Raises:
        QuorumError: LoRA with fewer than two adapted layers.
    """
    if order.lora_rank is None:
        return init_adapter(backbone.adapted_layers, backbone.width, order.bottleneck or 0, order.seed)
    shapes = backbone.lora_shapes()
    if not shapes:
        raise QuorumError("adapter: lora acts above the first adapted layer; set adapted_layers: 2 or more")
    return init_lora(shapes, order.lora_rank, order.seed)
