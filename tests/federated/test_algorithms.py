"""Each algorithm against its formula, with adapters of one number and clients whose training is known."""

import math
from typing import Any

import pytest
import torch
from federations import build
from halfway import Halfway, number, one
from torch import Tensor

from pipeline.federated.algorithm import Algorithm, ClientState, Context, Sent, ServerState, ServerUpdate, Update
from pipeline.federated.algorithms import fedavg, fednova, fedopt, fedprox, fedselectkd, scaffold
from pipeline.federated.randomness import Randomness

RNG = Randomness(1, "client", 1)
CONTEXT = Context(seed=1, round=1)


def update(value: float, examples: int = 1, steps: int = 1, memory: dict[str, Tensor] | None = None) -> Update:
    return Update(one(value), examples, steps, memory or {})


NOVA = fednova.server_update


@pytest.mark.parametrize(
    ("rule", "updates", "expected"),
    [
        (fedavg.averaging("weighted"), [update(3.0, examples=1), update(5.0, examples=3)], (3 + 3 * 5) / 4),
        (fedavg.averaging("weighted"), [update(v, n) for v, n in ((1.0, 218), (2.0, 284), (3.0, 593))], 2565 / 1095),
        (fedavg.averaging("uniform"), [update(3.0, examples=1), update(5.0, examples=3)], (3 + 5) / 2),
        # Changes by 2 in 2 steps and by 9 in 3: d = −1, −3, mean −2, τ_eff = 2.5.
        (NOVA, [update(2.0, steps=2), update(9.0, steps=3)], 2.5 * 2),
        # The same with 1 and 3 examples: mean d = −2.5, τ_eff = (2 + 9) / 4.
        (NOVA, [update(2.0, examples=1, steps=2), update(9.0, examples=3, steps=3)], 2.75 * 2.5),
    ],
)
def test_averages_by_hand(rule: ServerUpdate, updates: list[Update], expected: float) -> None:
    assert number(rule(ServerState(one(0.0)), updates, CONTEXT).adapter) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("optimizer", "v", "expected"),
    [
        ("adam", None, 0.99e-6 + 0.01 * 9),
        ("yogi", None, 1e-6 + 0.01 * 9),
        ("adagrad", None, 1e-6 + 9),
        ("adam", 16.0, 0.99 * 16 + 0.01 * 9),
        ("yogi", 16.0, 16 - 0.01 * 9),
    ],
)
def test_fedopt_takes_the_optimizers_step(optimizer: fedopt.ServerOptimizer, v: float | None, expected: float) -> None:
    """w = 1, clients 3 and 5: Δ = 3, m = 0.1 · 3, v from v₀ = ε² = 1e-6 or from 16; w + η m / (√v + ε) with η = 0.1."""
    hyper = fedopt.Hyperparameters(server_optimizer=optimizer, server_learning_rate=0.1)
    state = ServerState(one(1.0), {} if v is None else {"v.w": torch.tensor([v])})
    after = fedopt.stepping(hyper)(state, [update(3.0), update(5.0)], CONTEXT)
    assert number(after.adapter) == pytest.approx(1 + 0.1 * 0.3 / (math.sqrt(expected) + 1e-3), rel=1e-6)
    assert after.memory["v.w"].item() == pytest.approx(expected, rel=1e-6)


def test_momentum_of_the_server_adds_up() -> None:
    """β = 0.5, Δ = 2 twice: m = 2, then 3; w = 0 → 2 → 5. AdaFedAvgM is the same with η = 1."""
    hyper = fedopt.Hyperparameters(server_optimizer="momentum", server_learning_rate=1.0, server_momentum=0.5)
    for algorithm in (fedopt.build(hyper), build("AdaFedAvgM", server_momentum=0.5)):
        first = algorithm.server_update(ServerState(one(0.0)), [update(2.0)], CONTEXT)
        second = algorithm.server_update(first, [update(4.0)], CONTEXT)
        assert (number(first.adapter), number(second.adapter)) == (2.0, 5.0)


def test_fedprox_pulls_towards_the_server_where_it_starts() -> None:
    """∇ (μ/2)(w − 1)² at w = 3 with μ = 0.5 is 1; at the start it is 0."""
    assert number(fedprox.proximal(0.5, one(1.0))(one(3.0))) == 1.0
    client = Halfway()
    algorithm = build("AdaFedProx", mu=0.5)
    algorithm.client_update(Sent(one(7.0)), ClientState(one(3.0)), client, RNG)
    assert client.trainings == [(7.0, None, 0.0)]


def test_scaffold_moves_its_variate_by_the_share_that_took_part() -> None:
    """Two clients with one of four examples each send 4 and 8: c = (4 + 8) / 4 = 3. The first trains on with 3 − 4."""
    algorithm = build("SCAFFOLD")
    server = algorithm.init(one(0.0), 4)
    clients = {"a": Halfway(slope=4.0), "b": Halfway(slope=8.0)}
    updates, states = [], {}
    for name, client in clients.items():
        states[name], sent, _ = algorithm.client_update(algorithm.shares(server), ClientState(one(0.0)), client, RNG)
        updates.append(sent)
    server = algorithm.server_update(server, updates, CONTEXT)
    assert server.memory["variate.w"].item() == 3.0
    algorithm.client_update(algorithm.shares(server), states["a"], clients["a"], RNG)
    assert clients["a"].trainings == [(0.0, None, 0.0), (0.0, None, -1.0)]


def test_scaffold_weighs_its_variates_by_examples() -> None:
    """1 and 3 of all 4 examples, variates 4 and 8: c = (4 + 3 · 8) / 4 = 7."""
    server = scaffold.init(one(0.0), 4)
    moved = [update(0.0, examples=n, memory={"variate.w": torch.tensor([v])}) for n, v in ((1, 4.0), (3, 8.0))]
    assert scaffold.server_update(server, moved, CONTEXT).memory["variate.w"].item() == 7.0


def test_ditto_sends_one_adapter_and_stores_another() -> None:
    """Shared 1, personal 5, the optimum is 3, μ = 0.5: sent 2, stored 4, the personal one pulled by 0.5 (5 − 1) = 2.

    Two trainings of 3 steps and 1.5 s each; the loss is the personal one's, its start.
    """
    client = Halfway(3.0, steps=3, seconds=1.5)
    algorithm = build("Ditto", mu=0.5)
    state, sent, trace = algorithm.client_update(Sent(one(1.0)), ClientState(one(5.0)), client, RNG)
    assert (number(sent.adapter), number(state.adapter)) == (2.0, 4.0)
    assert client.trainings == [(1.0, None, None), (5.0, None, 2.0)]
    assert (sent.steps, trace.steps, trace.seconds, trace.loss) == (6, 6, 3.0, 5.0)
    assert algorithm.passes == 2


@pytest.mark.parametrize(
    ("own", "share", "expected"),
    [(2.0, 1 / 4, 6.0), (6.0, 3 / 4, 2.0), (2.0, 1.0, 5.0)],
    ids=["without the first", "without the second", "a single client"],
)
def test_the_mean_of_the_others(own: float, share: float, expected: float) -> None:
    """2 with 1 example and 6 with 3: w = 5. Without others the teacher is the server."""
    assert number(fedselectkd.others_mean(one(5.0), one(own), share)) == pytest.approx(expected)


def teachers_of(algorithm: Algorithm) -> list[float | None]:
    """Which adapter taught the first of two clients, round by round."""
    clients = {"a": Halfway(2.0), "b": Halfway(6.0)}
    server = algorithm.init(one(0.0), 2)
    states = {name: ClientState(one(0.0)) for name in clients}
    for round_number in (1, 2):
        updates = []
        for name, client in clients.items():
            rng = Randomness(1, name, round_number)
            states[name], sent, _ = algorithm.client_update(algorithm.shares(server), states[name], client, rng)
            updates.append(sent)
        server = algorithm.server_update(server, updates, Context(1, round_number))
    return [teacher for _, teacher, _ in clients["a"].trainings]


@pytest.mark.parametrize(
    ("knobs", "expected"),
    [
        ({"teacher": "server"}, [0.0, 2.0]),
        ({"teacher": "initial"}, [0.0, 0.0]),
        ({"teacher": "own"}, [0.0, 1.0]),
        ({"teacher": "others"}, [0.0, 3.0]),
        ({"kd_from_round": 2}, [None, 2.0]),
    ],
)
def test_every_teacher_is_the_named_adapter(knobs: dict[str, Any], expected: list[float]) -> None:
    """After round 1 the clients have 1 and 3 and the server 2."""
    assert teachers_of(build("AdaFedSelectKD", tau=5.0, weight=0.2, **knobs)) == expected


@pytest.mark.parametrize(("state", "expected"), [("keep", {"m"}), ("fresh", set())])
def test_moments_are_stored_only_if_requested(state: Any, expected: set[str]) -> None:
    selective = build("AdaFedSelectKD", tau=5.0, weight=0.2, client_optimizer_state=state)
    for algorithm in (build("AdaFedAvg", client_optimizer_state=state), selective):
        after, _, _ = algorithm.client_update(Sent(one(0.0)), ClientState(one(0.0)), Halfway(), RNG)
        assert set(after.memory) == expected
