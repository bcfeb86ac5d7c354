"""What both pages say of truncation, of the backbone, of how runs were tuned, before a number is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.model.presets import OFFLINE, PRESETS
from pipeline.plan.orders import RunRow


def of_backbone(backbone: str, runs: Sequence[RunRow]) -> list[str]:
    """Empty, but for the embedded backbone."""
    layers = sorted({row.training.adapted_layers for row in runs if row.training is not None})
    if backbone != OFFLINE or not layers:
        return []
    most = " or ".join(map(str, layers))
    return [
        f"The weights are a dequantized 4-bit instruct model; adapters sit on {most} of its "
        f"{PRESETS[backbone].decoder_layers} layers, where the paper adapts the top half of the decoder. The model may "
        "have seen AMI, ICSI or SAMSum: gains over the untrained one are the result, absolute scores beside the "
        "paper's are orientation only."
    ]


PAPERS_RATE, CHOSEN_RATE = 0.0002, 0.0024
"""AdamW's in the paper, and what benchmarks/README.md chose for the embedded backbone."""


def of_learning_rate(runs: Sequence[RunRow]) -> list[str]:
    """Empty, if every run has the paper's."""
    if all(row.training is None or row.training.learning_rate == PAPERS_RATE for row in runs):
        return []
    rates = sorted({row.training.learning_rate for row in runs if row.training is not None})
    shared = "All methods share a learning rate" if len(rates) == 1 else "Learning rates differ from run to run"
    chosen = (
        f"; {CHOSEN_RATE:g}, that of the scales laptop and full, was chosen with {OFFLINE} on AdaFedAvg, and is "
        "the largest of the four that were tried"
    )
    return [
        f"{shared}{chosen if CHOSEN_RATE in rates else ''}. The server's average may tolerate a larger one than a "
        "client's own adapter: a validation loss that jumps up in the second round and comes down again may be the "
        "rate's doing rather than the method's."
    ]


FEW_MEETINGS = 10
"""Fewer are told; the bootstrap over clusters is known to be too sure of itself with few of them."""


def of_meetings(indices: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Clients whose test set is of few meetings, in which settings; empty, if there are none.

    Args:
        indices: setting -> the index of its examples.
    """
    few: dict[tuple[str, int], list[str]] = {}
    for setting, index in indices.items():
        for client, splits in index["clients"].items():
            meetings = len({entry["meeting"] for entry in splits["test"]})
            if meetings < FEW_MEETINGS:
                few.setdefault((client, meetings), []).append(setting)
    if not few:
        return []
    which = "; ".join(f"{client} {count} ({', '.join(settings)})" for (client, count), settings in sorted(few.items()))
    return [
        f"Intervals resample test meetings, of which some clients have few: {which}. Resampling so few makes intervals "
        "narrower than they should be."
    ]


def of_truncation(encoded: Mapping[str, Any], target_limit: int) -> str:
    """What truncation lost of sources and references, over all splits of one run's examples.

    Args:
        target_limit: what is read of a reference, in tokens, its end token included.
    """
    entries = [e for splits in encoded["clients"].values() for split in splits.values() for e in split]
    if not entries:
        return "Nothing of it was encoded: its runs are left out."
    cut = sum(e["kept_tokens"] < e["transcript_tokens"] for e in entries)
    total = sum(e["transcript_tokens"] for e in entries)
    kept = sum(e["kept_tokens"] for e in entries)
    share = 100 * (1 - kept / total) if total else 0.0
    return (
        f"Truncation cut the source of {cut} of {len(entries)} examples ({100 * cut / len(entries):.0f}%); "
        f"{share:.0f}% of the tokens of transcripts (of QMSum: of the gold spans) were lost to it."
        f"{_of_references(entries, target_limit)}"
    )


def _of_references(entries: Sequence[Mapping[str, Any]], limit: int) -> str:
    """A reference that was cut has exactly `limit` tokens, as one that just fits has."""
    full = sum(entry["tokens"] == limit for entry in entries)
    if not full:
        return " No reference was cut."
    return (
        f" References that fill all {limit} tokens that are read of one: {full} ({100 * full / len(entries):.0f}%); of "
        "those that are longer the rest, end token included, is neither learned nor scored in test loss."
    )
