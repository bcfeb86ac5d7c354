"""The benchmark rows as a table and as a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.report.figures.style import colour, save

HEAD = ("what", "against", "Quorum", "the other", "times", "aim", "reached", "measured")
REACHED, MISSED = colour(7), colour(6)
TICKS = (0.1, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    return "\n".join([*lines, *(f"| {' | '.join(_cells(row))} |" for row in rows)]) + "\n"


def _cells(row: dict[str, Any]) -> list[str]:
    aim = "" if row["promised"] is None else f"{row['promised']:g}"
    if row["skipped"]:
        return [row["what"], row["against"], "", "", "", aim, f"skipped: {row['skipped']}", ""]
    reached = "" if row["promised"] is None else "yes" if row["ratio"] >= row["promised"] else "**no**"
    sides = [_side(row, "ours"), _side(row, "theirs")]
    return [row["what"], row["against"], *sides, _figures(row["ratio"]), aim, reached, row["measured"]["day"]]


def _side(row: dict[str, Any], side: str) -> str:
    found, unit = row[side], row["unit"]
    if found is None:
        value = row["details"].get(side)
        return "" if value is None else f"{_figures(value) if value < 1 else f'{value:,.0f}'} {unit}".rstrip()
    if unit == "s" and found["median"] < 0.1:
        found, unit = {name: 1000 * found[name] for name in ("median", "low", "high")}, "ms"
    return f"{_figures(found['median'])} {unit} ({_figures(found['low'])} … {_figures(found['high'])})"


def _figures(value: float) -> str:
    """Three of them that count."""
    return f"{value:#.3g}".rstrip(".")


def draw(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """A bar a row, from 1 to what was measured, on a logarithmic axis, and a mark at its aim."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    shown = [row for row in rows if row["ratio"] is not None]
    if not shown:
        return
    figure, axes = plt.subplots(figsize=(8, 0.62 * len(shown) + 1.2), layout="constrained")
    for place, row in zip(range(len(shown), 0, -1), shown, strict=True):
        missed = row["promised"] is not None and row["ratio"] < row["promised"]
        axes.barh(place - 0.15, row["ratio"] - 1, left=1, height=0.4, color=MISSED if missed else REACHED)
        axes.text(0, place + 0.18, row["what"], transform=axes.get_yaxis_transform(), fontsize=6.5)
        ratio = _figures(row["ratio"])
        axes.text(1, place - 0.15, ratio, transform=axes.get_yaxis_transform(), fontsize=8, va="center", ha="right")
        if row["promised"] is not None:
            axes.plot([row["promised"]] * 2, [place - 0.37, place + 0.07], color="black", linewidth=2)
    axes.set_yticks([])
    axes.set_xscale("log")
    least = min(row["ratio"] for row in shown)
    axes.set_xlim(min(0.5, least / 1.5), 3 * max(row["ratio"] for row in shown))
    axes.set_xticks([tick for tick in TICKS if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("times in Quorum's favour; the black mark is the aim")
    handles = [Patch(color=REACHED, label="aim reached, or none set"), Patch(color=MISSED, label="aim missed")]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, fontsize=7)
    save(figure, folder, "benchmarks")
