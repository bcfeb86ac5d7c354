"""Fig. 11 of the paper: parts of speech of the words learned (a) with the distillation loss, (b) without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from pipeline.report.figures.style import colour

SHOWN = 10


def draw(rows: Sequence[Mapping[str, str]], client: str) -> Figure:
    """`rows` of pos_kd.csv; the grey marks are the base rates, what either panel would show without selection."""
    own = [row for row in rows if row["client"] == client and row["pos"] != "all"][:SHOWN]
    figure = Figure(figsize=(7.2, 3.0))
    left, right = figure.subplots(1, 2, sharey=True)
    labels = [row["pos"] for row in own]
    panels = (
        (left, "pos_given_distilled", 7, "(a) with distillation"),
        (right, "pos_given_not_distilled", 6, "(b) without distillation"),
    )
    for axis, column, index, title in panels:
        axis.bar(labels, [100 * float(row[column]) for row in own], color=colour(index), width=0.7)
        axis.plot(
            labels,
            [100 * float(row["base_rate"]) for row in own],
            linestyle="none",
            marker="_",
            markersize=14,
            markeredgewidth=2,
            color="#444444",
            label="base rate",
        )
        axis.set_title(title)
        axis.tick_params(axis="x", rotation=45)
        axis.grid(axis="x", visible=False)
    left.set_ylabel(f"share of words, %  ({client})")
    right.legend(loc="upper right")
    figure.tight_layout()
    return figure


def share_text(row: Mapping[str, str] | None) -> str:
    """A row of word_shares.csv as a percentage with its interval."""
    if row is None:
        return "–"
    value, *ends = (100 * float(row[k]) for k in ("value", "low", "high") if row.get(k) not in (None, ""))
    return f"{value:.1f}%" + (" ({:.1f} … {:.1f})".format(*ends) if ends else "")
