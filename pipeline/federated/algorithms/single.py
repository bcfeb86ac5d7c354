"""AdaSingle: each client trains on its own data alone.

The lower reference of Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting
Summarization", Section IV-B:

    w_i ← client i trains w_i

Nothing is sent, and there is no server's model.
"""

from pipeline.federated.algorithm import Algorithm, ClientData, ClientResult, ClientState, Knobs, Sent
from pipeline.federated.algorithms.fedavg import result_of
from pipeline.federated.randomness import Randomness

Hyperparameters = Knobs  # there are none


def client_update(_sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
    """Continue from the client's own adapter."""
    return result_of(data.fit(state.adapter, rng), data)


def build(_hyper: Hyperparameters, *, pooled: bool = False) -> Algorithm:
    """Each client's own training; nothing is sent. `pooled`: one client has all examples."""
    return Algorithm(client_update, lambda server, *_: server, evaluates="local", sends="nothing", pooled=pooled)
