"""Clients over a tiny backbone, and trainings of them: what the tests of federated learning share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from conftest import make_backbone

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import centralized, fedavg, fedkd, fedselectkd, single
from pipeline.federated.local import StoredClientData
from pipeline.federated.loop import POOLED, Progress, Schedule, run_rounds, start
from pipeline.model.adapter import Adapter, init_adapter

Make = Callable[..., StoredClientData]
BACKBONE = make_backbone("llama")
INITIAL = init_adapter(BACKBONE.adapted_layers, BACKBONE.width, 8, seed=3)

MIDDLE = 4.92
"""About the median of the tiny teacher's entropies, in nats: some tokens are distilled, some are not."""

SINGLE = single.build(single.Hyperparameters())
CENTRALIZED = centralized.build(centralized.Hyperparameters())
FEDAVG = fedavg.build(fedavg.Hyperparameters())


def select(tau: float, weight: float = 0.2, local_start: Any = "own") -> Algorithm:
    return fedselectkd.build(fedselectkd.Hyperparameters(tau=tau, weight=weight, local_start=local_start))


def kd(weight: float = 0.2, local_start: Any = "own") -> Algorithm:
    return fedkd.build(fedkd.Hyperparameters(weight=weight, local_start=local_start))


def train(algorithm: Algorithm, clients: dict[str, StoredClientData], rounds: int = 2, **schedule: Any) -> Progress:
    trained = {POOLED: clients["pooled"]} if algorithm.pooled else clients
    evaluated = {name: data for name, data in clients.items() if name != POOLED}
    return run_rounds(
        algorithm,
        trained,
        evaluated,
        start(algorithm, trained, INITIAL),
        Schedule(rounds, patience=3, **schedule),
        seed=5,
        on_round=lambda progress: None,
    )


def same(a: Adapter, b: Adapter) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def locals_of(progress: Progress) -> dict[str, Adapter]:
    return {name: state.adapter for name, state in progress.clients.items()}


def same_locals(a: Progress, b: Progress) -> bool:
    return all(same(adapter, locals_of(b)[name]) for name, adapter in locals_of(a).items())


def three(make_client: Make) -> dict[str, StoredClientData]:
    return {name: make_client(BACKBONE, at, 4) for at, name in ((0, "A"), (10, "B"), (20, "C"))}
