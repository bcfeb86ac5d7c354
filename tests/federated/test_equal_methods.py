"""The identities between methods, bit for bit unless said."""

from __future__ import annotations

import math

import pytest
import torch
from conftest import noisy_adapter
from federations import (
    BACKBONE,
    FEDAVG,
    INITIAL,
    MIDDLE,
    SINGLE,
    Make,
    kd,
    locals_of,
    same,
    same_locals,
    select,
    server_of,
    train,
)

from pipeline.federated.algorithm import weighted_average
from pipeline.federated.algorithms import ditto, fedavg, fedavgm, fedhardkd, fednova, fedopt, fedprox, scaffold
from pipeline.federated.local import LocalClientData
from pipeline.model.adapter import Adapter


def test_one_adapter_averages_to_itself_bit_for_bit() -> None:
    adapter = noisy_adapter(BACKBONE)
    assert same(weighted_average([(adapter, 7)]), adapter)


def test_selectkd_without_a_sure_teacher_is_single(clients: dict[str, LocalClientData]) -> None:
    assert same_locals(train(select(tau=0.0), clients), train(SINGLE, clients))


def test_fedkd_without_weight_is_single(clients: dict[str, LocalClientData]) -> None:
    assert same_locals(train(kd(weight=0.0), clients), train(SINGLE, clients))


def test_selectkd_from_the_server_without_a_sure_teacher_follows_fedavg(clients: dict[str, LocalClientData]) -> None:
    ours, average = train(select(tau=0.0, local_start="server"), clients), train(FEDAVG, clients)
    assert same(server_of(ours), server_of(average))
    assert same_locals(ours, average)


@pytest.mark.parametrize("local_start", ["own", "server"])
def test_selectkd_above_the_largest_entropy_is_fedkd(clients: dict[str, LocalClientData], local_start: str) -> None:
    above = math.log(BACKBONE.vocabulary) + 1e-3
    assert same_locals(
        train(select(above, local_start=local_start), clients), train(kd(local_start=local_start), clients)
    )


def test_fedavg_with_one_client_is_single(clients: dict[str, LocalClientData]) -> None:
    alone = {"Academic": clients["Academic"]}
    assert same(server_of(train(FEDAVG, alone)), locals_of(train(SINGLE, alone))["Academic"])


def test_methods_that_should_differ_do(clients: dict[str, LocalClientData]) -> None:
    """Else the identities above would hold for nothing."""
    runs = [train(a, clients) for a in (SINGLE, FEDAVG, kd(), select(tau=MIDDLE))]
    adapters = [locals_of(run)["Academic"] for run in runs]
    assert not any(same(adapters[i], adapters[j]) for i in range(4) for j in range(i))


def close(a: Adapter, b: Adapter) -> bool:
    return a.keys() == b.keys() and all(torch.allclose(a[name], b[name], rtol=0, atol=1e-6) for name in a)


def test_fedprox_without_weight_is_fedavg(clients: dict[str, LocalClientData]) -> None:
    ours = train(fedprox.build(fedprox.Hyperparameters(mu=0.0)), clients)
    assert same(server_of(ours), server_of(train(FEDAVG, clients)))


def test_a_heavy_proximal_term_holds_the_client_near_the_server(make_client: Make) -> None:
    """Else the identity above would hold for nothing. Clipping is off: it would scale the pull away."""
    clients = {"A": make_client(BACKBONE, 0, 4, clip_norm=1e9), "B": make_client(BACKBONE, 10, 6, clip_norm=1e9)}

    def moved(mu: float) -> float:
        adapter = server_of(train(fedprox.build(fedprox.Hyperparameters(mu=mu)), clients))
        return sum(float((adapter[name] - INITIAL[name]).abs().sum()) for name in INITIAL)

    assert moved(100.0) < 0.9 * moved(0.0)


def test_fedopt_by_plain_steps_and_fedavgm_without_momentum_are_fedavg(clients: dict[str, LocalClientData]) -> None:
    plain = fedopt.Hyperparameters(server_optimizer="momentum", server_learning_rate=1.0, server_momentum=0.0)
    average = server_of(train(FEDAVG, clients))
    for algorithm in (fedopt.build(plain), fedavgm.build(fedavgm.Hyperparameters(server_momentum=0.0))):
        assert close(server_of(train(algorithm, clients)), average)


def test_fednova_with_equal_steps_is_fedavg(make_client: Make) -> None:
    """4 and 5 training examples in batches of 2, the odd one with the last: two steps each."""
    clients = {"A": make_client(BACKBONE, 0, 5), "B": make_client(BACKBONE, 10, 6)}
    ours, average = train(fednova.build(fednova.Hyperparameters()), clients), train(FEDAVG, clients)
    assert {row.steps for row in ours.progress.history} == {2}
    assert close(server_of(ours), server_of(average))


def test_dittos_server_is_fedavgs_and_without_weight_its_clients_are_single(
    clients: dict[str, LocalClientData],
) -> None:
    free = train(ditto.build(ditto.Hyperparameters(mu=0.0)), clients)
    assert same(server_of(free), server_of(train(FEDAVG, clients)))
    assert same_locals(free, train(SINGLE, clients))


def test_scaffold_is_fedavg_in_its_first_round_and_not_after(clients: dict[str, LocalClientData]) -> None:
    """All variates begin at zero."""
    algorithm = scaffold.build(scaffold.Hyperparameters())
    first, second = train(algorithm, clients, rounds=1), train(algorithm, clients)
    assert same(server_of(first), server_of(train(FEDAVG, clients, rounds=1)))
    assert not same(server_of(second), server_of(train(FEDAVG, clients)))


@pytest.mark.parametrize("everything", [True, False])
def test_hard_distillation_of_everything_is_fedkd_and_of_nothing_single(
    clients: dict[str, LocalClientData], monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    monkeypatch.setattr(fedhardkd, "nouns_and_verbs", lambda pieces: [everything] * len(pieces))
    hard = train(fedhardkd.build(fedhardkd.Hyperparameters(weight=0.2)), clients)
    assert same_locals(hard, train(kd() if everything else SINGLE, clients))


def test_kept_moments_change_the_second_round_only(clients: dict[str, LocalClientData]) -> None:
    keep = fedavg.build(fedavg.Hyperparameters(client_optimizer_state="keep"))
    assert same(server_of(train(keep, clients, 1)), server_of(train(FEDAVG, clients, 1)))
    assert not same(server_of(train(keep, clients)), server_of(train(FEDAVG, clients)))
