"""AdaFedNova: federated averaging of what each client changed a step, not in all.

Wang et al., "Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization", NeurIPS 2020,
with a_i = 1: their a_i for momentum SGD does not hold for AdamW. Client i takes τ_i optimizer steps;

    d_i = (w − w_i) / τ_i          τ_eff = Σ p_i τ_i          w ← w − τ_eff Σ p_i d_i

Where all τ_i are equal this is AdaFedAvg.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.federated.algorithm import Algorithm, Context, Knobs, ServerState, Update, weighted_average
from pipeline.federated.algorithms.fedavg import client_update
from pipeline.model.adapter import Adapter


class Hyperparameters(Knobs):
    """None of its own."""


def a_step(server: Adapter, update: Update) -> Adapter:
    """d_i = (w − w_i) / τ_i."""
    return {name: (w - update.adapter[name]) / update.steps for name, w in server.items()}


def server_update(state: ServerState, updates: Sequence[Update], _context: Context) -> ServerState:
    examples = [update.examples for update in updates]
    mean_step = weighted_average([a_step(state.adapter, update) for update in updates], examples)
    effective = sum(update.examples * update.steps for update in updates) / sum(examples)
    return ServerState({name: w - effective * mean_step[name] for name, w in state.adapter.items()})


def build(_hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, server_update, evaluates="server")
