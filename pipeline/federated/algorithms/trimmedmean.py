"""TrimmedMean: the server leaves out, number by number, the f least and the f largest of the clients'.

Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018, Definition 2:

    w[k] ← mean of the n − 2f values of w_i[k] in the middle

f bad clients are withstood; f = 0 is the plain mean. Clients count alike, whatever they hold.
"""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.fedavg import client_update
from pipeline.federated.algorithms.robust import Rule, aggregating


class Hyperparameters(Knobs):
    """f, how many clients may be bad."""

    faulty: int = Field(ge=0)


def trimmed(faulty: int) -> Rule:
    def rule(updates: Tensor, _server: Tensor, _examples: Tensor) -> Tensor:
        """
        Raises:
            QuorumError: nothing is left in the middle.
        """
        count = len(updates)
        if count <= 2 * faulty:
            raise QuorumError(
                f"faulty: {faulty}: a trimmed mean needs {2 * faulty + 1} clients in a round, and {count} answered; "
                "lower it, or let more clients take part"
            )
        return updates.sort(dim=0).values[faulty : count - faulty].mean(0)

    return rule


def build(hyper: Hyperparameters) -> Algorithm:
    return Algorithm(client_update, aggregating(trimmed(hyper.faulty)), evaluates="server", keeps=False)
