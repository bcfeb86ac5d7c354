"""Rules that withstand bad updates, by hand, and what they are where nothing is bad."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from federations import FEDAVG, train

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Context, ServerState, Update
from pipeline.federated.algorithms import krum, median, normclipping, trimmedmean
from pipeline.federated.algorithms.fedavg import averaged
from pipeline.federated.algorithms.krum import scores
from pipeline.federated.local import LocalClientData
from pipeline.model.adapter import Adapter

CONTEXT = Context(seed=1, round=1)


def one(*values: float) -> Adapter:
    return {"w": torch.tensor(values)}


def updates(*values: Any, examples: int = 1) -> list[Update]:
    return [Update(one(*(v if isinstance(v, tuple) else (v,))), examples, 1) for v in values]


def after(algorithm: Algorithm, came: list[Update], server: Adapter | None = None) -> list[float]:
    found: list[float] = algorithm.server_update(ServerState(server or one(0.0)), came, CONTEXT).adapter["w"].tolist()
    return found


MEDIAN = median.build(median.Hyperparameters())


def trimmed_by(faulty: int) -> Algorithm:
    return trimmedmean.build(trimmedmean.Hyperparameters(faulty=faulty))


def krum_of(faulty: int, chosen: int = 1) -> Algorithm:
    return krum.build(krum.Hyperparameters(faulty=faulty, chosen=chosen))


def clipped_at(norm: float) -> Algorithm:
    return normclipping.build(normclipping.Hyperparameters(max_norm=norm))


def test_the_median_of_an_odd_and_of_an_even_number() -> None:
    """3 of 1, 3, 1000; (2 + 4) / 2 = 3 of 1, 2, 4, 1000. Number by number: (2, 5) of (1, 9), (2, 5), (3, 1)."""
    assert after(MEDIAN, updates(1.0, 1000.0, 3.0)) == [3.0]
    assert after(MEDIAN, updates(1.0, 1000.0, 2.0, 4.0)) == [3.0]
    assert after(MEDIAN, updates((1.0, 9.0), (2.0, 5.0), (3.0, 1.0)), one(0.0, 0.0)) == [2.0, 5.0]


def test_a_trimmed_mean_leaves_out_both_ends() -> None:
    """Of −1000, 1, 2, 6, 1000 with f = 1: (1 + 2 + 6) / 3 = 3."""
    assert after(trimmed_by(1), updates(-1000.0, 6.0, 1.0, 1000.0, 2.0)) == [3.0]


def test_nothing_trimmed_is_the_uniform_mean() -> None:
    came = [Update(one(1.0), 30, 1), Update(one(5.0), 10, 1)]
    assert after(trimmed_by(0), came) == averaged(came, "uniform")["w"].tolist() == [3.0]


def test_a_long_change_is_clipped_and_a_short_one_is_not() -> None:
    """From 0, M = 5, equal examples: (3, 4) has norm 5 and stays; (60, 80) becomes (3, 4). WeightedMean (3, 4)."""
    assert after(clipped_at(5.0), updates((3.0, 4.0), (60.0, 80.0)), one(0.0, 0.0)) == pytest.approx([3.0, 4.0])


def test_clipping_weighs_by_examples() -> None:
    """From 1, M = 2: changes 1 (of 3 examples) and 2 (of 1, clipped from 9): 1 + (3 · 1 + 1 · 2) / 4 = 2.25."""
    came = [Update(one(2.0), 3, 1), Update(one(10.0), 1, 1)]
    assert after(clipped_at(2.0), came, one(1.0)) == pytest.approx([2.25])


def test_krum_scores_by_the_nearest() -> None:
    """0, 1, 2, 4, 100 with f = 1: each sums its two nearest. 0: 1 + 4; 1: 1 + 1; 2: 1 + 4; 4: 4 + 9; 100: 96² + 98²."""
    rows = torch.tensor([[0.0], [1.0], [2.0], [4.0], [100.0]], dtype=torch.float64)
    assert scores(rows, 1).tolist() == [5.0, 2.0, 5.0, 13.0, 96.0**2 + 98.0**2]


def test_krum_takes_the_one_that_lies_nearest_to_others_and_multi_krum_several() -> None:
    """1 of the above; the two least scores are 1's and, of two that are equal, the first, 0's: their mean is 0.5."""
    came = updates(0.0, 1.0, 2.0, 4.0, 100.0)
    assert after(krum_of(1), came) == [1.0]
    assert after(krum_of(1, chosen=2), came) == [0.5]


@pytest.mark.parametrize(
    ("algorithm", "count", "message"),
    [
        (krum_of(1), 4, "faulty: 1, chosen: 1: Krum needs 5 clients in a round, and 4 answered"),
        (krum_of(1, chosen=3), 5, "faulty: 1, chosen: 3: Krum needs 6 clients in a round, and 5 answered"),
        (trimmed_by(2), 4, "faulty: 2: a trimmed mean needs 5 clients in a round, and 4 answered"),
        (MEDIAN, 0, "a rule over updates needs some, and nobody answered"),
    ],
)
def test_too_few_clients_for_so_many_bad_ones_are_refused(algorithm: Algorithm, count: int, message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        after(algorithm, updates(*range(count)))


@pytest.mark.parametrize("algorithm", [MEDIAN, trimmed_by(0), krum_of(0), clipped_at(1.0)])
def test_what_is_no_adapter_alone_is_refused(algorithm: Algorithm) -> None:
    other = Update(one(1.0), 1, 1, {"variate": torch.ones(1)})
    with pytest.raises(QuorumError, match="cannot judge 'variate', which travels besides"):
        after(algorithm, [*updates(1.0, 2.0), other])
    with pytest.raises(QuorumError, match="an update has other tensors than the server's"):
        after(algorithm, [*updates(1.0, 2.0), Update(one(1.0, 2.0), 1, 1)])


def test_clipping_at_a_large_norm_is_federated_averaging(clients: dict[str, LocalClientData]) -> None:
    """Summed in another order, so equal to the last digits."""
    plain, clipped = train(FEDAVG, clients), train(clipped_at(1e9), clients)
    for name, tensor in plain.progress.server.adapter.items():
        torch.testing.assert_close(clipped.progress.server.adapter[name], tensor, rtol=0, atol=1e-6)


def test_one_bad_client_of_five_moves_a_mean_and_no_rule() -> None:
    """Four at about 1 and one at 1000: the mean is about 200, the rules stay within (0.9, 1.1), clipping near 1."""
    came = updates(0.9, 1.0, 1.0, 1.1, 1000.0)
    assert averaged(came)["w"].item() > 200
    for rule in (MEDIAN, trimmed_by(1), krum_of(1), krum_of(1, chosen=2)):
        assert 0.9 <= after(rule, came)[0] <= 1.1
    assert after(clipped_at(1.1), came)[0] == pytest.approx((0.9 + 1 + 1 + 1.1 + 1.1) / 5)
