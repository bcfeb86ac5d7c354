"""Clients whose model is one number: training goes halfway to a client's best number, from which the validation loss is
the distance. What the tests of engines and rounds share.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from federations import begin

from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import Algorithm, ClientState, Fit, Pull, Trace
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import Objective
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter


def one(value: float) -> Adapter:
    return {"w": torch.tensor([value])}


def number(adapter: Adapter) -> float:
    return adapter["w"].item()


@dataclass
class Halfway:
    """See the module's own words."""

    best: float
    examples: int = 1
    scored: int = 0

    def fit(
        self,
        start: Adapter,
        rng: Randomness,
        objective: Objective = CROSS_ENTROPY,
        *,
        pull: Pull | None = None,
        moments: Adapter | None = None,
    ) -> Fit:
        del objective, pull, moments
        mask = torch.tensor([[rng.round % 2 == 1, False]])
        trace = Trace(loss=rng.number("loss"), steps=1, seconds=0.0, masks={"odd": mask})
        return Fit(one((number(start) + self.best) / 2), trace, {})

    def gradient(self, adapter: Adapter) -> Adapter:
        return adapter

    def validation_loss(self, adapter: Adapter) -> float:
        self.scored += 1
        return abs(number(adapter) - self.best)


def engine(algorithm: Algorithm, kind: type[InProcess] = InProcess, seed: int = 1, **best: float) -> InProcess:
    """Clients by name and best number; all begin at 0."""
    clients = {name: Halfway(value) for name, value in best.items()}
    private = begin({name: ClientState(one(0.0)) for name in clients})
    return kind(algorithm, clients, clients, private, seed=seed)
