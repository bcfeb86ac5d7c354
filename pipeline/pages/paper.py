"""Results -> a page with a section for each table or figure of the paper, or for each of params.yaml."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pipeline.evaluation.comparisons import compare
from pipeline.evaluation.intervals import columns
from pipeline.evaluation.scores import ScoresBySeed
from pipeline.federated.methods import OURS
from pipeline.pages.files import empty_outputs, papers_numbers, table_if_any, warnings_of, write_page
from pipeline.pages.main import known_comparisons
from pipeline.plan.orders import ReportOrder
from pipeline.report import pieces
from pipeline.report.effects import effect_records
from pipeline.report.notes import history_rows, looks, main_rows
from pipeline.report.page import piece
from pipeline.report.paper import sections_of
from pipeline.report.paper_page import PaperPage
from pipeline.report.pieces import Piece
from pipeline.report.ratings import current_ratings
from pipeline.runs.result_files import Result, read_results_of
from pipeline.runs.results import Results, results_of, scores_of, write_metrics
from pipeline.tasks.task import LOSS, Metric, load_task
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.progress import say
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table, write_table

SELECTIVE, AVERAGING, DISTILLING = "fedselectkd", "fedavg", "fedkd"
"""The main table's runs with which others are compared."""


def run(order: ReportOrder) -> None:
    """Render the page, and write tables, figures and metrics.

    Raises QuorumError if no run has a result, or what `analyze` found is missing.
    """
    order = _of_first_task(order)
    rows = [row for row in order.runs if not row.left_out]
    files = read_results_of(rows)
    results = results_of(rows, files, order.sign_flips, "report")
    metrics = (*load_task(next(iter(order.data.values()))).metrics, LOSS)
    config, comparisons = known_comparisons(order, metrics)
    scores = ScoresBySeed(scores_of(rows, files).scored_by_seed, {one.name: one for one in metrics})
    effects = compare(comparisons, scores.contrast, list(scores.runs), order.sign_flips, scores.at_length)
    page = PaperPage(
        order,
        "The paper’s tables and figures, rebuilt" if order.paper else layout.workspace().name or "sections",
        metrics[0],
        results,
        files,
        sections=sections_of(order.sections, paper=bool(order.paper)),
        paper=papers_numbers(order),
        notes={name: read_json(layout.notes(name)) for name in order.data},
        statistics={name: read_table(layout.data_statistics(name)) for name in order.data},
        question=config.question,
        effects=effects,
    )
    empty_outputs()
    write_table(layout.COMPARISONS_TABLE, effect_records(effects))
    write_metrics(results, [metrics[0].name, LOSS.name])
    write_table(layout.MAIN_TABLE, main_rows(results, metrics, looks(rows)))
    write_table(layout.HISTORY, *history_rows(results.histories))
    gains = [(section, *pair, gain) for section, own in page.gains.items() for pair, gain in own.items()]
    pairs = [
        {"study": section, "metric": metric, "run": run, "against": against, **columns(gain, "gain", "low", "high")}
        for section, metric, run, against, gain in gains
    ]
    write_table(layout.TABLES / "pairs.csv", pairs)
    extra = extra_pieces(order, results, files, metrics[0])
    write_page(order, files, page.render(extra, warnings_of(order, files)))


def _of_first_task(order: ReportOrder) -> ReportOrder:
    """The order without the data sets and runs of other tasks than the first data set's, which share no scores."""
    task = next(iter(order.data.values()))
    rows = [row for row in order.runs if order.data[row.data[0]] == task]
    others = sorted({row.name for row in order.runs} - {row.name for row in rows})
    if others:
        say(f"report: {', '.join(others)} are of other tasks, and are not shown; set page: tasks")
    data = {name: module for name, module in order.data.items() if module == task}
    sections = {name: own for name, own in order.sections.items() if not set(own) & set(others)}
    return order.model_copy(update={"runs": rows, "data": data, "sections": sections})


def extra_pieces(
    order: ReportOrder, results: Results, files: Mapping[str, Result], metric: Metric
) -> dict[str, Sequence[Piece]]:
    """Section -> its pieces that are no comparison of runs; `metric`: the score by which runs are compared."""
    shares, pos = read_table(layout.WORD_SHARES), read_table(layout.POS_SHARES)
    trials = [row for row in table_if_any(layout.TUNING_TABLE) if row["scale"] == order.scale]
    model_bytes = next(own["backbone_bytes"] for own in files.values() if own["backbone_bytes"])
    analysis: dict[str, dict[str, Json]] = {}
    for path in sorted(layout.ANALYSIS.glob("*/*.json")):
        analysis.setdefault(path.parent.name, {})[path.stem] = read_json(path)
    runs = defaultdict[str, Sequence[str]](tuple, order.sections)  # section -> its runs
    # The runs of these have the same clients and rounds, so that their bytes can be compared.
    sent = list(dict.fromkeys([AVERAGING, DISTILLING, *runs["algorithms"], *runs["hard"]]))
    distilled = [row["run"] for row in shares][:1]
    return {
        "tau": pieces.knob_sweep(results, runs["tau"], "tau", "τ", SELECTIVE, metric),
        "lambda": pieces.knob_sweep(results, runs["lambda"], "lambda", "λ", SELECTIVE, metric),
        "algorithms": pieces.tuned(results, trials, runs["algorithms"]),
        "hard": pieces.tuned(results, trials, runs["hard"]),
        "noniid": pieces.untrained(results.metrics, "zeroshot", metric),
        "case": [piece("examples_link")],
        "human": pieces.ratings(current_ratings(order.runs, files), OURS, order.sign_flips),
        "sampling": pieces.rounds_of_clients(results, runs["sampling"]),
        "words": [*pieces.words(shares, pos), *pieces.parts_of_speech(pos, distilled)],
        "mechanism": [
            *pieces.teacher_and_student(results, SELECTIVE),
            *pieces.teacher_deciles(results, analysis.get("deciles", {})),
        ],
        "matrix": pieces.crossed_losses(analysis.get("crossed", {})),
        "divergence": pieces.divergences(analysis.get("divergence", {})),
        "communication": pieces.bytes_sent(results, sent, looks(order.runs), model_bytes),
    }
