"""AdaFedNova: federated averaging of each client's change per optimizer step, not of its total change.

Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization", NeurIPS 2020,
with a_i = 1, since their a_i for momentum SGD does not apply to AdamW. Client i takes τ_i optimizer steps:

    d_i = (w − w_i) / τ_i          τ_eff = Σ p_i τ_i          w ← w − τ_eff Σ p_i d_i

If all τ_i are equal, this is AdaFedAvg.
"""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.federated.algorithm import Algorithm, Context, Knobs, ServerState, Update, WeightedMean
from pipeline.federated.algorithms.fedavg import client_update
from pipeline.model.adapter import Adapter


class Hyperparameters(Knobs):
    """There are none."""


def change_per_step(server: Adapter, update: Update) -> Adapter:
    """d_i = (w − w_i) / τ_i."""
    return {name: (w - update.adapter[name]) / update.steps for name, w in server.items()}


def server_update(state: ServerState, updates: Iterable[Update], _context: Context) -> ServerState:
    """w ← w − τ_eff Σ p_i d_i."""
    mean_step, steps = WeightedMean(), 0
    for update in updates:
        mean_step.add(change_per_step(state.adapter, update), update.examples)
        steps += update.examples * update.steps
    effective, d = steps / mean_step.weight, mean_step.value()
    return ServerState({name: w - effective * d[name] for name, w in state.adapter.items()})


def build(_hyper: Hyperparameters) -> Algorithm:
    """The algorithm with these hyperparameters."""
    return Algorithm(client_update, server_update, evaluates="server", stateful=False)
