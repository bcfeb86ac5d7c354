"""Krum: the server takes the update that lies nearest to most others; multi-Krum the mean of several such.

Blanchard et al., "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent", NeurIPS 2017, Section 4:

    s(i) = Σ of ‖w_i − w_j‖² over the n − f − 2 clients j that are nearest to i
    w ← mean of the m updates with the least s

m = 1 is Krum. f of n clients may be bad, where n ≥ 2f + 3. Clients count alike, whatever they hold.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.fedavg import client_update
from pipeline.federated.algorithms.robust import Rule, aggregating


class Hyperparameters(Knobs):
    """f, how many clients may be bad; m, the mean of how many updates is taken."""

    faulty: int = Field(ge=0)
    chosen: int = Field(default=1, ge=1)


def krum(faulty: int, chosen: int) -> Rule:
    def rule(updates: Tensor, _server: Tensor, _examples: Tensor) -> Tensor:
        """
        Raises:
            QuorumError: too few answered for so many bad ones, or for so many to be chosen.
        """
        count = len(updates)
        if count < 2 * faulty + 3 or chosen > count - faulty - 2:
            needed = max(2 * faulty + 3, chosen + faulty + 2)
            raise QuorumError(
                f"faulty: {faulty}, chosen: {chosen}: Krum needs {needed} clients in a round, and {count} answered; "
                "lower them, or let more clients take part"
            )
        best = scores(updates, faulty).sort(stable=True).indices[:chosen]
        return updates[best].mean(0)

    return rule


def scores(updates: Tensor, faulty: int) -> Tensor:
    """s of each client, (clients,)."""
    squared = torch.stack([((updates - own) ** 2).sum(1) for own in updates])
    # The nearest of all is the client itself, at 0.
    return squared.sort(dim=1).values[:, 1 : len(updates) - faulty - 1].sum(1)


def build(hyper: Hyperparameters) -> Algorithm:
    rule = krum(hyper.faulty, hyper.chosen)
    return Algorithm(client_update, aggregating(rule), evaluates="server", keeps=False)
