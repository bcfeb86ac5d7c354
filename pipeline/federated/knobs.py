"""Choices that params.yaml and a client's training share. No import of torch: the plan reads them."""

from __future__ import annotations

from typing import Literal

ClientOptimizer = Literal["adamw", "sgd"]
"""A client's optimizer: AdamW, or SGD without momentum."""
Schedule = Literal["constant", "linear"]
"""A constant learning rate, or one that grows and then falls to 0 within every round."""
