"""FedBuff: the server starts the next round after the first K updates, and stale updates count less.

Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS 2022, Algorithms 1 and 2. A client
that received w in round v_i trains it to w_i and sends the change Δ_i. In round t, once K changes have arrived:

    Δ_i = w_i − w^(v_i)        s_i = (1 + t − v_i)^(−a)        w ← w + η Σ_i p_i s_i Δ_i

over these K, with p_i = n_i / Σ_j n_j (1 / K in the paper). A client that has answered can be selected for the next
round; the others continue to train the model that they received. If K is the number of all clients, no update is stale,
and with η = 1 this is AdaFedAvg.
"""

from collections.abc import Iterable

from pydantic import Field

from pipeline.federated.algorithm import Algorithm, Context, Knobs, ServerState, Update, WeightedMean
from pipeline.federated.algorithms.fedavg import local_training


class Hyperparameters(Knobs):
    """See Algorithm 1 and Section 5."""

    buffer: int = Field(ge=1, description="K, the number of updates that complete a round.")
    staleness: float = Field(
        default=0.5, ge=0, description="a, the exponent by which updates lose weight with age; 0.5 in the paper."
    )
    server_learning_rate: float = Field(
        default=1.0, gt=0, description="η, the server's learning rate; 1 adds the mean."
    )


def build(hyper: Hyperparameters) -> Algorithm:
    """AdaFedAvg's clients send changes, which the server weights by examples and by age in rounds."""

    def server_update(state: ServerState, updates: Iterable[Update], context: Context) -> ServerState:
        mean = WeightedMean()
        for update in updates:
            weight = (1 + context.round - update.version) ** -hyper.staleness
            mean.add({name: weight * tensor.double() for name, tensor in update.adapter.items()}, update.examples)
        moved, rate = mean.value(), hyper.server_learning_rate
        return ServerState({name: (w.double() + rate * moved[name]).to(w.dtype) for name, w in state.adapter.items()})

    train = local_training(sends_change=True)
    return Algorithm(train, server_update, evaluates="server", sends="change", stateful=False, buffer=hyper.buffer)
