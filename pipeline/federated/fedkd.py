"""AdaFedKD: each client distils from the shared adapter at every word.

Feng et al., Section III-C2, Eq. 6: AdaFedSelectKD without the selection, s_t = 1 for all t.
"""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict, Field

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.distillation import Distillation
from pipeline.federated.fedavg import server_update
from pipeline.federated.fedselectkd import LocalStart, distilling


class Hyperparameters(BaseModel):
    """λ in [0, 1], and where a client's round starts from."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    weight: float = Field(ge=0, le=1, alias="lambda")
    local_start: LocalStart = "own"


def build(hyper: Hyperparameters) -> Algorithm:
    client_update = distilling(Distillation(math.inf, hyper.weight), hyper.local_start)
    return Algorithm(client_update, server_update, evaluates="local")
