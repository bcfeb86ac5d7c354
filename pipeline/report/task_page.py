"""The page of an experiment on labelled texts."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.pooled import divergences, roughness
from pipeline.plan.orders import ReportOrder
from pipeline.report import task_tables as rows
from pipeline.report.effects import answer_of, effect_records, effects_table
from pipeline.report.figures.curves import Points, draw_curves
from pipeline.report.figures.intervals import draw_forest
from pipeline.report.figures.matrices import draw_distances
from pipeline.report.page import Drawing, Rows, page
from pipeline.report.task_tables import Outcome, metrics_of
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json

NAMES = {
    "classify": ("Classifying", "text classification"),
    "tag": ("Tagging", "sequence tagging"),
    "answer": ("Answering", "question answering"),
    "title": ("Writing titles", "seq2seq"),
    "extract": ("Extracting", ""),
}
"""Task -> its name on pages, and in the paper."""
Tables = dict[str, list[Json]]
Panels = Mapping[str, Mapping[str, Points]]  # title -> run -> its points
IN_FILES = ("rouge2_recall", "rougeLsum_recall", "rougeL_recall")  # columns that the page spares
WHOLE = "whole-"  # prefix of the names of settings that are drawn and have no training
LOSS = "development loss, nats an item"
KINDS = ("prime", "skipped")  # of FedSum's batches


@dataclass(frozen=True)
class TaskPage:
    """The tables, figures and page of an experiment on labelled texts, from its results.

    Attributes:
        outcomes: run -> its results.
        drawn: setting -> seed -> `clients` (client -> label -> training texts) and `unassigned` (texts of no client).
        notes: data set -> its counts and its source.
        altered: settings that are skewed differently from the paper's; its numbers are not shown with them.
    """

    order: ReportOrder
    outcomes: Mapping[str, Outcome]
    drawn: Mapping[str, Mapping[int, Json]]
    notes: Mapping[str, Json]
    question: str
    effects: Sequence[Effect]
    paper: Rows
    altered: Set[str]

    def data_set(self, setting: str) -> str:
        """A setting's data set."""
        return self.order.settings[setting].data_sets[0]

    def names(self, data: str) -> tuple[str, str]:
        """The names of a data set's task on the page and in the paper, where it has one of published data."""
        task = self.order.data[data].rpartition(".")[2]
        ours, theirs = NAMES.get(task, (task, ""))
        return ours, theirs if data in self.order.published else ""

    def methods(self) -> list[str]:
        """The settings of Table 2: those that the file lists, or all that have runs."""
        used = {one.row.setting for one in self.outcomes.values()}
        return self.order.sections.get("methods", [setting for setting in self.order.settings if setting in used])

    def runs(self, section: str) -> list[Outcome]:
        """A section's runs that have results."""
        return [self.outcomes[run] for run in self.order.sections.get(section, []) if run in self.outcomes]

    def title(self, setting: str) -> str:
        """The page's name of a setting of Table 2: its task and data set, and its own name where others share these."""
        data = self.data_set(setting)
        alone = [self.data_set(one) for one in self.methods()].count(data) == 1
        return f"{self.names(data)[0]} ({data}{'' if alone else f', {setting}'})"

    def tables(self) -> Tables:
        """Name of a CSV -> its rows, for tables with rows; the paper's numbers are shown with published data alone."""
        samples = self.order.sign_flips
        tables: Tables = {
            "comparisons": effect_records(self.effects),
            "data": [self._data(name) for name in self.notes],
            **{f"methods-{setting}": self._methods(setting) for setting in self.methods()},
            "federations": [self._federation(name) for name in self.drawn],
            "partitions": [self._partition(run) for run in self.runs("partitions")],
            "cuts": [rows.cost_row(run, samples, self._paper_cut(run)) for run in self.runs("cuts")],
            "sizes": [rows.cost_row(run, samples) for run in self.runs("sizes")],
        }
        for run in self.runs("natural"):
            tables.setdefault(f"natural-{run.row.data[0]}", []).append(rows.client_row(run))
        return {name: own for name, own in tables.items() if own}

    def _data(self, name: str) -> Json:
        """Its row, with the training texts of its first run whose first windows lack the answer."""
        run = next((one for one in self.outcomes.values() if one.row.data[0] == name), None)
        unlearned = None if run is None else int(next(iter(run.results.values()))["unlearned"])
        row = rows.data_row(name, self.notes[name], unlearned, self.names(name)[1], self.paper)
        return {key: value for key, value in row.items() if self.order.published or not key.startswith("paper")}

    def _methods(self, setting: str) -> list[Json]:
        data, runs = self.data_set(setting), self._called_after(setting)
        if not runs:
            return []
        label_counts = {seed: own["clients"] for seed, own in self.drawn[setting].items()}
        found = [rows.method_row(run, label_counts, self.order.sign_flips) for run in runs]
        about = self.order.settings[setting]
        grouped = getattr(about, "by", "label") != "label" or getattr(about, "silos", None)
        first = next(iter(label_counts.values()))
        major = None if grouped else rows.majority_row(runs[0], self.order.data[data], first)
        theirs = "" if setting in self.altered else self.names(data)[1]
        return rows.with_paper(found, setting, self.paper, theirs) + ([major] if major else [])

    def _partition(self, run: Outcome) -> Json:
        rough = fmean(roughness(curve) for curve in run.by_round().values())
        shown = {"run": run.row.name, "setting": run.row.setting, **rows.score_of(run, self.order.sign_flips)}
        return shown | {"roughness": round(rough, 3)}

    def _federation(self, setting: str) -> Json:
        runs = (run.row for run in self.outcomes.values() if run.row.setting == setting)
        batch = max((row.training.batch_size for row in runs if row.training), default=None)
        first, about = next(iter(self.drawn[setting].values())), self.order.settings[setting]
        skew = {knob: "" if (value := getattr(about, knob, None)) is None else value for knob in ("alpha", "beta")}
        sizes = rows.federation_row(first["clients"], batch)
        return {"setting": setting} | skew | sizes | {"held_by_nobody": int(first["unassigned"])}

    def _paper_cut(self, run: Outcome) -> float | None:
        row = run.row
        if row.learner is None or row.learner.above != "layers" or row.setting in self.altered:
            return None
        name = f"{row.method.removeprefix('Ada')} frozen={row.learner.view.frozen}"
        return next((float(one["value"]) for one in self.paper if (one["table"], one["method"]) == ("3", name)), None)

    def _metric_of(self, effect: Effect) -> Metric:
        """An effect's metric, of its first run; for a run without results, the first of any task with that name."""
        first = self.outcomes.get(next(iter(effect.comparison.terms)))
        known = [*(first.metrics if first else ()), *metrics_of(self.order)]
        return next(metric for metric in known if metric.name == effect.metric)

    def draw(self) -> list[Drawing]:
        """Every figure."""
        cuts: dict[str, list[Outcome]] = {}
        for run in self.runs("cuts"):
            cuts.setdefault(run.row.method.removeprefix("Ada"), []).append(run)
        sizes = self.runs("sizes")
        groups = {
            "curves": {self.title(setting): self._called_after(setting) for setting in self.methods()},
            "partition_curves": {"": self.runs("partitions")},
            "cut_curves": cuts,
            "size_curves": {"": sizes},
        }
        curves = {name: {title: _curves(runs) for title, runs in own.items()} for name, own in groups.items()}
        panels = {name: {title: one for title, one in own.items() if one} for name, own in curves.items()}
        found = [Drawing(draw_curves(own, LOSS), name, name) for name, own in panels.items() if own]
        if sizes:
            points = {run.row.name: [(run.sent / 1e6, round(run.mean(run.metric), 2))] for run in sizes}
            sent = draw_curves({"": points}, sizes[0].metric.title, "MB sent")
            found.append(Drawing(sent, "size_figure", "size_figure"))
        found += self._of_extracts()
        alphas = {s: getattr(self.order.settings[s], "alpha", None) for s in self.drawn if s.startswith(WHOLE)}
        known = sorted((alpha, setting) for setting, alpha in alphas.items() if alpha is not None)
        if known:
            counts = {setting: next(iter(self.drawn[setting].values()))["clients"] for _, setting in known}
            distances = draw_distances({setting: divergences(own) for setting, own in counts.items()})
            found.append(Drawing(distances, "distances", "distances"))
        if any(effect.interval for effect in self.effects):
            forest = draw_forest(self.effects, {one.metric: self._metric_of(one) for one in self.effects})
            paper = {"dashed": "the paper"} if any(effect.paper is not None for effect in self.effects) else {}
            found.append(Drawing(forest, "forest", "forest", {"rings": "seeds"} | paper))
        return found

    def _first_of_each(self) -> list[Effect]:
        """Each comparison by its first metric: the page would be twice as long with the others."""
        first = {one.comparison.name: one.metric for one in reversed(self.effects)}
        return [one for one in self.effects if one.metric == first[one.comparison.name]]

    def _of_extracts(self) -> list[Drawing]:
        """What FedSum skips, which places are chosen, scores by documents trained and by knobs; none of other tasks."""
        runs = {self.title(s): [run for run in self._called_after(s) if run.places] for s in self.methods()}
        score = next((run.metric.title for own in runs.values() for run in own), "")
        named = {name: set(self.order.sections.get(name, self.outcomes)) for name in ("amounts", "places")}
        scored: Panels = {
            title: {
                run.row.name: [(run.documents, run.mean(run.metric))]
                for run in own
                if run.row.training and run.row.name in named["amounts"]
            }
            for title, own in runs.items()
        }
        places: Panels = {
            title: {run.row.name: run.places for run in own if run.row.name in named["places"]}
            for title, own in runs.items()
        }
        fedsum = {title: [run for run in own if run.row.method == "FedSum"] for title, own in runs.items()}
        kinds = {kind: {title: _curves(own, f"share_{kind}") for title, own in fedsum.items()} for kind in KINDS}
        found: dict[str, tuple[Panels, str, str]]
        found = {kind: (own, f"share of units in {kind} batches", "round") for kind, own in kinds.items()}
        found["places"] = (places, "share of the chosen units", "place in the document; the last: all others")
        found["amounts"] = (scored, score, "documents trained")
        found["key_share"] = ({"": self._sweep("key_share", "key_share")}, score, "λ")
        found["quantity"] = ({"": self._sweep("quantity")}, score, "training documents")
        shown = {name: ({title: own for title, own in one[0].items() if own}, *one[1:]) for name, one in found.items()}
        return [Drawing(draw_curves(*one), name, name) for name, one in shown.items() if one[0]]

    def _sweep(self, section: str, knob: str = "") -> dict[str, Points]:
        """Method and skew -> (a hyperparameter, or without one the training documents; score) of a section's runs."""
        lines: dict[str, dict[float, float]] = {}
        for run in self.runs(section):
            place = sum(size["train"] for size in next(iter(run.results.values()))["sizes"].values())
            if knob and run.row.training:
                place = run.row.training.hyperparameters[knob]
            beta = getattr(self.order.settings[run.row.setting], "beta", None)
            line = f"{run.row.method}, {f'β = {beta:g}' if beta else 'even sizes'}"
            lines.setdefault(line, {})[place] = run.mean(run.metric)
        return {line: sorted(points.items()) for line, points in lines.items()}

    def _called_after(self, setting: str) -> list[Outcome]:
        """The runs with results of a setting's table of methods."""
        own = (run for run in self.outcomes.values() if run.row.setting == setting)
        return [run for run in own if run.row.name.startswith(f"{setting}-")]

    def render(self, tables: Tables, warnings: Markup) -> str:
        """The page as HTML, from the results of `tables`; its figures are saved."""
        seeds = {seed: f"seed {seed}" for one in self.outcomes.values() for seed in sorted(one.results)}
        return page(
            "task_page.html.j2",
            self.draw(),
            warnings=warnings,
            order=self.order,
            ours=self.order.paper is None,
            writes=any(metric.name == "coco" for metric in metrics_of(self.order)),
            altered=sorted(self.altered),
            methods={
                self.title(s): [{key: row[key] for key in row if key not in IN_FILES} for row in tables[f"methods-{s}"]]
                for s in self.methods()
                if f"methods-{s}" in tables
            },
            natural={name.partition("-")[2]: own for name, own in tables.items() if name.startswith("natural-")},
            question=self.question,
            answer=answer_of(self.effects, {one.metric: self._metric_of(one) for one in self.effects}),
            effects=effects_table(self._first_of_each(), self._metric_of, seeds),
            **{name: tables.get(name, []) for name in ("data", "federations", "partitions", "cuts", "sizes")},
        )


def _curves(runs: Iterable[Outcome], column: str = "validation_loss") -> dict[str, Points]:
    """Run -> (round, its development loss or another column, the mean over seeds), of runs that have it."""
    curves = {run.row.name: run.by_round(column).values() for run in runs}
    return {run: list(enumerate(map(fmean, zip(*own, strict=False)), 1)) for run, own in curves.items() if own}
