"""Robust rules by hand, and their special cases without faulty clients."""

from functools import partial
from typing import Any

import pytest
import torch
from federations import build
from halfway import one

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Algorithm, Context, ServerState, Update
from pipeline.federated.algorithms.krum import scores


def updates(*values: Any, examples: tuple[int, ...] | None = None) -> list[Update]:
    adapters = [one(*(v if isinstance(v, tuple) else (v,))) for v in values]
    return [Update(adapter, n, 1) for adapter, n in zip(adapters, examples or (1,) * len(values), strict=True)]


def after(algorithm: Algorithm, arrived: list[Update], *server: float) -> list[float]:
    state = ServerState(one(*(server or (0.0,))))
    found: list[float] = algorithm.server_update(state, arrived, Context(seed=1, round=1)).adapter["w"].tolist()
    return found


MEDIAN = build("Median")
TRIMMED, KRUM, CLIPPED = (partial(build, method) for method in ("TrimmedMean", "Krum", "NormClipping"))


@pytest.mark.parametrize(
    ("algorithm", "arrived", "server", "expected"),
    [
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
    ],
)
def test_rules_by_hand(algorithm: Algorithm, arrived: list[Update], server: list[float], expected: list[float]) -> None:
    assert after(algorithm, arrived, *server) == pytest.approx(expected, rel=1e-7)


def test_krum_scores_by_the_nearest() -> None:
    """0, 1, 2, 4, 100 with f = 1: each sums its two nearest. 0: 1 + 4; 1: 1 + 1; 2: 1 + 4; 4: 4 + 9; 100: 96² + 98²."""
    rows = torch.tensor([[0.0], [1.0], [2.0], [4.0], [100.0]], dtype=torch.float64)
    assert scores(rows, 1).tolist() == [5.0, 2.0, 5.0, 13.0, 96.0**2 + 98.0**2]


@pytest.mark.parametrize(
    ("algorithm", "count", "message"),
    [
        (KRUM(faulty=1), 4, "faulty: 1, chosen: 1: Krum needs 5 clients in a round, and 4 answered"),
        (KRUM(faulty=1, chosen=3), 5, "faulty: 1, chosen: 3: Krum needs 6 clients in a round, and 5 answered"),
        (TRIMMED(faulty=2), 4, "faulty: 2: a trimmed mean needs 5 clients in a round, and 4 answered"),
    ],
)
def test_too_few_updates_are_refused(algorithm: Algorithm, count: int, message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        after(algorithm, updates(*range(count)))
