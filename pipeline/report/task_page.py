"""The page of an experiment on labelled texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from markupsafe import Markup
from matplotlib.figure import Figure

from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.pooled import LabelCounts, divergences, roughness
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.report.effects import effect_records, effects_table
from pipeline.report.figures.curves import Points, draw_costs, draw_curves
from pipeline.report.figures.intervals import draw_forest
from pipeline.report.figures.matrices import draw_distances
from pipeline.report.page import Canvas, page
from pipeline.report.task_tables import (
    THEIRS,
    PaperRows,
    RunOutcome,
    client_rows,
    cost_row,
    federation_row,
    majority_row,
    method_row,
    with_paper,
)
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json

TITLES = {"classify": "Classifying", "tag": "Tagging", "answer": "Answering", "title": "Writing titles"}
"""Task -> its name on pages."""
Tables = dict[str, list[Json]]
WHOLE = "whole-"
"""Prefix of the names of settings that are drawn and have no training."""
LOSS = "development loss, nats an item"


@dataclass(frozen=True)
class TaskPage:
    """The tables, figures and page of an experiment on labelled texts, from its results.

    Attributes:
        outcomes: run -> its results.
        label_counts: setting -> seed -> client -> label -> training texts.
        metrics: data set -> its task's.
        data: a row a data set.
        altered: settings that are skewed differently from the paper's; its numbers are not shown with them.
        unassigned: setting -> the number of sampled texts that no client has, at the first seed.
    """

    order: ReportOrder
    outcomes: Mapping[str, RunOutcome]
    label_counts: Mapping[str, Mapping[int, LabelCounts]]
    metrics: Mapping[str, Sequence[Metric]]
    question: str
    effects: Sequence[Effect]
    data: Sequence[Json]
    paper: PaperRows
    altered: Set[str] = frozenset()
    unassigned: Mapping[str, int] = field(default_factory=dict)

    def metric(self, run: str) -> Metric:
        """The first metric of a run's task."""
        return self.metrics[self.outcomes[run].row.data[0]][0]

    def data_set(self, setting: str) -> str:
        """A setting's data set."""
        return self.order.settings[setting].data_sets[0]

    def task(self, setting: str) -> str:
        """The task of a setting's data set."""
        return self.order.data[self.data_set(setting)].rpartition(".")[2]

    def methods(self) -> list[str]:
        """The settings of Table 2: those that the file lists, or all that have runs."""
        used = {one.row.setting for one in self.outcomes.values()}
        return self.order.sections.get("methods", [setting for setting in self.order.settings if setting in used])

    def runs(self, section: str) -> list[str]:
        """A section's runs that have results."""
        return [run for run in self.order.sections.get(section, []) if run in self.outcomes]

    def title(self, setting: str) -> str:
        """The page's name of a setting of Table 2: its task and data set, and its own name where others share these."""
        data = self.data_set(setting)
        alone = [self.data_set(one) for one in self.methods()].count(data) == 1
        task = TITLES.get(self.task(setting), self.task(setting))
        return f"{task} ({data})" if alone else f"{task} ({data}, {setting})"

    # -- tables --

    def tables(self) -> Tables:
        """Name of a CSV -> its rows, for tables with rows; the paper's numbers are shown with published data alone."""
        natural: Tables = {}
        for run in self.runs("natural"):
            rows = natural.setdefault(f"natural-{self.outcomes[run].row.data[0]}", [])
            rows.append(client_rows(self.outcomes[run], self.metric(run)))
        tables = {
            "comparisons": effect_records(self.effects),
            "data": [
                {key: value for key, value in row.items() if self.order.published or not key.startswith("paper")}
                for row in self.data
            ],
            **{f"methods-{setting}": self._methods(setting) for setting in self.methods()},
            "federations": [self._federation(name) for name in self.label_counts],
            "partitions": [self._partition(run) for run in self.runs("partitions")],
            "cuts": [self._cost(run, self._paper_cut(self.outcomes[run].row)) for run in self.runs("cuts")],
            "sizes": [self._cost(run) for run in self.runs("sizes")],
            **natural,
        }
        return {name: rows for name, rows in tables.items() if rows}

    def _methods(self, setting: str) -> list[Json]:
        runs = [self.outcomes[run] for run in self._called_after(setting)]
        if not runs:
            return []
        metrics, label_counts = self.metrics[runs[0].row.data[0]], self.label_counts[setting]
        rows = [method_row(run, metrics, label_counts, self.order.sign_flips) for run in runs]
        counts = [Counter(labels) for labels in next(iter(label_counts.values())).values()]
        major = majority_row(runs[0].scored, metrics[0], sum(counts, Counter()))
        published = self.data_set(setting) in self.order.published and setting not in self.altered
        theirs = THEIRS.get(self.task(setting), "") if published else ""
        return with_paper(rows, self.paper, theirs) + ([major] if major else [])

    def _partition(self, run: str) -> Json:
        outcome, cost = self.outcomes[run], self._cost(run)
        rough = fmean(roughness(curve) for curve in outcome.curves.values())
        shown = {name: cost[name] for name in (self.metric(run).name, "low", "high")}
        return {"run": run, "setting": outcome.row.setting, **shown, "roughness": round(rough, 3)}

    def _federation(self, setting: str) -> Json:
        runs = (run.row for run in self.outcomes.values() if run.row.setting == setting)
        sizes = {row.training.batch_size for row in runs if row.training}
        counts = next(iter(self.label_counts[setting].values()))
        about = self.order.settings[setting]
        skew = {knob: "" if (value := getattr(about, knob, None)) is None else value for knob in ("alpha", "beta")}
        row = federation_row(setting, counts, max(sizes, default=None))
        return {"setting": setting} | skew | row | {"held_by_nobody": self.unassigned.get(setting, 0)}

    def _paper_cut(self, run: RunRow) -> float | None:
        if run.learner is None or run.learner.above != "layers" or run.setting in self.altered:
            return None
        name = f"{run.method.removeprefix('Ada')} frozen={run.learner.view.frozen}"
        return next((float(row["value"]) for row in self.paper if row["table"] == "3" and row["method"] == name), None)

    def _cost(self, run: str, paper: float | None = None) -> Json:
        return cost_row(self.outcomes[run], self.metric(run), self.order.sign_flips, paper)

    def _metric_of(self, effect: Effect) -> Metric:
        """An effect's metric, of its first run; for a run without results, the first metric with that name."""
        run = next(iter(effect.comparison.terms))
        own = self.metrics[self.outcomes[run].row.data[0]] if run in self.outcomes else ()
        return next(one for group in (own, *self.metrics.values()) for one in group if one.name == effect.metric)

    # -- figures --

    def draw(self, folder: Path) -> dict[str, Markup]:
        """Save every figure; name -> the HTML that embeds it."""
        canvas = Canvas(folder)
        found = {name: canvas.place(figure, name, name) for name, figure in self._figures().items()}
        if any(effect.interval for effect in self.effects):
            forest = draw_forest(self.effects, {one.metric: self._metric_of(one) for one in self.effects})
            found["forest"] = canvas.place(forest, "forest", "forest", rings="seeds")
        return found

    def _figures(self) -> dict[str, Figure]:
        figures = {}
        panels = {self.title(s): curves for s in self.methods() if (curves := self._curves(self._called_after(s)))}
        if panels:
            figures["curves"] = draw_curves(panels, LOSS)
        if curves := self._curves(self.runs("partitions")):
            figures["partition_curves"] = draw_curves({"": curves}, LOSS)
        cuts: dict[str, dict[str, Points]] = {}
        for run, curve in self._curves(self.runs("cuts")).items():
            cuts.setdefault(self.outcomes[run].row.method.removeprefix("Ada"), {})[run] = curve
        if cuts:
            figures["cut_curves"] = draw_curves(cuts, LOSS)
        if sizes := self.runs("sizes"):
            points = {run: (self.outcomes[run].sent / 1e6, self._cost(run)[self.metric(run).name]) for run in sizes}
            figures["size_curves"] = draw_curves({"": self._curves(sizes)}, LOSS)
            figures["size_figure"] = draw_costs(points, "MB sent", self.metric(sizes[0]).title)
        alphas = {name: getattr(self.order.settings[name], "alpha", None) for name in self.label_counts}
        whole = {name: alpha for name, alpha in alphas.items() if name.startswith(WHOLE) and alpha is not None}
        if whole:
            counts = {
                name: next(iter(self.label_counts[name].values())) for name in sorted(whole, key=whole.__getitem__)
            }
            figures["distances"] = draw_distances({name: divergences(own) for name, own in counts.items()})
        return figures

    def _called_after(self, setting: str) -> list[str]:
        """The runs with results of a setting's table of methods."""
        own = (run for run, one in self.outcomes.items() if one.row.setting == setting)
        return [run for run in own if run.startswith(f"{setting}-")]

    def _curves(self, runs: Iterable[str]) -> dict[str, Points]:
        """Run -> (round, its development loss, the mean over seeds); runs that train nothing are left out."""
        curves = {run: self.outcomes[run].curves.values() for run in runs if self.outcomes[run].curves}
        return {run: list(enumerate(map(fmean, zip(*own, strict=False)), 1)) for run, own in curves.items()}

    # -- pages --

    def render(self, figures: Mapping[str, Markup], tables: Tables, samples: Sequence[str]) -> str:
        """The page as HTML, from the results of `draw` and `tables`."""
        seeds = {seed: f"seed {seed}" for one in self.outcomes.values() for seed in sorted(one.scored)}
        return page(
            "task_page.html.j2",
            figures,
            order=self.order,
            samples=samples,
            ours=self.order.paper is None,
            writes=any(metric.name == "coco" for own in self.metrics.values() for metric in own),
            altered=sorted(self.altered),
            methods={self.title(s): tables[f"methods-{s}"] for s in self.methods() if f"methods-{s}" in tables},
            natural={name.partition("-")[2]: rows for name, rows in tables.items() if name.startswith("natural-")},
            question=self.question,
            effects=effects_table(self.effects, self._metric_of, seeds),
            **{name: tables.get(name, []) for name in ("data", "federations", "partitions", "cuts", "sizes")},
        )
