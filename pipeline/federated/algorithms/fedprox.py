"""AdaFedProx: federated averaging with a penalty on a client's distance from the server's adapter.

Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, Algorithm 2. Client i minimizes

    F_i(w) + (μ/2) ‖w − w_server‖²

where the squared norm is summed over all tensors, so that μ (w − w_server) is added to every gradient. With μ = 0 this
is AdaFedAvg.
"""

from functools import partial

from pydantic import Field

from pipeline.federated.algorithm import Algorithm, Knobs, Pull
from pipeline.federated.algorithms.fedavg import averaging, local_training
from pipeline.model.adapter import Adapter


class Hyperparameters(Knobs):
    """See Algorithm 2."""

    mu: float = Field(ge=0, description="μ, the weight of the proximal term.")


def proximal(mu: float, anchor: Adapter) -> Pull:
    """∇ (μ/2) ‖w − anchor‖² = μ (w − anchor)."""
    return lambda adapter: {name: mu * (w - anchor[name].to(w.device)) for name, w in adapter.items()}


def build(hyper: Hyperparameters) -> Algorithm:
    """AdaFedAvg with the gradient of the proximal term, mu (w - server), added at each step."""
    client_update = local_training(pull=partial(proximal, hyper.mu))
    return Algorithm(client_update, averaging(), evaluates="server", stateful=False)
