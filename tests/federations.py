"""Clients over a tiny backbone, and trainings of them: what the tests of federated learning share."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from conftest import make_backbone

from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import Algorithm, ClientState
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Callback, Checkpointing, Stopping
from pipeline.federated.local import LocalClientData
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Private
from pipeline.model.adapter import Adapter, init_adapter
from pipeline.runs.training import POOLED, Finished

Make = Callable[..., LocalClientData]
BACKBONE = make_backbone("llama")
INITIAL = init_adapter(BACKBONE.adapted_layers, BACKBONE.width, 8, seed=3)

MIDDLE = 4.92
"""About the median of the tiny teacher's entropies, in nats: some tokens are distilled, some are not."""

KEY = "key"
"""The key of every training's checkpoint."""


def build(method: str, **knobs: Any) -> Algorithm:
    """An algorithm by its method's name, with its hyperparameters."""
    module = import_module(ALGORITHMS[method])
    return module.build(module.Hyperparameters.model_validate(knobs))  # type: ignore[no-any-return]


SINGLE = build("AdaSingle")
CENTRALIZED = build("AdaCentralized")
FEDAVG = build("AdaFedAvg")


def select(tau: float | str, weight: float = 0.2, local_start: Any = "own") -> Algorithm:
    return build("AdaFedSelectKD", tau=tau, weight=weight, local_start=local_start)


def kd(weight: float = 0.2, local_start: Any = "own") -> Algorithm:
    return build("AdaFedKD", weight=weight, local_start=local_start)


def train(
    algorithm: Algorithm, clients: Mapping[str, LocalClientData], rounds: int = 2, *, initial: Adapter = INITIAL,
    patience: int = 3, seed: int = 5, clients_per_round: int | None = None, joins: Mapping[str, int] | None = None,
    checkpoints: Path | None = None, callbacks: Sequence[Callback] = (), done: Finished | None = None,
) -> Finished:  # fmt: skip
    """Train as a run does. `pooled` is the one client of a method that pools all data.

    Args:
        checkpoints: the folder for each round's checkpoint.
        done: the training to continue; None starts a new one.
    """
    trained = {POOLED: clients[POOLED]} if algorithm.pooled else clients
    evaluated = {name: data for name, data in clients.items() if name != POOLED}
    private = done.private if done else begin({name: ClientState(initial) for name in trained}, checkpoints)
    engine = InProcess(algorithm, trained, evaluated, private, seed=seed)
    saving = [Checkpointing(KEY, private)] if checkpoints else []
    begun = done.progress if done else initial_progress(algorithm, initial, engine)
    who, ending = Participation(clients_per_round, joins or {}), Stopping(rounds, patience, joins or {})
    return Finished(run_rounds(algorithm, engine, begun, who, [ending, *saving, *callbacks], seed=seed), private)


def begin(states: Mapping[str, ClientState], folder: Path | None = None) -> Private:
    """Client states that stay in memory unless a checkpoint is written."""
    return Private.begin(Blobs(folder), states)


def same(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def server_of(run: Finished) -> Adapter:
    return run.progress.server.adapter


def locals_of(run: Finished) -> dict[str, Adapter]:
    return {name: state.adapter for name, state in run.private.states.items()}


def same_locals(a: Finished, b: Finished) -> bool:
    return all(same(adapter, locals_of(b)[name]) for name, adapter in locals_of(a).items())


def three(make_client: Make) -> dict[str, LocalClientData]:
    return {name: make_client(BACKBONE, at, 4) for at, name in ((0, "A"), (10, "B"), (20, "C"))}
