"""reports/report.html: the question, the answer, and the numbers behind it, on one self-contained page."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase

from markupsafe import Markup
from matplotlib.figure import Figure

from pipeline.corpora.conversation import Conversation
from pipeline.evaluation.comparisons import Comparisons, Effect
from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import MEAN
from pipeline.federated.methods import OURS
from pipeline.plan.learner import CommonKnobs
from pipeline.plan.orders import ReportOrder
from pipeline.report.effects import Sensitivities, answer_of, effects_table, sensitivities_table
from pipeline.report.figures import bars, curves, intervals
from pipeline.report.figures.style import Look
from pipeline.report.notes import facts_of, limits, looks, rounds_cell, tested, truncation
from pipeline.report.page import Cell, Drawing, page, source_of, table
from pipeline.report.pieces import parts_of_speech, words
from pipeline.runs.result_files import Result
from pipeline.runs.results import Metrics, Results, knob_of
from pipeline.tasks.task import Metric, load_task
from pipeline.workspace.record import Json


@dataclass(frozen=True)
class MainData:
    """Everything the page shows.

    Attributes:
        order: with the runs of one setting, and the precision of their results.
        effects: of the comparisons, on their metrics.
        record: a run's result, for what truncation lost.
        results: of the runs that have results at all seeds.
        metrics: the task's, the main one first, and the loss last.
        missing: planned runs that have no result at some seed.
        deleted: files of results that git has and the workspace lacks.
        pos, shares: rows of pos_kd.csv and word_shares.csv, where the models are at hand.
    """

    order: ReportOrder
    comparisons: Comparisons
    effects: Sequence[Effect]
    record: Result
    results: Results
    metrics: Sequence[Metric]
    sensitivities: Sensitivities = ()
    missing: Sequence[str] = ()
    deleted: Sequence[str] = ()
    pos: Sequence[Json] = ()
    shares: Sequence[Json] = ()

    @property
    def selective(self) -> str | None:
        """The run that distils selectively."""
        return next((name for name, own in self.results.rows.items() if own[0].method == OURS), None)

    @property
    def tau(self) -> float:
        """Its τ in nats; NaN without such a run."""
        return knob_of(self.results, self.selective, "tau") if self.selective else math.nan

    @property
    def summarized(self) -> list[Metric]:
        """The metrics of the small table: the first, those with a ratio to the references, and the loss."""
        return [self.metrics[0], *(one for one in self.metrics if one.over), self.metrics[-1]]

    @property
    def compared(self) -> dict[str, Metric]:
        """Name -> the metrics that runs are compared by."""
        return {one.name: one for one in (self.metrics[0], self.metrics[-1])}

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Run -> its label and colour."""
        return looks(self.order.runs)

    @property
    def groups(self) -> str:
        """What the page calls groups of test examples."""
        meetings = load_task(self.order.data[self.order.runs[0].data[0]]).kind is Conversation
        return "meetings" if meetings else "groups of texts"

    @property
    def seeds(self) -> dict[int, str]:
        """Seed -> its name on the page; empty where there is one."""
        several = len(self.results.by_seed) > 1
        return dict(zip(self.results.by_seed, ascii_uppercase, strict=False)) if several else {}

    @property
    def clients(self) -> list[str]:
        """The clients of the table, without their mean."""
        return [client for client in next(iter(self.results.metrics.values())) if client != MEAN]


def draw(data: MainData) -> list[Drawing]:
    """Every figure."""
    results, found = data.results, list[Drawing]()

    def add(figure: Figure, name: str, **about: object) -> None:
        found.append(Drawing(figure, name, name, about))

    if any(effect.interval for effect in data.effects):
        forest = intervals.draw_forest(data.effects, {one.name: one for one in data.metrics})
        add(forest, "forest", rings="runs", dashed="the paper")
    by_seed = results.by_seed.values()
    scores = intervals.draw_clients(results.metrics, by_seed, data.looks, tuple(data.compared.values()))
    add(scores, "main_scores", runs=list(results.metrics))
    trained = {run: history for run, history in results.histories.items() if history}
    validation = curves.draw_validation(trained, data.clients, data.looks)
    add(validation, "learning_curves", runs=list(trained))
    if sending := [run for run, history in trained.items() if any(one.bytes_moved for one in history)]:
        totals = bars.draw_totals({data.looks[run].label: own for run, own in trained.items()}, len(by_seed))
        add(totals, "traffic", runs=sending)
    if data.selective:
        distilled = curves.draw_distilled(results.histories[data.selective], data.clients, data.tau)
        add(distilled, "share_distilled", runs=[data.selective])
        found += parts_of_speech(data.pos, [data.selective])
    return found


def render(data: MainData, warnings: Markup) -> str:
    """The page as HTML; its figures are saved."""
    order, metrics = data.order, {one.name: one for one in data.metrics}
    tables = {f"Run {letter} alone: seed {seed}": data.results.by_seed[seed] for seed, letter in data.seeds.items()}
    return page(
        "main_page.html.j2",
        draw(data),
        warnings,
        data=data,
        truncation=truncation(data.record["cut"]),
        facts=_facts(data),
        limits=limits(order, data.results),
        answer=answer_of(data.effects, metrics),
        effects=effects_table(data.effects, lambda one: metrics[one.metric], data.seeds),
        sensitivities=sensitivities_table(data.effects, data.sensitivities, metrics),
        summary=summary(data),
        rows_are_of=rows_are_of(data),
        tables={title: main_table(data, own) for title, own in {"": data.results, **tables}.items()},
        words=Markup().join(words(data.shares, data.pos)),
    )


def rows_are_of(data: MainData) -> str:
    """At which seeds a table's rows were trained, and on how many meetings they are tested."""
    seeds = [str(row.seed) for row in next(iter(data.results.rows.values()))]
    named = f"seed {seeds[0]} alone" if len(seeds) == 1 else f"seeds {', '.join(seeds[:-1])} and {seeds[-1]}"
    count = sum(tested(next(iter(data.results.scored.values()))).values())
    return f"These rows are of {named}, tested on {count} {data.groups}."


def summary(data: MainData) -> Markup:
    """The small table: every run's mean over clients."""
    titles = [one.title for one in data.summarized]
    head = ["Method", *titles[:-1], f"{titles[-1]}, {data.summarized[-1].unit}", "best round"]
    return table(head, _rows(data, data.results, MEAN, data.summarized), "summary")


def main_table(data: MainData, results: Results) -> Markup:
    """A group a client and the mean: every run's figures with intervals, ranked within the group."""
    rows: list[str | list[Cell]] = []
    for client in [*data.clients, MEAN]:
        examples = next(iter(results.metrics.values()))[client].examples
        heading = "Mean over clients" if client == MEAN else client
        rows.append(f"{heading} ({examples} test examples)" if examples else heading)
        rows += _rows(data, results, client, data.metrics)
    return table(["Method", *(one.title for one in data.metrics), "best round"], rows)


def _rows(data: MainData, results: Results, client: str, metrics: Sequence[Metric]) -> list[list[Cell]]:
    """A row a run: its figures at a client."""
    rates = _rates(results)
    ranks, rows = {metric.name: _ranks(results.metrics, client, metric) for metric in metrics}, []
    for run, own in results.metrics.items():
        cells = (_cell(own[client].metrics, metric, ranks[metric.name].get(run, "")) for metric in metrics)
        shown = own if client == MEAN else {client: own[client]}
        name = Cell(data.looks[run].label, rates.get(run, ""))
        rows.append([name, *cells, rounds_cell(results, run, shown, data.clients)])
    return rows


def _rates(results: Results) -> dict[str, str]:
    """Run -> its learning rate, where runs of the same part have different rates."""
    rates = {run: rows[0].training.learning_rate for run, rows in results.rows.items() if rows[0].training}
    of_parts = {(results.rows[run][0].part, rate) for run, rate in rates.items()}
    several = Counter(part for part, _ in of_parts)
    return {run: f"learning rate {rate:g}" for run, rate in rates.items() if several[results.rows[run][0].part] > 1}


def _ranks(metrics: Metrics, client: str, metric: Metric) -> dict[str, str]:
    """Run -> its mark, of the best and the second."""
    if metric.better is None or not metric.ranked:
        return {}
    known = {run: own[client].metrics.get(metric.name) for run, own in metrics.items()}
    shown = {run: round(metric.sign * one.value, metric.digits) for run, one in known.items() if one}
    # Equal numbers as shown get equal marks; if all are equal, none is best.
    levels = sorted(set(shown.values()), reverse=True)
    marks = dict(zip(levels, ("best", "second"), strict=False)) if len(levels) > 1 else {}
    return {run: marks[value] for run, value in shown.items() if value in marks}


def _cell(figures: Mapping[str, Interval], metric: Metric, rank: str = "") -> Cell:
    """A figure with its interval, its ratio to the references', and its rank."""
    if metric.name not in figures:
        return Cell("–")
    one, text = figures[metric.name], f"{figures[metric.name].value:.{metric.digits}f}"
    if metric.over is not None and metric.over in figures:
        text += f" ({one.value / figures[metric.over].value:.2f})"
    if rank:
        text = Markup('<span class="{}">{}{}</span>').format(rank, text, {"best": "†", "second": "††"}[rank])
    return Cell(text, one.span(metric.digits))


def _facts(data: MainData) -> list[tuple[str, str]]:
    trained = next((row.training for row in data.order.runs if row.name == data.selective), None)
    shown = {*CommonKnobs.model_fields, "learning_rate"}
    knobs = trained.hyperparameters | trained.model_dump(include=shown) if trained else {}
    return [
        *facts_of(data.order, data.order.runs),
        ("data", "; ".join(source_of(name, source) for name, source in data.record["source"].items())),
        *((f"{data.selective}: {name}", str(value)) for name, value in knobs.items()),
    ]
