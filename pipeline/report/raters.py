"""Fig. 5 as a piece of the page: what raters said, or that nobody has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pipeline.evaluation.agreement import Outcomes, outcomes_of
from pipeline.report.canvas import Canvas
from pipeline.report.figures import human
from pipeline.report.page import table


def ratings(canvas: Canvas, rows: Sequence[Mapping[str, str]], ours: str, samples: int) -> list[Markup]:
    if not rows:
        return [
            Markup(
                '<p class="note">Nobody has rated summaries yet, so there is nothing to draw. '
                "<code>python -m pipeline ratings export</code> writes blind rating sheets, "
                "<code>python -m pipeline ratings import FILE…</code> joins what raters send back.</p>"
            )
        ]
    found = [outcomes_of(rows, against, samples) for against in dict.fromkeys(row["against"] for row in rows)]
    agreement = "; ".join(
        f"against {one.against} {one.ratings} ratings, "
        + ("κ –" if one.kappa is None else f"κ {one.kappa:.2f} over {one.subjects} pairs and criteria")
        for one in found
    )
    count = len({row["rater"] for row in rows})
    eyes = "one rater" if count == 1 else f"{count} raters"
    methods = ", ".join(dict.fromkeys([ours, *(one.against for one in found)]))
    caption = f"Wins, ties and losses in the eyes of {eyes}; Fleiss' κ: {agreement}. Methods: {methods}."
    return [canvas.place(human.draw(found, ours), "human", caption), _table(found)]


def _table(found: Sequence[Outcomes]) -> Markup:
    """The figure's numbers: a small share has no room for its interval in its bar."""
    rows = [
        [one.against, *(f"{100 * s.value:.0f} ({100 * s.low:.0f} … {100 * s.high:.0f})" for s in one.shares.values())]
        for one in found
    ]
    return table(["% of ratings, against", *found[0].shares], rows)
