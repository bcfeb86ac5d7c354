"""The figures of the page on a main table."""

from __future__ import annotations

from pathlib import Path

from pipeline.report.figures import communication, comparison, forest, learning_curves, parts_of_speech, teacher
from pipeline.report.figures.style import save
from pipeline.report.main_data import MainData
from pipeline.report.naming import colours, labels


def draw(data: MainData, folder: Path) -> None:
    """Save all of them, as PNG and SVG."""
    named, coloured, results = labels(data.order.runs), colours(data.order.runs), data.results
    by_seed, endpoints = list(results.by_seed.values()), tuple(data.compared.values())
    if any(effect.interval for effect in data.effects):
        save(forest.draw(data.effects, {one.name: one for one in data.metrics}), folder, "forest")
    save(comparison.draw_means(results.metrics, by_seed, named, coloured, endpoints), folder, "main_scores")
    trained = {run: history for run, history in results.histories.items() if history}
    curves = {named[run]: history for run, history in trained.items()}
    of_curves = {named[run]: coloured[run] for run in trained}
    save(learning_curves.draw(curves, data.clients, of_curves), folder, "learning_curves")
    save(communication.draw_totals(curves, len(results.by_seed)), folder, "traffic")
    if data.selective:
        selective = results.histories[data.selective]
        save(teacher.draw_rounds(selective, data.clients, data.tau), folder, "share_distilled")
        for client in dict.fromkeys(row["client"] for row in data.pos):
            save(parts_of_speech.draw(data.pos, client), folder, f"pos_{client}")
