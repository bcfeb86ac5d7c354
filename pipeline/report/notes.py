"""What pages say of runs: their looks, knobs, best rounds, truncation and limits; and rows of their CSV files."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import fmean

from markupsafe import Markup

from pipeline.evaluation.intervals import columns
from pipeline.evaluation.scores import MEETINGS, Figures, Scored, by_client
from pipeline.federated.history import History, best_rounds, columns_of
from pipeline.model.presets import ENCODERS, OFFLINE, PRESETS
from pipeline.plan.orders import ReportOrder, RunRow
from pipeline.report.figures.style import Look, colour
from pipeline.report.page import Cell, piece
from pipeline.runs.results import Results
from pipeline.tasks.task import Metric
from pipeline.workspace.record import Json

PAPERS_RATE = 0.0002  # AdamW's learning rate in the paper


def looks(runs: Sequence[RunRow]) -> dict[str, Look]:
    """Run -> its look: a colour a method or part; a second run of the same adds its own name to the label."""
    found: dict[str, Look] = {}
    kinds = list(dict.fromkeys(row.part for row in runs))
    for row in runs:
        taken = any(one.label == row.part for name, one in found.items() if name != row.name)
        label = f"{row.part} ({row.name})" if taken else row.part
        found.setdefault(row.name, Look(label, colour(kinds.index(row.part))))
    return found


def facts_of(order: ReportOrder, runs: Sequence[RunRow]) -> list[tuple[str, str]]:
    """The knobs that all pages on summaries name: (a name, its text)."""
    views = [row.learner.view for row in runs if row.learner is not None]
    trained, most = [row.training for row in runs if row.training is not None], order.knobs["validation_examples"]

    def values(found: Iterable[float | str]) -> str:
        return ", ".join(f"{one:g}" if isinstance(one, float) else str(one) for one in sorted(set(found)))

    return [
        ("scale", order.scale),
        ("backbone", order.backbone),
        ("products with its weights", order.precision),
        ("seeds", values(row.seed for row in order.runs)),
        ("source / target tokens", values(f"{view.source_tokens} / {view.target_tokens}" for view in views)),
        ("span_end", order.knobs.get("span_end", "")),
        ("rounds", values(one.rounds for one in trained)),
        ("learning rate", values(one.learning_rate for one in trained)),
        ("training examples", f"{100 * order.knobs['train_fraction']:g}% of a client's, or as a section says"),
        ("validation examples", "all" if most is None else f"at most {most} a client"),
    ]


def rounds_cell(results: Results, run: str, figures: Mapping[str, Figures], clients: Sequence[str]) -> Cell:
    """The best rounds of a run's clients, and how it ended: by the cap, or with this test loss after its last round.

    `clients`: the loss is a mean over those of them that have figures.
    """
    rounds = sorted(n for client in figures for n in best_rounds(results.histories[run], client))
    if not rounds:
        return Cell("")
    span = str(rounds[0]) if rounds[0] == rounds[-1] else f"{rounds[0]}–{rounds[-1]}"
    last = mean_loss("last", figures, clients)
    ending = "ended by the cap on rounds" if results.capped(run) else "" if last is None else f"last round: {last:.3f}"
    return Cell(span, ending)


def mean_loss(name: str, figures: Mapping[str, Figures], clients: Sequence[str]) -> float | None:
    """The test loss of another model of a run, mean over clients; None where one of them lacks it."""
    own = [figures[client].other_losses for client in clients if client in figures]
    known = [losses[name] for losses in own if name in losses]
    return fmean(known) if len(known) == len(own) > 0 else None


def main_rows(results: Results, metrics: Sequence[Metric], looks: Mapping[str, Look]) -> list[Json]:
    """Rows of main.csv: one a client and run; each figure with its interval."""
    rows = []
    for client in dict.fromkeys(client for own in results.metrics.values() for client in own):
        for run, figures in ((run, own) for run, own in results.metrics.items() if client in own):
            row: Json = {"client": client, "run": run, "method": looks[run].label}
            for metric in metrics:
                one = figures[client].metrics.get(metric.name)
                if metric.over is not None and metric.over in figures[client].metrics:
                    row[metric.over] = round(figures[client].metrics[metric.over].value, 6)
                row |= columns(one, metric.name, f"{metric.name}_low", f"{metric.name}_high")
            best = best_rounds(results.histories[run], client)
            rows.append(row | {"best_round": "/".join(map(str, best))})
    return rows


def history_rows(histories: Mapping[str, History]) -> tuple[list[Json], list[str]]:
    """(Every round of every run, for what is read where models/ is not; the columns)."""
    rows = [{"run": name, "seed": one.seed} | one.to_row() for name, history in histories.items() for one in history]
    return rows, ["run", "seed", *columns_of(one for history in histories.values() for one in history)]


def tested(rows: Sequence[Scored]) -> dict[str, int]:
    """Client -> on how many meetings it is tested."""
    return {client: len({row.meeting for row in own}) for client, own in by_client(rows).items()}


def limits(order: ReportOrder, results: Results) -> Markup:
    """The list of limits."""
    trained = [row.training for row in order.runs if row.training is not None]
    rates = sorted({one.learning_rate for one in trained})
    layers = sorted({one.learner.view.adapted_layers or 0 for one in trained})
    first, distilling = first_rounds(results)
    facts = {
        "few_meetings": _few_meetings(results),
        "seeds": len({row.seed for row in order.runs}),
        "rates": ", ".join(f"{rate:g}" for rate in rates) if rates not in ([], [PAPERS_RATE]) else "",
        "embedded_layers": " or ".join(map(str, layers)) if order.backbone == OFFLINE else "",
        "depth": PRESETS[order.backbone].decoder_layers if order.backbone in PRESETS else 0,
        "first_rounds": first,
        "distilling": distilling,
        "scaffold": any(row.method == "SCAFFOLD" for row in order.runs),
    }
    return piece("limits", facts=facts)


def warnings(backbone: str, samples: Collection[str]) -> Markup:
    """The warnings at the top of a page: of data sets of which only the sample was there, and of random weights."""
    preset = PRESETS.get(backbone) or ENCODERS[backbone]
    return piece("warnings", samples=sorted(samples), random=preset.origin == "tiny")


def _few_meetings(results: Results) -> str:
    """The clients whose intervals are left out, with the number of their test meetings and their settings."""
    of_settings = {rows[0].setting: tested(results.scored[name]) for name, rows in results.rows.items()}
    few: dict[tuple[str, int], list[str]] = {}
    for setting, own in of_settings.items():
        for client, count in own.items():
            if count < MEETINGS:
                few.setdefault((client, count), []).append(setting)
    return "; ".join(f"{client} {count} ({', '.join(settings)})" for (client, count), settings in sorted(few.items()))


def first_rounds(results: Results) -> tuple[int, int]:
    """(Adapters of the first round, all adapters) by which runs with distillation are scored."""
    local = [(rows[0], results.histories[name]) for name, rows in results.rows.items() if rows[0].evaluate == "local"]
    distilling = [(row, own) for row, own in local if any("share_distilled" in one.figures for one in own)]
    trainings = {(str(row.training), row.setting): own for row, own in distilling}  # one under two names counts once
    best = [one for history in trainings.values() for one in history if one.best]
    return sum(one.round == 1 for one in best), len(best)


def truncation(cut: Json | None) -> Markup:
    """The sentence on what truncation lost of sources and references (see `Cut`), where that is known."""
    return piece("truncation", cut=cut) if cut else Markup("")
