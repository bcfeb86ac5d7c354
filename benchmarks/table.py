"""The benchmark rows as a table and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.figures.style import save

HEAD = ("what", "against", "Quorum", "the other", "times", "aim", "reached")


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    lines = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}"]
    return "\n".join([*lines, *(f"| {' | '.join(_cells(row))} |" for row in rows)]) + "\n"


def _cells(row: dict[str, Any]) -> list[str]:
    aim = "" if row["promised"] is None else f"{row['promised']:g}"
    if row["skipped"]:
        return [row["what"], row["against"], "", "", "", aim, f"skipped: {row['skipped']}"]
    reached = "" if row["promised"] is None else "yes" if row["ratio"] >= row["promised"] else "**no**"
    return [row["what"], row["against"], _side(row, "ours"), _side(row, "theirs"), _figures(row["ratio"]), aim, reached]


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
    """Bars of what was reached over marks of what was promised, on a logarithmic axis."""
    import matplotlib.pyplot as plt

    shown = [row for row in rows if row["ratio"] is not None]
    figure, axes = plt.subplots(figsize=(8, 0.55 * len(shown) + 1), layout="constrained")
    places = range(len(shown), 0, -1)
    axes.barh(places, [row["ratio"] for row in shown], height=0.6, label="measured")
    aims = [(place, row["promised"]) for place, row in zip(places, shown, strict=True) if row["promised"]]
    axes.scatter([aim for _, aim in aims], [place for place, _ in aims], marker="|", s=300, color="black", label="aim")
    axes.set_yticks(list(places), [row["what"] for row in shown], fontsize=7)
    axes.set_xscale("log")
    axes.set_xlim(left=min(0.5, *(row["ratio"] / 2 for row in shown)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("times in Quorum's favour")
    figure.legend(loc="outside upper right", ncols=2, fontsize=7, markerscale=0.5)
    save(figure, folder, "benchmarks")
