"""What a reader must know before believing a number, as facts for the pages' templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pipeline.model.presets import OFFLINE, PRESETS
from pipeline.plan.orders import RunRow
from pipeline.report.page import piece
from pipeline.runs.results import Results

FEW_MEETINGS = 10
"""Fewer are told."""
PAPERS_RATE = 0.0002
"""AdamW's learning rate in the paper."""


def limits(
    backbone: str, runs: Sequence[RunRow], indices: Mapping[str, Mapping[str, Any]], results: Results | None = None
) -> Markup:
    """The list of limits.

    Args:
        indices: setting -> the index of its examples.
    """
    trained = [row.training for row in runs if row.training is not None]
    rates = sorted({one.learning_rate for one in trained})
    layers = sorted({one.adapted_layers for one in trained})
    first, distilling = first_rounds(results) if results is not None else (0, 0)
    facts = {
        "sampled_meetings": _few_meetings(indices),
        "seeds": len({row.seed for row in runs}),
        "rates": ", ".join(f"{rate:g}" for rate in rates) if rates not in ([], [PAPERS_RATE]) else "",
        "embedded_layers": " or ".join(map(str, layers)) if backbone == OFFLINE else "",
        "depth": PRESETS[backbone].decoder_layers,
        "first_rounds": first,
        "distilling": distilling,
        "scaffold": any(row.method == "SCAFFOLD" for row in runs),
    }
    return piece("limits", facts=facts)


def random_weights(backbone: str) -> Markup:
    """A warning above everything else, of a backbone that has learned nothing."""
    return piece("random_weights") if PRESETS[backbone].origin == "tiny" else Markup("")


def _few_meetings(indices: Mapping[str, Mapping[str, Any]]) -> str:
    few: dict[tuple[str, int], list[str]] = {}
    for setting, index in indices.items():
        for client, splits in index["clients"].items():
            meetings = len({entry["meeting"] for entry in splits["test"]})
            if meetings < FEW_MEETINGS:
                few.setdefault((client, meetings), []).append(setting)
    return "; ".join(f"{client} {count} ({', '.join(settings)})" for (client, count), settings in sorted(few.items()))


def first_rounds(results: Results) -> tuple[int, int]:
    """(How many adapters that runs with distillation are judged by are of the first round, how many there are)."""
    local = [(rows[0], results.histories[name]) for name, rows in results.rows.items() if rows[0].evaluate == "local"]
    distilling = [(row, own) for row, own in local if any("share_distilled" in one.figures for one in own)]
    trainings = {(str(row.training), row.setting): own for row, own in distilling}  # one under two names counts once
    best = [one for history in trainings.values() for one in history if one.best]
    return sum(one.round == 1 for one in best), len(best)


def truncation(index: Mapping[str, Any], limit: int) -> Markup:
    """What truncation lost of sources and references, over all splits of one run's examples.

    Args:
        limit: what is read of a reference, in tokens, its end token included.
    """
    entries = [e for splits in index["clients"].values() for split in splits.values() for e in split]
    cut = sum(e["kept_tokens"] < e["transcript_tokens"] for e in entries)
    total = sum(e["transcript_tokens"] for e in entries)
    kept = sum(e["kept_tokens"] for e in entries)
    # A reference that was cut has exactly `limit` tokens, as one that just fits has.
    full = sum(e["tokens"] == limit for e in entries)
    count = max(1, len(entries))
    return piece(
        "truncation",
        cut=cut,
        examples=len(entries),
        share_cut=f"{100 * cut / count:.0f}",
        share_lost=f"{100 * (1 - kept / total) if total else 0:.0f}",
        full=full,
        share_full=f"{100 * full / count:.0f}",
        limit=limit,
    )
