"""TrimmedMean: each parameter of the server is a mean of the clients' values without the f least and f largest.

Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018, Definition 2:

    w[k] ← mean of the n − 2f values of w_i[k] in the middle

It tolerates f faulty clients; f = 0 is the plain mean. All clients have equal weights.
"""

from __future__ import annotations

from pydantic import Field
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.fedavg import client_update
from pipeline.federated.algorithms.robust import Rule, aggregating


class Hyperparameters(Knobs):
    """See Definition 2."""

    faulty: int = Field(ge=0, description="f, the number of faulty clients to tolerate.")


def trimmed(faulty: int) -> Rule:
    """The rule for f faulty clients.

    Raises:
        QuorumError: the rule received 2f updates or fewer.
    """

    def rule(updates: Tensor, _server: Tensor, _examples: Tensor) -> Tensor:
        count = len(updates)
        if count <= 2 * faulty:
            raise QuorumError(
                f"faulty: {faulty}: a trimmed mean needs {2 * faulty + 1} clients in a round, and {count} answered; "
                "lower it, or let more clients take part"
            )
        return updates.sort(dim=0).values[faulty : count - faulty].mean(0)

    return rule


def build(hyper: Hyperparameters) -> Algorithm:
    """The algorithm with these hyperparameters."""
    return Algorithm(client_update, aggregating(trimmed(hyper.faulty)), evaluates="server", stateful=False)
