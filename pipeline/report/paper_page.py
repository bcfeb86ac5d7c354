"""The page on the paper: every table and figure of it, and under each our numbers with intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from markupsafe import Markup

from pipeline.corpora.example import SPLITS
from pipeline.evaluation.comparisons import Effect
from pipeline.evaluation.intervals import Interval, interval_of
from pipeline.evaluation.scores import MEAN, Figures, ScoresBySeed
from pipeline.federated.methods import OURS
from pipeline.plan.orders import ReportOrder
from pipeline.report.effects import effects_table
from pipeline.report.figures.intervals import draw_clients, draw_forest
from pipeline.report.notes import facts_of, limits, looks, mean_loss, rounds_cell, truncation
from pipeline.report.page import Cell, Drawing, Rows, gain_digits, gain_text, page, place, source_of, table
from pipeline.report.paper import Section, paper_table
from pipeline.report.pieces import Piece
from pipeline.runs.result_files import Result
from pipeline.runs.results import Metrics, Results, common_clients, side_by_side
from pipeline.tasks.task import LOSS, Metric
from pipeline.workspace.record import Json

Gains = Mapping[tuple[str, str, str], Interval]
"""(Metric, run, another run) -> what the first gains over the other; more is better, also for a loss."""


@dataclass(frozen=True)
class PaperPage:
    """Everything the page shows, but for pieces that are no comparison of runs.

    Attributes:
        metric: the score by which runs are compared.
        files: run at a seed -> its result.
        notes: data set -> its source and how it was read.
        statistics: data set -> the rows of its statistics.
        question, effects: of comparisons.yaml.
    """

    order: ReportOrder
    title: str
    metric: Metric
    results: Results
    files: Mapping[str, Result]
    sections: Sequence[Section]
    paper: Rows
    notes: Mapping[str, Json]
    statistics: Mapping[str, Sequence[Json]]
    question: str
    effects: Sequence[Effect]

    @cached_property
    def compared(self) -> dict[str, Metrics]:
        """Section of params.yaml -> the figures of its runs."""
        samples = self.order.sign_flips
        return {section: side_by_side(self.results, runs, samples) for section, runs in self.order.sections.items()}

    @cached_property
    def gains(self) -> dict[str, Gains]:
        """The same -> the difference of every two of its runs."""
        samples, endpoints = self.order.sign_flips, (self.metric, LOSS)
        return {name: gains_of(list(own), self.results, endpoints, samples) for name, own in self.compared.items()}

    def render(self, extra: Mapping[str, Sequence[Piece]], warnings: Markup) -> str:
        """The page; `extra`: section -> pieces that are no comparison of runs."""
        runs = [row for rows in self.results.rows.values() for row in rows]
        first = {row.setting: self.files[row.id] for row in reversed(runs)}
        metrics = {one.name: one for one in (self.metric, LOSS)}
        shown = [one for one in self.effects if one.metric in metrics]
        were_run = any(one.interval for one in shown)
        forest = place(Drawing(draw_forest(shown, metrics), "forest", "forest")) if were_run else ""
        seeds = {seed: f"seed {seed}" for seed in sorted({row.seed for row in runs})}
        trainings = len({self.files[row.id]["training"] for row in runs} - {None})
        of_trainings = f", of {trainings} trainings" if trainings else ""
        return page(
            "paper_page.html.j2",
            warnings=warnings,
            facts=[*facts_of(self.order, runs), ("runs", f"{len(runs)}{of_trainings}")],
            title=self.title,
            question=self.question,
            effects=effects_table(shown, lambda one: metrics[one.metric], seeds) if shown else "",
            forest=forest,
            sections=[self._section(one) | {"extra": [*map(place, extra.get(one.name, ()))]} for one in self.sections],
            corpora={source_of(name, self.notes[name]["source"]): rows for name, rows in self.statistics.items()},
            equal={name: about["equal"]["test_in_train"] for name, about in self.notes.items() if "equal" in about},
            settings=settings_table({name: first[name] for name in self.order.settings if name in first}),
            limits=limits(self.order, self.results),
        )

    def _section(self, section: Section) -> Json:
        compared = self.compared.get(section.name, {})
        about = {"section": section, "printed": [paper_table(self.paper, number) for number in section.tables]}
        if not compared:
            return about | dict.fromkeys(("table", "ahead", "figure"), "")
        reference = reference_of(list(compared), self.results)
        ahead = ahead_by(self.gains[section.name], reference, (self.metric, LOSS))
        drawn = draw_clients(compared, self.results.by_seed.values(), looks(self.order.runs), (self.metric, LOSS))
        common, clients = common_clients(compared)
        where = "mean" if common == clients else f"mean of {', '.join(common)}"
        better = f"{reference} is better, also in test loss; it is over test meetings that both runs have, in {where}"
        return about | {
            "table": section_table(compared, self.results, self.metric, reference, ahead),
            "ahead": better if ahead else "",
            "figure": place(Drawing(drawn, section.name, "comparison", {"title": section.title, "runs": compared})),
        }


def section_table(
    compared: Metrics, results: Results, metric: Metric, reference: str | None, ahead: Mapping[str, Mapping[str, str]]
) -> Markup:
    """A row a run: scores by client with intervals, its summaries' surface, its test loss, its best rounds.

    Means are over the clients that all compared runs have. A run with all clients also has the mean over these.

    `ahead`: run -> metric -> what the reference gains over it.
    """
    common, clients = common_clients(compared)

    def score(client: str) -> Callable[[str], Cell]:
        return lambda run: _score(compared[run].get(client), metric)

    def score_of_all(run: str) -> Cell:
        return _score(results.metrics[run][MEAN] if set(clients) < set(compared[run]) else None, metric)

    def gain(run: str) -> Cell:
        own = ahead.get(run, {})
        return Cell(own.get(metric.name, "–" if own else ""), own.get("loss", ""))

    def loss(run: str) -> Cell:
        found = compared[run][MEAN].metrics.get("loss")
        return Cell(f"{found.value:.3f}" if found else "–", _other_loss(compared[run], common))

    surface = Markup("similarity,<br>repetition, %")
    columns: list[tuple[object, Callable[[str], Cell]]] = [
        (Cell("run", metric.title), lambda run: Cell(results.rows[run][0].part, run)),
        *((client, score(client)) for client in clients),
        ("mean" if common == clients else f"mean of {', '.join(common)}", score(MEAN)),
        *([] if common == clients else [(f"mean of all {len(clients)}", score_of_all)]),
        *([(Cell(f"{reference} is ahead by", "in test loss, by"), gain)] if ahead else []),
        (Cell("words (over the references’)", surface), lambda run: _words(compared[run][MEAN].metrics)),
        ("test loss, mean", loss),
        ("best round", lambda run: rounds_cell(results, run, compared[run], common)),
    ]
    return table([head for head, _ in columns], [[cell(run) for _, cell in columns] for run in compared])


def _score(figures: Figures | None, metric: Metric) -> Cell:
    """A score with its interval, or the loss of a run without one."""
    if figures is None:
        return Cell("–")
    score = figures.metrics.get(metric.name)
    if score is None:
        return Cell("–", f"loss {figures.metrics['loss'].value:.3f}")
    return Cell(f"{score.value:.{metric.digits}f}", score.span(metric.digits - 1))


def _words(metrics: Mapping[str, Interval]) -> Cell:
    """The mean length in words, and over that of the references; similarity and repetition."""
    if "length" not in metrics:
        return Cell("–")
    names = ("length", "reference_length", "similarity", "repetition")
    length, reference, similarity, repetition = (metrics[name].value for name in names)
    return Cell(f"{length:.0f} ({length / reference:.2f})", f"{similarity:.2f}, {repetition:.2f}")


def _other_loss(figures: Mapping[str, Figures], common: Sequence[str]) -> str:
    """The test loss of the model that the row is not about, where a method has two."""
    others = {text: mean_loss(name, figures, common) for name, text in (("server", "server’s"), ("local", "clients’"))}
    return next((f"{text} {loss:.3f}" for text, loss in others.items() if loss is not None), "")


def gains_of(runs: Sequence[str], results: Results, metrics: Sequence[Metric], samples: int) -> Gains:
    """The difference of every two runs on each metric that both have, at the seeds and on the meetings of both.

    The mean over the clients that all runs have.

    `samples`: random signs of meetings behind each interval.
    """
    common, _ = common_clients({run: results.metrics[run] for run in runs})
    of_common = {
        seed: {run: [row for row in rows if row.client in common] for run, rows in own.items() if run in runs}
        for seed, own in results.scored_by_seed.items()
    }
    scores = ScoresBySeed(of_common, {metric.name: metric for metric in metrics})
    pairs = [(one.name, run, against) for one in metrics for run, against in combinations(runs, 2)]
    found = {pair: scores.contrast({pair[1]: 1, pair[2]: -1}, pair[0], None) for pair in pairs}
    return {pair: interval_of(clusters, samples) for pair, clusters in found.items() if clusters is not None}


def reference_of(runs: Sequence[str], results: Results) -> str | None:
    """The run with which the page compares a section's others: the first of our method in the order of params.yaml."""
    return next((run for run, rows in results.rows.items() if run in runs and rows[0].part == OURS), None)


def ahead_by(gains: Gains, reference: str | None, metrics: Sequence[Metric]) -> dict[str, dict[str, str]]:
    """Run -> metric -> the text of what the reference gains over it, with its interval."""
    digits, found = {metric.name: gain_digits(metric) for metric in metrics}, dict[str, dict[str, str]]()
    for (metric, run, against), gain in gains.items():
        if reference in (run, against):
            turned = Interval(-gain.value, -gain.high, -gain.low)
            own, other = (gain, against) if run == reference else (turned, run)
            found.setdefault(other, {})[metric] = gain_text(own, digits[metric])
    return found


def settings_table(results: Mapping[str, Result]) -> Markup:
    """A row a setting: the number of examples of each client, and what truncation lost, from one of its results."""
    rows = []
    for name, result in results.items():
        sizes = [f"{client} {'/'.join(str(own[s]) for s in SPLITS)}" for client, own in result["sizes"].items()]
        rows.append([name, Cell(", ".join(sizes), kind="text"), Cell(truncation(result["cut"]), kind="text")])
    left = (Cell("examples a client, train/val/test", kind="left"), Cell("truncation", kind="left"))
    return table(["setting", *left], rows)
