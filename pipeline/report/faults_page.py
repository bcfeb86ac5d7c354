"""The page of an experiment on faults: dropout, stragglers and poisoned clients, means over seeds with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from markupsafe import Markup

from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.intervals import of_few
from pipeline.report.figures import forest
from pipeline.report.figures.faults import draw_bars, draw_by_time
from pipeline.report.figures.style import save
from pipeline.report.page import COMMAND, embedded, page, piece
from pipeline.tasks.task import Metric

FOREST = "Effects with 95% intervals. An asterisk: p is not corrected."
POISONED = {"clean": "none", "one": "one of ten", "two": "two of ten"}
DEFENCES = {
    "mean": "mean",
    "median": "median",
    "trimmed": "trimmed mean",
    "clipped": "norm clipping",
    "krum": "multi-Krum",
}
Row = dict[str, str | float]


@dataclass(frozen=True)
class AtSeed:
    """A run at one seed: its test score in points, its rounds' losses and times, and its faults.

    `losses`: development loss, nats an item. `clock`: simulated seconds since the training began. `events`: kind ->
    its number.
    """

    score: float
    losses: Sequence[float]
    clock: Sequence[float]
    events: Mapping[str, int]


Outcomes = Mapping[str, Mapping[int, AtSeed]]
"""Run -> seed -> its results."""


def row_of(run: str, seeds: Mapping[int, AtSeed], against: Mapping[int, AtSeed]) -> Row:
    """One run of a table; differences are taken seed by seed, so that the seeds' common variation cancels."""
    score = of_few([one.score for one in seeds.values()])
    difference = of_few([seeds[seed].score - against[seed].score for seed in seeds if seed in against])
    loss = of_few([one.losses[-1] for one in seeds.values()])
    minutes = fmean((one.clock[-1] if one.clock else 0.0) for one in seeds.values()) / 60
    kinds = sorted({kind for one in seeds.values() for kind in one.events if kind != "arrived"})
    counts = {kind: fmean(one.events.get(kind, 0) for one in seeds.values()) for kind in kinds}
    return {
        "run": run,
        "accuracy": round(score.value, 2),
        "half_interval": round(score.half, 2),
        "less_undisturbed": round(difference.value, 2),
        "half_interval_of_it": round(difference.half, 2),
        "development_loss": round(loss.value, 4),
        "half_interval_of_loss": round(loss.half, 4),
        "simulated_minutes": round(minutes, 1),
        "events": ", ".join(f"{count:.1f} {kind}" for kind, count in counts.items()) or "none",
    }


def tables_of(outcomes: Outcomes, wanted: Mapping[str, Sequence[str]]) -> dict[str, list[Row]]:
    """Table name -> its rows; a run is compared with the first of its table, a poisoned one with the clean mean."""
    found = {}
    for name, runs in wanted.items():
        there = [run for run in runs if run in outcomes]
        first = "clean-mean" if name in POISONED and "clean-mean" in outcomes else next(iter(there), "")
        found[name] = [row_of(run, outcomes[run], outcomes[first]) for run in there]
    return found


def draw(
    outcomes: Outcomes, wanted: Mapping[str, Sequence[str]], effects: Sequence[Effect], metric: Metric, folder: Path
) -> dict[str, Markup]:
    """Save every figure.

    Returns:
        Name -> the HTML that embeds it.
    """
    curves = {
        name: {
            run: _mean_curve(outcomes[run])
            for run in wanted.get(name, ())
            if run in outcomes and outcomes[run][min(outcomes[run])].clock
        }
        for name in ("dropout", "stragglers")
    }
    bars = {
        DEFENCES[kind]: [of_few([one.score for one in outcomes[f"{count}-{kind}"].values()]) for count in POISONED]
        for kind in DEFENCES
        if all(f"{count}-{kind}" in outcomes for count in POISONED)
    }
    captions = {
        "dropout": "Development loss against simulated time, mean over seeds, under dropout.",
        "stragglers": "The same with a fifth of the clients ten times as slow.",
    }
    figures = {}
    if any(effect.interval for effect in effects):
        save(forest.draw(effects, {metric.name: metric}), folder, "forest")
        figures["forest"] = embedded(folder / "forest.svg", f"{FOREST} To draw it again: {COMMAND}.")
    for name, own in curves.items():
        if own:
            save(draw_by_time(own), folder, name)
            figures[name] = embedded(folder / f"{name}.svg", f"{captions[name]} To draw it again: {COMMAND}.")
    if bars:
        save(draw_bars(bars, list(POISONED.values())), folder, "poison")
        caption = "Accuracy by defence and poisoned clients, mean over seeds with 95% intervals."
        figures["poison"] = embedded(folder / "poison.svg", f"{caption} To draw it again: {COMMAND}.")
    return figures


def _mean_curve(seeds: Mapping[int, AtSeed]) -> list[tuple[float, float]]:
    """(minutes, loss) a round, means over seeds."""
    rounds = zip(*([*zip(one.clock, one.losses, strict=True)] for one in seeds.values()), strict=False)
    return [(fmean(clock for clock, _ in own) / 60, fmean(loss for _, loss in own)) for own in rounds]


def render(
    question: str,
    effects: Sequence[Mapping[str, str]],
    tables: Mapping[str, Sequence[Row]],
    figures: Mapping[str, Markup],
    seeds: int,
    samples: Sequence[str],
) -> str:
    """The page as HTML; `effects` are rows of comparisons."""
    return page(
        "faults_page.html.j2",
        question=question,
        effects=piece("effects", rows=effects),
        tables={name: tables.get(name, []) for name in ("dropout", "stragglers", *POISONED)},
        figures={name: figures.get(name, "") for name in ("forest", "dropout", "stragglers", "poison")},
        seeds=seeds,
        samples=samples,
        command=COMMAND,
    )
