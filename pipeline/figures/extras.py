"""Pieces of the page on the paper that are no comparison of runs: sweeps, heatmaps, the case study, ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from markupsafe import Markup

from pipeline.evaluation.agreement import outcomes_of
from pipeline.evaluation.scores import MEAN, Scored
from pipeline.figures import communication, heatmap, human, learning_curves, surety, sweep
from pipeline.figures.page import REPORT_COMMAND, embedded
from pipeline.figures.report import share_text
from pipeline.figures.style import save
from pipeline.figures.verdicts import weight_of_all
from pipeline.results import History, Results, best_validation_loss, knob_of

Analysis = Mapping[str, Mapping[str, Any]]
"""What the stage `analyze` wrote: kind -> name of a run or manifest -> its table."""


@dataclass(frozen=True)
class Canvas:
    """Where a piece's figures go, and how they come back as part of the page."""

    folder: Path

    def place(self, figure: Any, name: str, caption: str) -> Markup:
        save(figure, self.folder, name)
        return embedded(self.folder / f"{name}.svg", f"{caption} To make it again: {REPORT_COMMAND}.")


def knob_sweep(
    canvas: Canvas, results: Results, runs: Sequence[str], knob: str, name: str, chosen: float
) -> list[Markup]:
    """A knob of AdaFedSelectKD over the runs that set it."""
    known = [run for run in runs if run in results.metrics and not math.isnan(knob_of(results, run, knob))]
    points = sorted((_point(results, run, knob) for run in known), key=lambda point: point.value)
    if len(points) < 2:
        return []
    best = min(points, key=lambda point: point.validation)
    caption = (
        f"{name} against validation loss (which would choose {best.label}) and test scores, mean over clients "
        f"with 95% intervals; the dashed line is the value used elsewhere. Runs: {', '.join(known)}."
    )
    return [canvas.place(sweep.draw(points, name, chosen), f"sweep_{knob}", caption)]


def _point(results: Results, run: str, knob: str) -> sweep.Point:
    value = knob_of(results, run, knob)
    own = results.metrics[run][MEAN]

    def triple(metric: str) -> tuple[float, float, float]:
        return own[metric], own[f"{metric}_low"], own[f"{metric}_high"]

    average = triple("average") if "average" in own else None
    return sweep.Point(value, f"{value:.3g}", best_validation_loss(results.histories[run]), triple("loss"), average)


def scaled_weight(results: Results, selective: str, scaled: str) -> list[Markup]:
    """Whether the control's λ is what it should be: λ times the share of tokens that the selective run distilled."""
    if selective not in results.histories or scaled not in results.rows:
        return []
    wanted, weight = weight_of_all(results, selective), knob_of(results, selective, "lambda")
    share, own = wanted / weight, knob_of(results, scaled, "lambda")
    text = '<p class="note">{} distilled {:.1f}% of all target tokens: {:g} × {:.3f} = {:.3f}; {} has λ = {:g}.</p>'
    return [Markup(text).format(selective, 100 * share, weight, share, wanted, scaled, own)]


def client_rounds(results: Results, runs: Sequence[str]) -> list[Markup]:
    """How many times a client trained in each run: what "equal client-rounds" are equal in."""
    counts = {
        run: sum(int(row["steps"]) > 0 for row in results.histories[run]) // len(results.rows[run])
        for run in runs
        if run in results.histories
    }
    told = ", ".join(f"{run} {count}" for run, count in counts.items())
    return [Markup('<p class="note">Client-rounds: {}.</p>').format(told)] if counts else []


def words_distilled(shares: Sequence[Mapping[str, str]]) -> list[Markup]:
    """Our counterpart of the paper's 86, 88 and 89%."""
    found = [f"{row['client']} {share_text(row)}" for row in shares if row["share"] == "distilled"]
    return (
        [Markup('<p class="note">Words learned with distillation: {}.</p>').format("; ".join(found))] if found else []
    )


def teacher_deciles(canvas: Canvas, analysis: Analysis, tau: float) -> list[Markup]:
    pieces = []
    for run, found in analysis.get("deciles", {}).items():
        caption = (
            "Is the teacher better where it is surer? Tokens of the test references by decile of the teacher's "
            f"entropy; the dashed line is τ. Run: {run}."
        )
        pieces.append(canvas.place(surety.draw(found, tau), f"deciles_{run}", caption))
    return pieces


def teacher_and_student(canvas: Canvas, results: Results, run: str) -> list[Markup]:
    rows = [row for row in results.histories.get(run, ()) if row["teacher_validation_loss"]]
    if not rows:
        return []
    lines = {"student": rows, "teacher": [row | {"validation_loss": row["teacher_validation_loss"]} for row in rows]}
    clients = list(dict.fromkeys(row["client"] for row in rows))
    caption = f"Validation loss of the student, and of the teacher that it was sent, by round. Run: {run}."
    return [canvas.place(learning_curves.draw(lines, clients), f"teacher_{run}", caption)]


def orientation(analysis: Analysis) -> list[Markup]:
    """Rows of the main table that cost nothing."""
    rows = analysis.get("orientation", {}).get("turns", {})
    if not rows:
        return []
    clients = list(next(iter(rows.values())))
    head = Markup("").join(Markup("<th>{}</th>").format(client) for client in [*clients, "mean"])
    body = Markup("").join(
        Markup("<tr><td>{}</td>{}</tr>").format(
            name,
            Markup("").join(
                Markup("<td>{:.2f}</td>").format(value)
                for value in [*(own[c]["average"] for c in clients), fmean(own[c]["average"] for c in clients)]
            ),
        )
        for name, own in rows.items()
    )
    return [
        Markup(
            '<div class="scroll"><table><thead><tr><th>for orientation, average ROUGE</th>{}</tr></thead>'
            "<tbody>{}</tbody></table></div>"
        ).format(head, body)
    ]


def crossed_losses(canvas: Canvas, analysis: Analysis) -> list[Markup]:
    tables = analysis.get("crossed", {})
    if not tables:
        return []
    caption = (
        "Every client's adapter on every client's test set: loss of the reference, nats a token, less is better; the "
        f"darker, the better within a column. Runs: {', '.join(tables)}."
    )
    return [canvas.place(heatmap.draw(tables, "trained by", "tested on", "Blues_r"), "crossed", caption)]


def divergences(canvas: Canvas, analysis: Analysis) -> list[Markup]:
    pieces = []
    for name, found in analysis.get("divergence", {}).items():
        sizes = ", ".join(f"{client} {count}" for client, count in found["examples"].items())
        caption = (
            f"Jensen-Shannon divergence in bits between the training data of the clients of {name}: over topics "
            "(clusters of sentence embeddings of the sources, of which the model reads the first 256 word pieces) and "
            f"over the words of the references. Training examples: {sizes}. Random groups of these sizes would be "
            f"{found['by_chance']['topics']:.2f} and {found['by_chance']['words']:.2f} apart on average."
        )
        figure = heatmap.draw({"topics": found["topics"], "words": found["words"]}, "", "", limits=(0.0, 1.0))
        pieces.append(canvas.place(figure, f"divergence_{name}", caption))
    return pieces


def bytes_sent(
    canvas: Canvas,
    results: Results,
    runs: Sequence[str],
    named: Mapping[str, str],
    colours: Mapping[str, str],
    full_model: int,
) -> list[Markup]:
    """Validation loss against bytes, and the bytes that reach the best loss of the first run, AdaFedAvg."""
    shown = {run: results.histories[run] for run in runs if run in results.histories and run in results.metrics}
    if runs[0] not in shown:
        return []
    factor = full_model / max(int(row["bytes_up"]) for row in shown[runs[0]])
    caption = f"Validation loss against bytes sent, by round, and ROUGE of the best rounds. Runs: {', '.join(shown)}."
    figures = {run: results.metrics[run][MEAN] for run in shown}
    rouge = {run: (_sent_until_best(shown[run]), own["average"]) for run, own in figures.items() if "average" in own}
    pieces = [canvas.place(communication.draw(shown, named, colours, rouge, factor), "communication", caption)]
    goal = min(loss for _, loss in communication.path_of(shown[runs[0]]))
    rows = [
        Markup("<tr><td>{}</td><td>{}</td><td>{}</td><td>{:,.0f}</td><td>{:.3f}</td><td>{}</td></tr>").format(
            named[run],
            _reached(communication.path_of(rows), goal),
            _reached(communication.path_of(rows, factor), goal),
            _sent_until_best(rows),
            figures[run]["loss"],
            f"{rouge[run][1]:.2f}" if run in rouge else "–",
        )
        for run, rows in shown.items()
        if any(int(row["bytes_up"]) for row in rows)
    ]
    table = Markup(
        '<div class="scroll"><table><thead><tr><th>to AdaFedAvg’s best loss, {:.3f}</th><th>MB, adapters</th>'
        "<th>MB, full model</th><th>MB to its own best rounds</th><th>test loss then</th>"
        "<th>average ROUGE then</th></tr></thead>"
        "<tbody>{}</tbody></table></div>"
    ).format(goal, Markup("").join(rows))
    return [*pieces, table]


def _reached(path: Sequence[tuple[float, float]], goal: float) -> str:
    return next((f"{sent:,.0f}" for sent, loss in path if loss <= goal), "not reached")


def _sent_until_best(history: History) -> float:
    """MB of adapters until the last of the clients' best rounds, the mean over seeds."""
    sent = []
    for seed in dict.fromkeys(row["seed"] for row in history):
        own = [row for row in history if row["seed"] == seed]
        until = max(int(row["round"]) for row in own if row["best"] == "1")
        sent.append(sum(int(row["bytes_up"]) + int(row["bytes_down"]) for row in own if int(row["round"]) <= until))
    return fmean(sent) / communication.MEGABYTE


def median_cases(
    results: Results, texts: Mapping[str, Mapping[str, Mapping[str, str]]], ours: str, theirs: str
) -> list[Markup]:
    """Table VIII by rule: a client's test example at which ours − theirs, in average ROUGE, is the median.

    Args:
        texts: run -> example -> its row of predictions.
    """
    if ours not in results.scored or theirs not in results.scored:
        return []
    other = {row.id: row for row in results.scored[theirs]}
    pieces = []
    for client in dict.fromkeys(row.client for row in results.scored[ours]):
        own = [row for row in results.scored[ours] if row.client == client]
        chosen = sorted(own, key=lambda row: (_gain(row, other), row.id))[len(own) // 2]
        rows = texts[ours][chosen.id], texts[theirs][chosen.id]
        pieces.append(
            Markup(
                '<div class="case"><strong>{}: {}</strong><dl><dt>Gold standard</dt><dd>{}</dd><dt>AdaFedSelectKD</dt>'
                "<dd>{}</dd><dt>AdaFedAvg</dt><dd>{}</dd></dl><small>difference {:+.2f}</small></div>"
            ).format(
                client,
                rows[0]["query"],
                rows[0]["reference"],
                rows[0]["prediction"] or "(empty)",
                rows[1]["prediction"] or "(empty)",
                _gain(chosen, other),
            )
        )
    return pieces


def _gain(row: Scored, other: Mapping[str, Scored]) -> float:
    return row.values["average"] - other[row.id].values["average"]


def ratings(canvas: Canvas, rows: Sequence[Mapping[str, str]], ours: str, samples: int) -> list[Markup]:
    if not rows:
        return [
            Markup(
                '<p class="note">Nobody has rated summaries yet, so there is nothing to draw. '
                "<code>python -m pipeline ratings export</code> writes blind rating sheets, "
                "<code>python -m pipeline ratings import FILE…</code> joins what raters send back.</p>"
            )
        ]
    found = [outcomes_of(rows, against, samples) for against in dict.fromkeys(row["against"] for row in rows)]
    agreement = "; ".join(
        f"against {one.against} {one.ratings} ratings, κ {'–' if one.kappa is None else f'{one.kappa:.2f}'}"
        for one in found
    )
    raters = len({row["rater"] for row in rows})
    caption = f"Wins, ties and losses in the eyes of {raters} raters; Fleiss' κ: {agreement}."
    return [canvas.place(human.draw(found, ours), "human", caption)]
