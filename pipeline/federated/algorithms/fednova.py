"""AdaFedNova: federated averaging of each client's change per optimizer step, not of its total change.

Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization", NeurIPS 2020,
with a_i = 1: plain SGD, and AdamW, to which their a_i for momentum does not apply. Client i takes τ_i optimizer steps:

    d_i = (w − w_i) / τ_i          τ_eff = Σ p_i τ_i          w ← w − τ_eff Σ p_i d_i

If all τ_i are equal, this is AdaFedAvg.
"""

from collections.abc import Iterable

from pipeline.federated.algorithm import Algorithm, Context, Knobs, ServerState, Update, WeightedMean
from pipeline.federated.algorithms.fedavg import client_update

Hyperparameters = Knobs  # there are none


def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
    """w ← w − τ_eff Σ p_i d_i."""
    mean, steps = WeightedMean(), 0
    for update in updates:
        mean.add(
            {name: (w - update.adapter[name]) / update.steps for name, w in state.adapter.items()}, update.examples
        )
        steps += update.examples * update.steps
    effective, d = steps / mean.weight, mean.value()
    return ServerState({name: w - effective * d[name] for name, w in state.adapter.items()})


def build(_hyper: Hyperparameters) -> Algorithm:
    """Clients send their adapters; the server divides each change by its steps, and scales the mean by τ_eff."""
    return Algorithm(client_update, server_update, evaluates="server", stateful=False)
