"""Identities between methods, bit for bit unless a tolerance is given."""

import math
from collections.abc import Callable

import pytest
import torch
from federations import BACKBONE, FEDAVG, MIDDLE, SINGLE, Make, build, kd, same, same_locals, select, server_of, train

from pipeline.federated.algorithm import Algorithm
from pipeline.federated.algorithms import fedhardkd
from pipeline.federated.local import LocalClientData
from pipeline.runs.training import Finished

ABOVE = math.log(BACKBONE.vocabulary) + 1e-3
"""A threshold above the largest entropy, in nats."""
SCAFFOLD = build("SCAFFOLD")
KEEP = build("AdaFedAvg", client_optimizer_state="keep")
STEP = build("AdaFedOPT", server_optimizer="momentum", server_learning_rate=1.0, server_momentum=0.0)


def same_servers(a: Finished, b: Finished) -> bool:
    return same(server_of(a), server_of(b))


def close_servers(a: Finished, b: Finished) -> bool:
    return all(torch.allclose(tensor, server_of(b)[n], rtol=0, atol=1e-6) for n, tensor in server_of(a).items())


FROM_SERVER = select(0.0, 0.2, "server")
IDENTITIES: dict[str, tuple[Algorithm, Algorithm, Callable[[Finished, Finished], bool]]] = {
    "SelectKD below all entropies is Single": (select(0.0), SINGLE, same_locals),
    "KD without weight is Single": (kd(weight=0.0), SINGLE, same_locals),
    "SelectKD from the server below all entropies has FedAvg's server": (FROM_SERVER, FEDAVG, same_servers),
    "and FedAvg's clients": (FROM_SERVER, FEDAVG, same_locals),
    "SelectKD above all entropies is KD": (select(ABOVE), kd(), same_locals),
    "and from the server": (select(ABOVE, 0.2, "server"), kd(0.2, "server"), same_locals),
    "FedProx without weight is FedAvg": (build("AdaFedProx", mu=0.0), FEDAVG, same_servers),
    "FedOPT by plain steps is FedAvg": (STEP, FEDAVG, close_servers),
    "FedAvgM without momentum is FedAvg": (build("AdaFedAvgM", server_momentum=0.0), FEDAVG, close_servers),
    "NormClipping at a large norm is FedAvg": (build("NormClipping", max_norm=1e9), FEDAVG, close_servers),
    "FedBuff with a buffer of all clients is FedAvg": (build("FedBuff", buffer=2), FEDAVG, close_servers),
    "Ditto has FedAvg's server": (build("Ditto", mu=0.0), FEDAVG, same_servers),
    "Ditto without weight has Single's clients": (build("Ditto", mu=0.0), SINGLE, same_locals),
}


@pytest.mark.parametrize("identity", IDENTITIES)
def test_identities(clients: dict[str, LocalClientData], identity: str) -> None:
    ours, theirs, equal = IDENTITIES[identity]
    assert equal(train(ours, clients), train(theirs, clients))


def test_methods_that_should_differ_do(clients: dict[str, LocalClientData]) -> None:
    """Otherwise the identities would mean nothing."""
    runs = [train(algorithm, clients) for algorithm in (SINGLE, FEDAVG, kd(), select(tau=MIDDLE))]
    adapters = [run.private.states["Academic"].adapter for run in runs]
    assert not any(same(adapters[i], adapters[j]) for i in range(4) for j in range(i))


def test_scaffolds_options_are_one_where_a_round_is_one_step_of_sgd(make_client: Make) -> None:
    """Then the step's gradient is that of all examples at the server's adapter, without clipping."""
    one = {"optimizer": "sgd", "batch_size": 8, "clip_norm": 1e9, "learning_rate": 0.1}
    clients = {name: make_client(BACKBONE, at, 6, **one) for at, name in ((0, "A"), (10, "B"))}
    assert close_servers(train(build("SCAFFOLD", option="II"), clients), train(SCAFFOLD, clients))


def test_feddc_of_one_client_is_fedavg_in_its_second_rounds(make_client: Make) -> None:
    """Its model is dealt back to it, and trained on."""
    alone = {"A": make_client(BACKBONE, 0, 5)}
    start, first, second = (train(build("FedDC"), alone, rounds) for rounds in (0, 1, 2))
    assert same_servers(start, first)
    assert same_servers(second, train(FEDAVG, alone, 2))


@pytest.mark.parametrize("algorithm", [SCAFFOLD, KEEP], ids=["SCAFFOLD", "kept moments"])
def test_the_first_round_is_fedavgs(clients: dict[str, LocalClientData], algorithm: Algorithm) -> None:
    assert same_servers(train(algorithm, clients, 1), train(FEDAVG, clients, 1))
    assert not same_servers(train(algorithm, clients), train(FEDAVG, clients))


def test_fedavg_with_one_client_is_single(clients: dict[str, LocalClientData]) -> None:
    alone = {"Academic": clients["Academic"]}
    assert same(server_of(train(FEDAVG, alone)), train(SINGLE, alone).private.states["Academic"].adapter)


def test_fednova_with_equal_steps_is_fedavg(make_client: Make) -> None:
    """4 and 5 training examples in batches of 2, the last of 3: two steps each."""
    clients = {"A": make_client(BACKBONE, 0, 5), "B": make_client(BACKBONE, 10, 6)}
    ours = train(build("AdaFedNova"), clients)
    assert {row.steps for row in ours.progress.history} == {2}
    assert close_servers(ours, train(FEDAVG, clients))


@pytest.mark.parametrize("marked", [True, False])
def test_hard_distillation_of_all_tokens_is_fedkd_and_of_none_is_single(
    clients: dict[str, LocalClientData], monkeypatch: pytest.MonkeyPatch, marked: bool
) -> None:
    monkeypatch.setattr(fedhardkd, "nouns_and_verbs", lambda pieces: [marked] * len(pieces))
    hard = train(build("AdaFedHardKD", weight=0.2, local_start="own"), clients)
    assert same_locals(hard, train(kd() if marked else SINGLE, clients))
