"""reports/analysis/clients -> reports/gallery.html: who has what, in every setting, as pictures."""

from __future__ import annotations

from pipeline.evaluation.pooled import LabelCounts, divergences
from pipeline.plan.orders import ReportOrder
from pipeline.report.figures.matrices import draw_gallery
from pipeline.report.figures.style import save
from pipeline.report.page import embedded, page
from pipeline.report.task_tables import federation_row
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_text


def label_counts_of(setting: str) -> dict[int, LabelCounts]:
    """Seed -> client -> label -> how many training examples of the client have it; empty where none are drawn."""
    path = layout.clients_of(setting)
    content = read_json(path)["seeds"] if path.is_file() else {}
    return {int(seed): own["clients"] for seed, own in content.items()}


def write_gallery(order: ReportOrder) -> None:
    """Draw every setting at its first seed, and write the page."""
    shown = []
    for name, setting in order.settings.items():
        counts = next(iter(label_counts_of(name).values()), {})
        if not any(counts.values()):
            continue
        figure = f"federation-{name}"
        save(draw_gallery(counts, divergences(counts)), layout.FIGURES, figure)
        row = federation_row(name, counts)
        about = (
            f"{row['clients']} clients, {row['least']} to {row['most']} examples each (coefficient of variation "
            f"{row['cv']}); {row['divergence_bits']} bits apart on average."
        )
        drawn = [(letter, getattr(setting, knob, None)) for letter, knob in (("α", "alpha"), ("β", "beta"))]
        caption = ", ".join([name, *(f"{letter} = {value:g}" for letter, value in drawn if value)])
        shown.append((name, about, embedded(layout.FIGURES / f"{figure}.svg", f"{caption}.")))
    write_text(layout.GALLERY, page("gallery.html.j2", federations=shown))
