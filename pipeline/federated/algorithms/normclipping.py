"""NormClipping: federated averaging of changes that are clipped to a norm.

Sun et al., "Can You Really Backdoor Federated Learning?", 2019, Section 4. With the change d_i = w_i − w of client i:

    w ← w + Σ p_i d_i / max(1, ‖d_i‖ / M)

A client can move the server's adapter by at most p_i M. If no change is longer than M, this is AdaFedAvg.
"""

from pydantic import Field
from torch import Tensor

from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.robust import aggregating


class Hyperparameters(Knobs):
    """See Section 4."""

    max_norm: float = Field(gt=0, description="M, the largest Euclidean norm of a change, over all parameters.")


def build(hyper: Hyperparameters) -> Algorithm:
    """The server's adapter plus the weighted mean of changes, each of norm `max_norm` at most."""

    def clipped(updates: Tensor, server: Tensor, examples: Tensor) -> Tensor:
        changes = updates - server
        factors = (hyper.max_norm / changes.norm(dim=1).clamp(min=hyper.max_norm))[:, None]
        weights = (examples / examples.sum())[:, None]
        moved: Tensor = (weights * factors * changes).sum(0)
        return server + moved

    return aggregating(clipped)
