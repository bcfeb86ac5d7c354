"""The threshold τ, as written in params.yaml and as parsed."""

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
    """Parsing what was written gives the same threshold again; a hyperparameter is written as `plain`."""
    found = Threshold.parse(written)
    assert (found.nats, found.quantile, found.plain) == (nats, quantile, plain)
    assert Threshold.parse(found.plain) == Threshold.parse(found) == found
    hyper = Hyperparameters.model_validate({"tau": written, "lambda": 0.2})
    assert (hyper.tau, hyper.model_dump(mode="json")["tau"]) == (found, plain)


@pytest.mark.parametrize("tau", ["q1.5", "q0", "q1", "q", "qq", "high", -1, math.inf, math.nan, True, None, [5]])
def test_anything_else_is_no_threshold(tau: object) -> None:
    for parse in (Threshold.parse, lambda value: Hyperparameters.model_validate({"tau": value, "lambda": 0.2})):
        with pytest.raises(ValueError, match=r"nats|quantile"):
            parse(tau)


def test_a_quantile_is_of_the_entropies_which_are_computed_only_for_it() -> None:
    """Of 0, 1, 2, 3 and 4 the quantile 0.75 is 3."""

    def never() -> Tensor:
        raise AssertionError("computed")

    assert Threshold(quantile=0.75).in_nats(lambda: torch.arange(5.0)) == Threshold(3.0)
    assert Threshold(5.0).in_nats(never) == Threshold(5.0)
    assert EVERY_TOKEN.in_nats(never).nats == math.inf
