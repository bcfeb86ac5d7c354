"""The threshold τ, as it is written and as it is meant."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pipeline.federated.algorithms.fedselectkd import Hyperparameters
from pipeline.federated.objectives.threshold import EVERY_TOKEN, Threshold


@pytest.mark.parametrize(
    ("written", "nats", "quantile", "plain"),
    [
        (5, 5.0, None, 5.0),
        (0, 0.0, None, 0.0),
        ("2.5", 2.5, None, 2.5),
        ("q0.88", math.inf, 0.88, "q0.88"),
        ("q0.123456789", math.inf, 0.123456789, "q0.123456789"),
    ],
)
def test_a_threshold_is_nats_or_a_quantile(
    written: object, nats: float, quantile: float | None, plain: float | str
) -> None:
    found = Threshold.parse(written)
    assert (found.nats, found.quantile, found.plain) == (nats, quantile, plain)


def test_a_threshold_that_is_read_again_is_the_same() -> None:
    for written in (5.0, "q0.88"):
        found = Threshold.parse(written)
        assert Threshold.parse(found.plain) == Threshold.parse(found) == found


@pytest.mark.parametrize("tau", ["q1.5", "q0", "q1", "q", "qq", "high", -1, math.inf, math.nan, True, None, [5]])
def test_anything_else_is_no_threshold(tau: object) -> None:
    with pytest.raises(ValueError, match=r"nats|quantile"):
        Threshold.parse(tau)
    with pytest.raises(ValueError, match=r"nats|quantile"):
        Hyperparameters.model_validate({"tau": tau, "lambda": 0.2})


@pytest.mark.parametrize("tau", [5.0, "q0.88"])
def test_as_a_knob_it_is_written_as_it_was_read(tau: float | str) -> None:
    knobs = Hyperparameters.model_validate({"tau": tau, "lambda": 0.2})
    assert knobs.tau == Threshold.parse(tau)
    assert knobs.model_dump(mode="json")["tau"] == tau


def test_a_quantile_is_taken_of_the_entropies() -> None:
    """Of 0, 1, 2, 3 and 4 the quantile 0.75 is 3."""
    assert Threshold(quantile=0.75).in_nats(lambda: torch.arange(5.0)) == Threshold(3.0)


def test_entropies_are_asked_for_only_where_they_are_needed() -> None:
    def never() -> Tensor:
        raise AssertionError("asked for")

    assert Threshold(5.0).in_nats(never) == Threshold(5.0)
    assert EVERY_TOKEN.in_nats(never).nats == math.inf
