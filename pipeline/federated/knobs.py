"""Choices that params.yaml and a client's training share. No import of torch: the plan reads them."""

from typing import Literal

ClientOptimizer = Literal["adamw", "sgd"]  # a client's optimizer: AdamW, or SGD without momentum
LossOver = Literal["items", "examples"]
"""What a batch's sum of losses is divided by: the number of its items (tokens, words, units), or of its examples."""
Draw = Literal["uniform", "by_examples"]
"""How a round's clients are drawn: all alike, or in proportion to their numbers of examples."""
Schedule = Literal["constant", "linear"]
"""A constant learning rate, or one that grows and then falls to 0 within every round."""
