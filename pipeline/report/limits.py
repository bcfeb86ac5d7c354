"""The limits of the results, as pieces of the pages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from pipeline.evaluation.scores import MEETINGS
from pipeline.model.presets import ENCODERS, OFFLINE, PRESETS
from pipeline.plan.orders import RunRow
from pipeline.report.page import piece
from pipeline.runs.results import Results
from pipeline.workspace.record import Json

PAPERS_RATE = 0.0002
"""AdamW's learning rate in the paper."""


def limits(
    backbone: str, runs: Sequence[RunRow], meetings: Mapping[str, Mapping[str, int]], results: Results | None = None
) -> Markup:
    """The list of limits.

    Args:
        meetings: setting -> client -> the number of its test meetings.
    """
    trained = [row.training for row in runs if row.training is not None]
    rates = sorted({one.learning_rate for one in trained})
    layers = sorted({one.learner.view.adapted_layers or 0 for one in trained})
    first, distilling = first_rounds(results) if results is not None else (0, 0)
    facts = {
        "few_meetings": _few_meetings(meetings),
        "seeds": len({row.seed for row in runs}),
        "rates": ", ".join(f"{rate:g}" for rate in rates) if rates not in ([], [PAPERS_RATE]) else "",
        "embedded_layers": " or ".join(map(str, layers)) if backbone == OFFLINE else "",
        "depth": PRESETS[backbone].decoder_layers if backbone in PRESETS else 0,
        "first_rounds": first,
        "distilling": distilling,
        "scaffold": any(row.method == "SCAFFOLD" for row in runs),
    }
    return piece("limits", facts=facts)


def warnings(backbone: str, samples: Collection[str]) -> Markup:
    """The warnings at the top of a page: of data sets of which only the sample was there, and of random weights."""
    preset = PRESETS.get(backbone) or ENCODERS[backbone]
    return piece("warnings", samples=sorted(samples), random=preset.origin == "tiny")


def _few_meetings(meetings: Mapping[str, Mapping[str, int]]) -> str:
    few: dict[tuple[str, int], list[str]] = {}
    for setting, client, count in ((setting, *one) for setting, own in meetings.items() for one in own.items()):
        if count < MEETINGS:
            few.setdefault((client, count), []).append(setting)
    return "; ".join(f"{client} {count} ({', '.join(settings)})" for (client, count), settings in sorted(few.items()))


def first_rounds(results: Results) -> tuple[int, int]:
    """(Adapters of the first round, all adapters) by which runs with distillation are scored."""
    local = [(rows[0], results.histories[name]) for name, rows in results.rows.items() if rows[0].evaluate == "local"]
    distilling = [(row, own) for row, own in local if any("share_distilled" in one.figures for one in own)]
    trainings = {(str(row.training), row.setting): own for row, own in distilling}  # one under two names counts once
    best = [one for history in trainings.values() for one in history if one.best]
    return sum(one.round == 1 for one in best), len(best)


def truncation(cut: Json | None) -> Markup:
    """The sentence on what truncation lost of sources and references (see `Cut`), where that is known."""
    return piece("truncation", cut=cut) if cut else Markup("")
