"""Each algorithm against its formula, with adapters of few numbers and clients whose training is known."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from federations import FEDAVG, build
from halfway import Halfway, engine, number, one, run

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, ClientState, Context, Sent, ServerState, Update
from pipeline.federated.algorithms import fedopt, fedprox, fedselectkd
from pipeline.federated.algorithms.krum import scores
from pipeline.federated.loop import initial_progress
from pipeline.federated.randomness import Randomness

RNG = Randomness(1, "client", 1)
CONTEXT = Context(seed=1, round=4)


def updates(*values: Any, examples: Any = None, steps: Any = None, rounds: Any = None) -> list[Update]:
    """An update for each number or tuple of numbers; 1 for what is not given."""
    adapters, ones = [one(*(v if isinstance(v, tuple) else (v,))) for v in values], (1,) * len(values)
    columns = zip(adapters, examples or ones, steps or ones, rounds or ones, strict=True)
    return [Update(adapter, n, k, version=number) for adapter, n, k, number in columns]


NOVA, MEDIAN = build("AdaFedNova"), build("Median")
TRIMMED, KRUM, CLIPPED = (partial(build, method) for method in ("TrimmedMean", "Krum", "NormClipping"))
BUFFERED = partial(build, "FedBuff", buffer=2)
STALE = updates(2.0, 8.0, rounds=(4, 1))
"""In round 4, a change of round 4 and one of round 1, which have s = 1 and s = 4^−a."""
RULES = [
    (FEDAVG, updates(3.0, 5.0, examples=(1, 3)), [0.0], [(3 + 3 * 5) / 4]),
    (FEDAVG, updates(1.0, 2.0, 3.0, examples=(218, 284, 593)), [0.0], [2565 / 1095]),
    (build("AdaFedAvg", aggregation="uniform"), updates(3.0, 5.0, examples=(1, 3)), [0.0], [(3 + 5) / 2]),
    # Changes by 2 in 2 steps and by 9 in 3: d = −1, −3, mean −2, τ_eff = 2.5.
    (NOVA, updates(2.0, 9.0, steps=(2, 3)), [0.0], [2.5 * 2]),
    # The same with 1 and 3 examples: mean d = −2.5, τ_eff = (2 + 9) / 4.
    (NOVA, updates(2.0, 9.0, examples=(1, 3), steps=(2, 3)), [0.0], [2.75 * 2.5]),
    (BUFFERED(), STALE, [10.0], [10 + (2 + 0.5 * 8) / 2]),
    (BUFFERED(), updates(2.0, 8.0, examples=(3, 1), rounds=(4, 1)), [10.0], [10 + (3 * 2 + 1 * 0.5 * 8) / 4]),
    (BUFFERED(staleness=0.0), STALE, [10.0], [10 + (2 + 8) / 2]),
    (BUFFERED(staleness=0.0, server_learning_rate=0.5), STALE, [10.0], [10 + 0.5 * (2 + 8) / 2]),
    (MEDIAN, updates(1.0, 1000.0, 3.0), [0.0], [3.0]),
    (MEDIAN, updates(1.0, 1000.0, 2.0, 4.0), [0.0], [(2 + 4) / 2]),
    (MEDIAN, updates((1.0, 9.0), (2.0, 5.0), (3.0, 1.0)), [0.0, 0.0], [2.0, 5.0]),
    (TRIMMED(faulty=1), updates(-1000.0, 6.0, 1.0, 1000.0, 2.0), [0.0], [(1 + 2 + 6) / 3]),
    (TRIMMED(faulty=0), updates(1.0, 5.0, examples=(30, 10)), [0.0], [(1 + 5) / 2]),
    # M = 5: (3, 4) has norm 5 and stays, (60, 80) becomes (3, 4).
    (CLIPPED(max_norm=5.0), updates((3.0, 4.0), (60.0, 80.0)), [0.0, 0.0], [3.0, 4.0]),
    # M = 2, from 1: changes 1 (of 3 examples) and 2 (of 1 example, clipped from 9).
    (CLIPPED(max_norm=2.0), updates(2.0, 10.0, examples=(3, 1)), [1.0], [1 + (3 * 1 + 1 * 2) / 4]),
    # The least scores below are of 1 and, of two that are equal, of the first, 0.
    (KRUM(faulty=1), updates(0.0, 1.0, 2.0, 4.0, 100.0), [0.0], [1.0]),
    (KRUM(faulty=1, chosen=2), updates(0.0, 1.0, 2.0, 4.0, 100.0), [0.0], [(1 + 0) / 2]),
]
TOO_FEW = [
    (KRUM(faulty=1), 4, "faulty: 1, chosen: 1: Krum needs 5 clients in a round, and 4 answered"),
    (KRUM(faulty=1, chosen=3), 5, "faulty: 1, chosen: 3: Krum needs 6 clients in a round, and 5 answered"),
    (TRIMMED(faulty=2), 4, "faulty: 2: a trimmed mean needs 5 clients in a round, and 4 answered"),
]
STEPS = [
    ("adam", None, 0.99e-6 + 0.01 * 9),
    ("yogi", None, 1e-6 + 0.01 * 9),
    ("adagrad", None, 1e-6 + 9),
    ("adam", 16.0, 0.99 * 16 + 0.01 * 9),
    ("yogi", 16.0, 16 - 0.01 * 9),
]
TEACHERS = [
    ({"teacher": "server"}, [0.0, 2.0]),
    ({"teacher": "initial"}, [0.0, 0.0]),
    ({"teacher": "own"}, [0.0, 1.0]),
    ({"teacher": "others"}, [0.0, 3.0]),
    ({"kd_from_round": 2}, [None, 2.0]),
]


@pytest.mark.parametrize(("algorithm", "arrived", "server", "expected"), RULES)
def test_rules_by_hand(algorithm: Algorithm, arrived: list[Update], server: list[float], expected: list[float]) -> None:
    after = algorithm.server_update(ServerState(one(*server)), arrived, CONTEXT)
    assert after.adapter["w"].tolist() == pytest.approx(expected, rel=1e-7)


def test_krum_scores_by_the_nearest() -> None:
    """0, 1, 2, 4, 100 with f = 1: each sums its two nearest. 0: 1 + 4; 1: 1 + 1; 2: 1 + 4; 4: 4 + 9; 100: 96² + 98²."""
    rows = torch.tensor([[0.0], [1.0], [2.0], [4.0], [100.0]], dtype=torch.float64)
    assert scores(rows, 1).tolist() == [5.0, 2.0, 5.0, 13.0, 96.0**2 + 98.0**2]


@pytest.mark.parametrize(("algorithm", "count", "message"), TOO_FEW)
def test_too_few_updates_are_refused(algorithm: Algorithm, count: int, message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        algorithm.server_update(ServerState(one(0.0)), updates(*range(count)), CONTEXT)


@pytest.mark.parametrize(("optimizer", "v", "expected"), STEPS)
def test_fedopt_takes_the_optimizers_step(optimizer: fedopt.ServerOptimizer, v: float | None, expected: float) -> None:
    """w = 1, clients 3 and 5: Δ = 3, m = 0.1 · 3, v from v₀ = ε² = 1e-6 or from 16; w + η m / (√v + ε) with η = 0.1."""
    hyper = fedopt.Hyperparameters(server_optimizer=optimizer, server_learning_rate=0.1)
    state = ServerState(one(1.0), {} if v is None else {"v.w": torch.tensor([v])})
    after = fedopt.stepping(hyper)(state, updates(3.0, 5.0), CONTEXT)
    assert number(after.adapter) == pytest.approx(1 + 0.1 * 0.3 / (math.sqrt(expected) + 1e-3), rel=1e-6)
    assert after.memory["v.w"].item() == pytest.approx(expected, rel=1e-6)


def test_momentum_of_the_server_adds_up() -> None:
    """β = 0.5, Δ = 2 twice: m = 2, then 3; w = 0 → 2 → 5. AdaFedAvgM is the same with η = 1."""
    hyper = fedopt.Hyperparameters(server_optimizer="momentum", server_learning_rate=1.0, server_momentum=0.5)
    for algorithm in (fedopt.build(hyper), build("AdaFedAvgM", server_momentum=0.5)):
        first = algorithm.server_update(ServerState(one(0.0)), updates(2.0), CONTEXT)
        second = algorithm.server_update(first, updates(4.0), CONTEXT)
        assert (number(first.adapter), number(second.adapter)) == (2.0, 5.0)


def test_fedprox_pulls_towards_the_server_where_it_starts() -> None:
    """∇ (μ/2)(w − 1)² at w = 3 with μ = 0.5 is 1; at the start it is 0."""
    assert number(fedprox.proximal(0.5, one(1.0))(one(3.0))) == 1.0
    client = Halfway()
    algorithm = build("AdaFedProx", mu=0.5)
    algorithm.client_update(Sent(one(7.0)), ClientState(one(3.0)), client, RNG)
    assert client.trainings == [(7.0, None, 0.0)]


def test_scaffold_moves_its_variate_by_the_share_of_examples_that_took_part() -> None:
    """Of 8 examples 1 has the gradient 4 and 3 have 8: c = (4 + 3 · 8) / 8 = 3.5. The first trains on with 3.5 − 4."""
    algorithm = build("SCAFFOLD")
    clients = {"a": Halfway(slope=4.0), "b": Halfway(examples=3, slope=8.0), "idle": Halfway(examples=4)}
    server = initial_progress(algorithm, one(0.0), engine(algorithm, clients=clients)).server
    sent, states = [], {}
    for name, client in [*clients.items()][:2]:
        states[name], update, _ = algorithm.client_update(algorithm.shares(server), ClientState(one(0.0)), client, RNG)
        sent.append(update)
    server = algorithm.server_update(server, sent, CONTEXT)
    assert server.memory["variate.w"].item() == 3.5
    algorithm.client_update(algorithm.shares(server), states["a"], clients["a"], RNG)
    assert clients["a"].trainings == [(0.0, None, 0.0), (0.0, None, -0.5)]


def test_ditto_sends_one_adapter_and_stores_another() -> None:
    """Shared 1, personal 5, the optimum is 3, μ = 0.5: sent 2, stored 4, the personal one pulled by 0.5 (5 − 1) = 2."""
    client = Halfway(3.0, steps=3, seconds=1.5)
    algorithm = build("Ditto", mu=0.5)
    state, sent, trace = algorithm.client_update(Sent(one(1.0)), ClientState(one(5.0)), client, RNG)
    assert (number(sent.adapter), number(state.adapter)) == (2.0, 4.0)
    assert client.trainings == [(1.0, None, None), (5.0, None, 2.0)]
    # Two trainings of 3 steps and 1.5 s each; the loss is the personal one's, its start.
    assert (sent.steps, trace.steps, trace.seconds, trace.loss) == (6, 6, 3.0, 5.0)
    assert algorithm.passes == 2


def test_the_mean_of_the_others() -> None:
    """2 with 1 example and 6 with 3: w = 5. Without the first, without the second; alone, the teacher is the server."""
    shares = (2.0, 1 / 4), (6.0, 3 / 4), (2.0, 1)
    means = [number(fedselectkd.others_mean(one(5.0), one(own), share)) for own, share in shares]
    assert means == pytest.approx([6.0, 2.0, 5.0])


@pytest.mark.parametrize(("knobs", "expected"), TEACHERS)
def test_every_teacher_is_the_named_adapter(knobs: dict[str, Any], expected: list[float]) -> None:
    """Of the first of two clients, round by round. After round 1 they have 1 and 3, and the server 2."""
    clients = {"a": Halfway(2.0), "b": Halfway(6.0)}
    algorithm = build("AdaFedSelectKD", tau=5.0, weight=0.2, **knobs)
    run(algorithm, engine(algorithm, clients=clients), 2)
    assert [teacher for _, teacher, _ in clients["a"].trainings] == expected


@pytest.mark.parametrize(("state", "expected"), [("keep", {"m"}), ("fresh", set())])
def test_moments_are_stored_only_if_requested(state: Any, expected: set[str]) -> None:
    selective = build("AdaFedSelectKD", tau=5.0, weight=0.2, client_optimizer_state=state)
    for algorithm in (build("AdaFedAvg", client_optimizer_state=state), selective):
        after, _, _ = algorithm.client_update(Sent(one(0.0)), ClientState(one(0.0)), Halfway(), RNG)
        assert set(after.memory) == expected
