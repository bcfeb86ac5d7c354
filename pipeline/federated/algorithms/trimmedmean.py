"""TrimmedMean: each parameter of the server is a mean of the clients' values without the f least and f largest.

Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates", ICML 2018, Definition 2:

    w[k] ← mean of the n − 2f values of w_i[k] in the middle

It tolerates f faulty clients; f = 0 is the plain mean. All clients have equal weights.
"""

from pydantic import Field
from torch import Tensor

from pipeline.federated.algorithm import Algorithm, Knobs
from pipeline.federated.algorithms.robust import aggregating


class Hyperparameters(Knobs):
    """See Definition 2."""

    faulty: int = Field(ge=0, description="f, the number of faulty clients to tolerate.")


def build(hyper: Hyperparameters) -> Algorithm:
    """The coordinate-wise mean without the `faulty` least and largest values."""
    faulty = hyper.faulty

    def trimmed(updates: Tensor, _server: Tensor, _examples: Tensor) -> Tensor:
        return updates.sort(dim=0).values[faulty : len(updates) - faulty].mean(0)

    return aggregating(trimmed, 2 * faulty + 1, f"faulty: {faulty}: a trimmed mean")
