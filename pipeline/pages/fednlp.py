"""Scores of an experiment on labelled texts -> its tables, figures, metrics, page and gallery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from pipeline.clients.skews import SERVER
from pipeline.evaluation.comparisons import Comparison, Effect, compare, on_known_metrics, read_comparisons
from pipeline.evaluation.intervals import Clusters
from pipeline.evaluation.text_scores import LabelCounts, combined, value_of
from pipeline.plan.orders import read_order
from pipeline.plan.text_orders import TextPageOrder, TextRow
from pipeline.report.text_page import TextPage, gallery_figure
from pipeline.report.text_tables import THEIRS, RunOutcome, data_row
from pipeline.runs.text_encoding import read_index
from pipeline.runs.text_tracking import project
from pipeline.tasks.task import Metric, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json, write_text
from pipeline.workspace.progress import say
from pipeline.workspace.reports import remove_others
from pipeline.workspace.tables import read_table, write_table

GALLERY = layout.REPORTS / "gallery.html"


def run() -> None:
    """Render the page, write tables, figures and metrics, and log the runs in MLflow.

    Raises:
        QuorumError: scores are missing, or comparisons.yaml is wrong.
    """
    order = read_order(layout.order("page"), TextPageOrder)
    metrics = {name: load_task(module).metrics for name, module in order.datasets.items()}
    by_run = {row.name: _results_of(row, metrics[row.dataset][0]) for row in order.runs}
    label_counts = {setting: _label_counts(setting) for setting in order.settings}
    unassigned = {setting: _unassigned(setting, min(seeds)) for setting, seeds in label_counts.items()}
    config = read_comparisons(layout.COMPARISONS)
    skewed = altered(order, config.settings)
    effects = effects_of(
        [one for one in config.comparisons if one.scale in (None, order.scale)],
        {name: one for name, one in by_run.items() if one.row.setting not in skewed},
        metrics,
        order.sign_flips,
    )
    notes = {name: read_json(layout.notes(name)) for name in order.datasets}
    paper = read_table(layout.FEDNLP_RESULTS)
    theirs = {
        name: THEIRS.get(module.rpartition(".")[2], "") if name in order.published else ""
        for name, module in order.datasets.items()
    }
    data = [data_row(name, about, _unlearned(name, order), theirs[name], paper) for name, about in notes.items()]
    page = TextPage(order, by_run, label_counts, metrics, config.question, effects, data, paper, skewed, unassigned)
    tables = page.tables()
    for name, rows in tables.items():
        write_table(layout.TABLES / f"{name}.csv", rows)
    figures = page.draw(layout.FIGURES)
    samples = sorted({name for name, about in notes.items() if about["source"]["source"] == "sample"})
    write_text(layout.REPORT, page.render(figures, tables, samples))
    write_text(GALLERY, page.gallery(layout.FIGURES))
    remove_others(layout.TABLES, {*tables, layout.TUNING_TABLE.stem})
    remove_others(layout.FIGURES, {*figures, *map(gallery_figure, label_counts)})
    scores = {name: _by_seed(one, metrics[one.row.dataset]) for name, one in by_run.items()}
    write_json(layout.METRICS, {name: _means(by_seed) for name, by_seed in scores.items()})
    say(f"page: {layout.REPORT} and {GALLERY} are ready")
    project(order, scores)


def effects_of(
    comparisons: Sequence[Comparison],
    by_run: Mapping[str, RunOutcome],
    metrics: Mapping[str, Sequence[Metric]],
    samples: int,
) -> list[Effect]:
    """Compute the comparisons' effects over the test texts of their runs.

    Raises:
        QuorumError: a run's task has no metric of this name.
    """
    known = {metric.name for own in metrics.values() for metric in own}
    own = {run: {metric.name: metric for metric in metrics[one.row.dataset]} for run, one in by_run.items()}
    comparisons = on_known_metrics(layout.COMPARISONS, comparisons, own)
    comparisons = [one for one in comparisons if set(one.effects) <= known]

    def contrast(terms: Mapping[str, float], name: str, seed: int | None) -> dict[str, Clusters] | None:
        """See `comparisons.Contrast`."""
        if not set(terms) <= set(by_run):
            return None
        shared = set.intersection(*(set(by_run[run].scored) for run in terms))
        seeds = shared if seed is None else shared & {seed}
        if not seeds:
            return None
        metric = own[next(iter(terms))][name]
        runs = {run: {s: by_run[run].scored[s] for s in sorted(seeds)} for run in terms}
        return combined([(metric.sign * weight, runs[run]) for run, weight in terms.items()], metric)

    return compare(comparisons, contrast, sorted({seed for one in by_run.values() for seed in one.scored}), samples)


def altered(order: TextPageOrder, published: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Find the settings whose skew differs from the paper's."""
    return frozenset(
        setting
        for setting, skew in published.items()
        if setting in order.settings
        and any(getattr(order.settings[setting], knob, None) != value for knob, value in skew.items())
    )


def _unlearned(dataset: str, order: TextPageOrder) -> int | None:
    """Count the training texts of a data set's first run whose first windows lack the answer."""
    row = next((one for one in order.runs if one.dataset == dataset), None)
    if row is None:
        return None
    index = read_index(dataset, row.training.view)
    manifest = read_json(layout.partition(row.setting, row.seeds[0]))["manifest"]
    trained = [identity for own in manifest.values() for identity in own["train"]]
    return len(trained) - len(index.learned(trained))


def _results_of(row: TextRow, first: Metric) -> RunOutcome:
    """A run's results, from its scores, its rounds and its last model."""
    scores = read_json(layout.scores(f"{layout.ON_TEXTS}/{row.name}"))
    scored = {int(seed): own["examples"] for seed, own in scores.items()}
    best = {
        int(seed): value_of([one for rows in own["best"].values() for one in rows], first)
        for seed, own in scores.items()
    }
    curves, sent = {}, 0.0
    for seed in scored:
        history = read_table(layout.history(layout.run_on_texts(row.name, seed)))
        by_round: dict[int, list[float]] = {}
        for one in history:
            by_round.setdefault(int(one["round"]), []).append(float(one["validation_loss"]))
            sent += (float(one["bytes_up"]) + float(one["bytes_down"])) / len(scored)
        if by_round:
            curves[seed] = [sum(own) / len(own) for _, own in sorted(by_round.items())]
    return RunOutcome(row, scored, best, curves, sent, _parameters(row, next(iter(scored))))


def _parameters(row: TextRow, seed: int) -> int:
    """The number of trained parameters, counted in a saved model."""
    from pipeline.model.adapter import read_adapter  # imports torch, which takes seconds

    folder = layout.adapters(layout.run_on_texts(row.name, seed))
    return sum(tensor.numel() for tensor in read_adapter(sorted(folder.glob("*.safetensors"))[0]).values())


def _label_counts(setting: str) -> dict[int, LabelCounts]:
    """Seed -> client -> label -> training texts."""
    found: dict[int, LabelCounts] = {}
    for path in sorted((layout.PARTITIONS / setting).glob("[0-9]*.json")):
        federation = read_json(path)
        clients: dict[str, dict[str, int]] = {}
        for client, own in federation["manifest"].items():
            if client != SERVER:
                counts = clients.setdefault(client, {})
                for identity in own["train"]:
                    label = federation["labels"][identity]
                    counts[label] = counts.get(label, 0) + 1
        found[int(path.stem)] = clients
    return found


def _unassigned(setting: str, seed: int) -> int:
    """Count the drawn texts that neither a client nor the server has."""
    federation = read_json(layout.partition(setting, seed))
    return len(federation["labels"]) - sum(len(ids) for own in federation["manifest"].values() for ids in own.values())


def _by_seed(result: RunOutcome, metrics: Sequence[Metric]) -> dict[int, dict[str, float]]:
    """Every metric over all test texts, at each seed."""
    return {seed: {one.name: value_of(rows, one) for one in metrics} for seed, rows in result.scored.items()}


def _means(by_seed: Mapping[int, Mapping[str, float]]) -> dict[str, float]:
    metrics = next(iter(by_seed.values()))
    return {metric: round(fmean(own[metric] for own in by_seed.values()), 4) for metric in metrics}
