"""Krum: the server takes the update that is nearest to most others; multi-Krum takes the mean of several such updates.

Blanchard et al., "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent", NeurIPS 2017, Section 4:

    s(i) = Σ of ‖w_i − w_j‖² over the n − f − 2 clients j that are nearest to i
    w ← mean of the m updates with the least s

m = 1 is Krum. It tolerates f faulty clients of n ≥ 2f + 3. All clients have equal weights.
"""

import torch
from pydantic import Field
from torch import Tensor

from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.robust import aggregating


class Hyperparameters(Knobs):
    """See Section 4."""

    faulty: int = Field(ge=0, description="f, the number of faulty clients to tolerate.")
    chosen: int = Field(default=1, ge=1, description="m, the number of updates to average; 1 is Krum.")


def scores(updates: Tensor, faulty: int) -> Tensor:
    """s of each client: (clients, parameters) -> (clients,)."""
    squared = torch.stack([((updates - own) ** 2).sum(1) for own in updates])
    # The first is the client's distance to itself, 0.
    return squared.sort(dim=1).values[:, 1 : len(updates) - faulty - 1].sum(1)


def build(hyper: Hyperparameters) -> Algorithm:
    """The mean of the `chosen` updates with the least sums of distances to their neighbours."""
    faulty, chosen = hyper.faulty, hyper.chosen

    def krum(updates: Tensor, _server: Tensor, _examples: Tensor) -> Tensor:
        best = scores(updates, faulty).sort(stable=True).indices[:chosen]
        return updates[best].mean(0)

    needed = max(2 * faulty + 3, chosen + faulty + 2)
    return aggregating(krum, needed, f"faulty: {faulty}, chosen: {chosen}: Krum")
