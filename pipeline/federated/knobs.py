"""Names that params.yaml and a client's training share; without torch, which the plan saves."""

from __future__ import annotations

from typing import Literal

ClientOptimizer = Literal["adamw", "sgd"]
Schedule = Literal["constant", "linear"]
