"""What both pages say of the backbone and of how runs were tuned, before a number is believed."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.model.presets import OFFLINE, PRESETS
from pipeline.spec import RunRow


def of_backbone(backbone: str, runs: Sequence[RunRow]) -> list[str]:
    """Empty, but for the embedded backbone."""
    layers = sorted({row.params["adapted_layers"] for row in runs if "adapted_layers" in row.params})
    if backbone != OFFLINE or not layers:
        return []
    most = " or ".join(map(str, layers))
    return [
        f"The weights are a dequantized 4-bit instruct model; adapters sit on {most} of its "
        f"{PRESETS[backbone].decoder_layers} layers, where the paper adapts the top half of the decoder. The model may "
        "have seen AMI, ICSI or SAMSum: gains over the untrained one are the result, absolute scores beside the "
        "paper's are orientation only."
    ]


CHOSEN_RATE = 0.0024
"""The learning rate that was chosen here (benchmarks/README.md); any other is the paper's, or the reader's own."""


def of_learning_rate(runs: Sequence[RunRow]) -> list[str]:
    """Empty, if no run has the rate that was chosen here."""
    if all(row.params.get("learning_rate") != CHOSEN_RATE for row in runs):
        return []
    return [
        "The learning rate was chosen on AdaFedAvg, for all methods: on the server's average, which tolerates a larger "
        "one than a client's own adapter. A validation loss that jumps up in the second round and comes down again may "
        "be the rate's doing rather than the method's."
    ]
