"""FedDC: daisy chains. Every second round the clients' models change places in place of being averaged.

Kamp et al., "Federated Learning from Small Datasets", ICLR 2023, Algorithm 1, as FedSum's paper uses it: a round of E
local epochs becomes two half-rounds of E / 2 for one draw of clients:

    first half:   client i trains w                     the server deals the models out, at random
    second half:  client i trains the model it is dealt server: w ← Σ p_i w_i

So `rounds` counts half-rounds, and a pair of them has the same clients.
"""

from collections.abc import Iterable

import torch

from pipeline.federated.algorithm import Algorithm, Context, Knobs, Sent, ServerState, Update
from pipeline.federated.algorithms.fedavg import client_update, mean_of
from pipeline.federated.randomness import Randomness

Hyperparameters = Knobs  # there are none
DEALT = "dealt"  # begins the names of the models that change places, in the server's memory


def shares(state: ServerState) -> Sent | list[Sent]:
    """w, or in a second half the model that each client is dealt."""
    places = range(len(state.memory) // len(state.adapter))
    dealt = [Sent({name: state.memory[f"{DEALT}.{place}.{name}"] for name in state.adapter}) for place in places]
    return dealt or Sent(state.adapter)


def server_update(state: ServerState, updates: Iterable[Update], context: Context) -> ServerState:
    """Deal the models out after a first half, average them after a second one."""
    if context.round % 2 == 0:
        return ServerState(mean_of(updates).value())
    models = [update.adapter for update in updates]
    order = torch.randperm(len(models), generator=Randomness(context.seed, DEALT, context.round).generator("deal"))
    dealt = {
        f"{DEALT}.{place}.{name}": tensor
        for place, model in enumerate(order.tolist())
        for name, tensor in models[model].items()
    }
    return ServerState(state.adapter, dealt)


def build(_hyper: Hyperparameters) -> Algorithm:
    """Two rounds a draw: an exchange of models, then their mean."""
    return Algorithm(client_update, server_update, evaluates="server", shares=shares, rounds_a_draw=2, stateful=False)
