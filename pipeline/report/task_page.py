"""The page of an experiment on labelled texts, and the gallery of its federations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.pooled import LabelCounts, divergences, roughness
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.plan.pages import is_called_after
from pipeline.report.effects import effect_records, effect_row
from pipeline.report.figures import forest
from pipeline.report.figures.federations import draw_costs, draw_curves, draw_distances
from pipeline.report.figures.style import save
from pipeline.report.page import COMMAND, embedded, page, piece
from pipeline.report.task_tables import (
    THEIRS,
    PaperRows,
    Row,
    RunOutcome,
    client_rows,
    cost_row,
    federation_row,
    majority_row,
    method_row,
    with_paper,
)
from pipeline.tasks.task import Metric

TITLES = {"classify": "Classifying", "tag": "Tagging", "answer": "Answering", "title": "Writing titles"}
"""Task -> its name on pages."""
Tables = dict[str, list[Row]]
WHOLE = "whole-"
"""Prefix of the names of settings that are drawn and have no training."""
FOREST = "Effects with 95% intervals; rings are the effects of single seeds. An asterisk: p is not corrected."


def _theirs(method: str) -> str:
    """The paper's name of a method: AdaCentralized is Centralized, AdaFedOPT is FedOPT."""
    return method.removeprefix("Ada")


class TaskPage:
    """The tables, figures and page of an experiment on labelled texts, from its results."""

    def __init__(
        self,
        order: ReportOrder,
        outcomes: Mapping[str, RunOutcome],
        label_counts: Mapping[str, Mapping[int, LabelCounts]],
        metrics: Mapping[str, Sequence[Metric]],
        question: str,
        effects: Sequence[Effect],
        data: Sequence[Row],
        paper: PaperRows,
        altered: Set[str] = frozenset(),
        unassigned: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Create the page.

        Args:
            outcomes: run -> its results.
            label_counts: setting -> seed -> client -> label -> training texts.
            metrics: data set -> its task's.
            data: a row a data set.
            altered: settings that are skewed differently from the paper's; its numbers are not shown with them.
            unassigned: setting -> the number of sampled texts that no client has, at the first seed.
        """
        self.order, self.outcomes, self.label_counts, self.metrics = order, outcomes, label_counts, metrics
        self.question, self.effects, self.data, self.paper, self.altered = question, effects, data, paper, altered
        self.unassigned = unassigned

    def metric(self, run: str) -> Metric:
        """The first metric of a run's task."""
        return self.metrics[self.outcomes[run].row.data[0]][0]

    def data_set(self, setting: str) -> str:
        """A setting's data set."""
        return self.order.settings[setting].data_sets[0]

    def sections(self, name: str) -> list[str]:
        """A section's settings or runs; `methods` has every setting with runs, unless the file lists some."""
        if name in self.order.sections or name != "methods":
            return self.order.sections.get(name, [])
        return [
            setting for setting in self.order.settings if any(r.row.setting == setting for r in self.outcomes.values())
        ]

    def task(self, setting: str) -> str:
        """The task of a setting's data set."""
        return self.order.data[self.data_set(setting)].rpartition(".")[2]

    def title(self, setting: str) -> str:
        """The page's name of a setting of Table 2: its task and data set, and its own name where others share these."""
        data = self.data_set(setting)
        alone = [self.data_set(one) for one in self.sections("methods")].count(data) == 1
        task = TITLES.get(self.task(setting), self.task(setting))
        return f"{task} ({data})" if alone else f"{task} ({data}, {setting})"

    # -- tables --

    def tables(self) -> Tables:
        """Name of a CSV -> its rows, for tables with rows; the paper's numbers are shown with published data alone."""
        found = {f"methods-{setting}": self._methods(setting) for setting in self.sections("methods")}
        natural = self._natural()
        tables = {
            "comparisons": effect_records(self.effects),
            "data": [
                {key: value for key, value in row.items() if self.order.published or not key.startswith("paper")}
                for row in self.data
            ],
            **found,
            "federations": [self._federation(name) for name in self.label_counts],
            "partitions": self._partitions(),
            "cuts": self._cuts(),
            "sizes": [self._cost(run, None) for run in self._listed("sizes")],
            **{f"natural-{dataset}": rows for dataset, rows in natural.items()},
        }
        return {name: rows for name, rows in tables.items() if rows}

    def _methods(self, setting: str) -> list[Row]:
        runs = [self.outcomes[run] for run in self._called_after(setting)]
        if not runs:
            return []
        metrics, label_counts = self.metrics[runs[0].row.data[0]], self.label_counts[setting]
        rows = [method_row(run, metrics, label_counts, self.order.sign_flips) for run in runs]
        counts: dict[str, int] = {}
        for labels in next(iter(label_counts.values())).values():
            for label, count in labels.items():
                counts[label] = counts.get(label, 0) + count
        major = majority_row(runs[0].scored, metrics[0], counts)
        published = self.data_set(setting) in self.order.published and setting not in self.altered
        theirs = THEIRS.get(self.task(setting), "") if published else ""
        return with_paper(rows, self.paper, theirs) + ([major] if major else [])

    def _partitions(self) -> list[Row]:
        rows = []
        for run in self._listed("partitions"):
            outcome = self.outcomes[run]
            rough = fmean(roughness(curve) for curve in outcome.curves.values())
            rows.append(self._cost(run, None) | {"setting": outcome.row.setting, "roughness": round(rough, 3)})
        return [
            {k: row[k] for k in ("run", "setting", self.metric(row["run"]).name, "low", "high", "roughness")}
            for row in rows
        ]

    def _federation(self, setting: str) -> Row:
        sizes = {
            run.row.training.batch_size
            for run in self.outcomes.values()
            if run.row.setting == setting and run.row.training
        }
        knobs = dict(zip(("alpha", "beta"), self._skew(setting), strict=True))
        shown = federation_row(setting, next(iter(self.label_counts[setting].values())), max(sizes, default=None))
        drawn = {knob: "" if value is None else value for knob, value in knobs.items()}
        return {"setting": setting} | drawn | shown | {"held_by_nobody": self.unassigned.get(setting, 0)}

    def _skew(self, setting: str) -> tuple[float | None, float | None]:
        """α of labels or clusters, β of sizes; None where clients are skewed otherwise or not at all."""
        skew = self.order.settings[setting]
        return getattr(skew, "alpha", None), getattr(skew, "beta", None)

    def _listed(self, table: str) -> list[str]:
        """A table's runs that have results."""
        return [run for run in self.sections(table) if run in self.outcomes]

    def _cuts(self) -> list[Row]:
        return [self._cost(run, self._paper_cut(self.outcomes[run].row)) for run in self._listed("cuts")]

    def _paper_cut(self, run: RunRow) -> float | None:
        if run.learner is None or run.learner.above != "layers" or run.setting in self.altered:
            return None
        name = f"{_theirs(run.method)} frozen={run.learner.view.frozen}"
        return next((float(row["value"]) for row in self.paper if row["table"] == "3" and row["method"] == name), None)

    def _cost(self, run: str, paper: float | None) -> Row:
        return cost_row(self.outcomes[run], self.metric(run), self.order.sign_flips, paper)

    def _natural(self) -> Tables:
        found: Tables = {}
        for run in self._listed("natural"):
            found.setdefault(self.outcomes[run].row.data[0], []).append(
                client_rows(self.outcomes[run], self.metric(run))
            )
        return found

    def _effect(self, effect: Effect) -> dict[str, str]:
        run = next(iter(effect.comparison.terms))
        seeds = {seed: f"seed {seed}" for one in self.outcomes.values() for seed in sorted(one.scored)}
        return effect_row(effect, self._metric_of(run, effect.metric), seeds)

    def _metric_of(self, run: str, name: str) -> Metric:
        """A metric of a run by its name; for a run without results, the first metric with that name."""
        own = self.metrics[self.outcomes[run].row.data[0]] if run in self.outcomes else ()
        return next(one for group in (own, *self.metrics.values()) for one in group if one.name == name)

    # -- figures --

    def draw(self, folder: Path) -> dict[str, Markup]:
        """Save every figure.

        Returns:
            Name -> the HTML that embeds it.
        """
        found = {}
        for name, figure, caption in self._figures():
            save(figure, folder, name)
            found[name] = embedded(folder / f"{name}.svg", f"{caption} To draw it again: {COMMAND}.")
        return found

    def _figures(self) -> list[tuple[str, Any, str]]:
        settings = [s for s in self.sections("methods") if self._curves_of(s)]
        figures: list[tuple[str, Any, str]] = []
        rounds, loss = "round", "development loss, nats an item"
        if settings:
            panels = {self.title(s): self._curves_of(s) for s in settings}
            figures.append(("curves", draw_curves(panels, rounds, loss), "Development loss by round, mean over seeds."))
        if curves := self._named(self.sections("partitions")):
            figures.append(
                ("partition_curves", draw_curves({"": curves}, rounds, loss), "Development loss by federation.")
            )
        panels = {}
        for run, curve in self._named(self.sections("cuts")).items():
            panels.setdefault(_theirs(self.outcomes[run].row.method), {})[run] = curve
        if panels:
            figures.append(("cut_curves", draw_curves(panels, rounds, loss), "Where the encoder is cut."))
        sizes = self._listed("sizes")
        if sizes:
            points = {
                run: (self.outcomes[run].sent / 1e6, self._cost(run, None)[self.metric(run).name]) for run in sizes
            }
            figures.append(("size_curves", draw_curves({"": self._named(sizes)}, rounds, loss), "Models by size."))
            figures.append(
                ("size_figure", draw_costs(points, "MB sent", self.metric(sizes[0]).title), "Score by what is sent.")
            )
        alphas = {name: alpha for name in self.label_counts if (alpha := self._skew(name)[0]) is not None}
        ordered = sorted(alphas, key=lambda name: alphas[name])
        drawn = {name: divergences(next(iter(self.label_counts[name].values()))) for name in ordered}
        if whole := {name: found for name, found in drawn.items() if name.startswith(WHOLE)}:
            figures.append(("distances", draw_distances(whole), "Jensen-Shannon divergence between clients, in bits."))
        if any(effect.interval for effect in self.effects):
            shown = {one.metric: self._metric_of(next(iter(one.comparison.terms)), one.metric) for one in self.effects}
            figures.insert(0, ("forest", forest.draw(self.effects, shown), FOREST))
        return figures

    def _curves_of(self, setting: str) -> dict[str, list[float]]:
        return self._named(self._called_after(setting))

    def _called_after(self, setting: str) -> list[str]:
        return [
            name for name, run in self.outcomes.items() if run.row.setting == setting and is_called_after(name, setting)
        ]

    def _named(self, runs: Sequence[str]) -> dict[str, list[float]]:
        """Run -> its development loss by round, the mean over seeds; runs that train nothing are left out."""
        found = {}
        for run in (run for run in runs if run in self.outcomes and self.outcomes[run].curves):
            curves = list(self.outcomes[run].curves.values())
            found[run] = [fmean(values) for values in zip(*curves, strict=False)]
        return found

    # -- pages --

    def render(self, figures: Mapping[str, Markup], tables: Tables, samples: Sequence[str]) -> str:
        """The page as HTML, from the results of `draw` and `tables`."""
        names = ("forest", "curves", "partition_curves", "cut_curves", "size_curves", "size_figure", "distances")
        return page(
            "task_page.html.j2",
            samples=samples,
            ours=not self.order.published,
            writes=any(metric.name == "coco" for own in self.metrics.values() for metric in own),
            altered=sorted(self.altered),
            scale=self.order.scale,
            precision=self.order.precision,
            sign_flips=self.order.sign_flips,
            command=COMMAND,
            methods={
                self.title(s): tables[f"methods-{s}"] for s in self.sections("methods") if f"methods-{s}" in tables
            },
            natural={name.partition("-")[2]: rows for name, rows in tables.items() if name.startswith("natural-")},
            question=self.question,
            effects=piece("effects", rows=[self._effect(one) for one in self.effects]),
            **{name: tables.get(name, []) for name in ("data", "federations", "partitions", "cuts", "sizes")},
            **{name: figures.get(name, "") for name in names},
        )
