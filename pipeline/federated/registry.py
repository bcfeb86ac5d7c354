"""Method name -> the module that implements it.

Only the plan reads this table; a training stage imports its own algorithm by the module's name in its spec. So a new
line here, and a new file beside it, retrain nothing.
"""

from __future__ import annotations

ALGORITHMS: dict[str, str] = {
    "AdaSingle": "pipeline.federated.single",
    "AdaCentralized": "pipeline.federated.centralized",
    "AdaFedAvg": "pipeline.federated.fedavg",
    "AdaFedOPT": "pipeline.federated.fedopt",
    "AdaFedProx": "pipeline.federated.fedprox",
    "AdaFedNova": "pipeline.federated.fednova",
    "AdaFedAvgM": "pipeline.federated.fedavgm",
    "SCAFFOLD": "pipeline.federated.scaffold",
    "Ditto": "pipeline.federated.ditto",
    "AdaFedKD": "pipeline.federated.fedkd",
    "AdaFedHardKD": "pipeline.federated.fedhardkd",
    "AdaFedSelectKD": "pipeline.federated.fedselectkd",
}

ZEROSHOT = "ZeroShot"
"""The untrained backbone: a row of every table, and no algorithm."""

ALONE = (ZEROSHOT, "AdaSingle", "AdaCentralized")
"""Methods without a server, whose algorithms do not communicate."""
