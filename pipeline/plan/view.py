"""How a model reads a data set of labelled texts."""

from __future__ import annotations

from pipeline.workspace.record import Record


class View(Record):
    """A data set as one model reads it: the backbone's name, its layers (None: all), and where it is cut.

    `backbone` is the name of a preset, `tokens` what is read of a text, `target_tokens` of a title.
    """

    backbone: str
    frozen: str
    layers: list[int] | None
    tokens: int
    target_tokens: int | None


def name_of(view: View) -> str:
    """What files call a view: `minilm-l6 e,0-4`."""
    layers = "" if view.layers is None else f" of {'-'.join(map(str, view.layers))}"
    return f"{view.backbone}{layers} {view.frozen}"
