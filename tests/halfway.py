"""Clients whose model is one number, for tests of engines and rounds.

Training goes halfway to the client's optimum; the validation loss is the distance from it. All clients begin at 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from federations import begin

from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import Algorithm, ClientState, Fit, Pull, Sent, Trace
from pipeline.federated.callbacks import Stopping
from pipeline.federated.engine import Arrival, Engine
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.federated.objectives.objective import Objective
from pipeline.federated.randomness import Randomness
from pipeline.federated.state import Progress
from pipeline.federated.tolerance import STRICT, Tolerance
from pipeline.model.adapter import Adapter


def one(*values: float) -> Adapter:
    return {"w": torch.tensor(values)}


def number(adapter: Adapter) -> float:
    return adapter["w"].item()


@dataclass
class Halfway:
    """A client with its optimum; counts how often it is scored."""

    optimum: float
    examples: int = 1
    scored: int = 0

    def fit(
        self, start: Adapter, rng: Randomness, objective: Objective = CROSS_ENTROPY, *, pull: Pull | None = None,
        moments: Adapter | None = None,
    ) -> Fit:  # fmt: skip
        del objective, pull, moments
        mask = torch.tensor([[rng.round % 2 == 1, False]])
        trace = Trace(loss=rng.number("loss"), steps=1, seconds=0.0, masks={"odd": mask})
        return Fit(one((number(start) + self.optimum) / 2), trace, {})

    def gradient(self, adapter: Adapter) -> Adapter:
        return adapter

    def validation_loss(self, adapter: Adapter) -> float:
        self.scored += 1
        return abs(number(adapter) - self.optimum)


def engine(algorithm: Algorithm, kind: type[InProcess] = InProcess, seed: int = 1, **optima: float) -> InProcess:
    """Clients by name and optimum."""
    clients = {name: Halfway(value) for name, value in optima.items()}
    private = begin({name: ClientState(one(0.0)) for name in clients})
    return kind(algorithm, clients, clients, private, seed=seed)


def answers(made: InProcess, name: str, *sent: float, version: int = 1) -> Iterator[Arrival]:
    """The answers of one client that is assigned these numbers in consecutive rounds."""
    for i, value in enumerate(sent):
        made.submit(name, Sent(one(value)), version + i)
    yield from made.arrivals()


def run(
    algorithm: Algorithm,
    made: Engine,
    rounds: int = 1,
    rules: Tolerance = STRICT,
    who: Participation | None = None,
    *,
    initial: Adapter | None = None,
    examples: int = 1,
) -> Progress:
    """Train for so many rounds."""
    begun = initial_progress(algorithm, one(0.0) if initial is None else initial, examples)
    return run_rounds(algorithm, made, begun, who or Participation(), [Stopping(rounds, 99)], seed=1, rules=rules)
