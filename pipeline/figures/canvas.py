"""Where figures of the page on the paper go, and how they come back as part of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipeline.figures.page import REPORT_COMMAND, embedded
from pipeline.figures.style import save


@dataclass(frozen=True)
class Canvas:
    """Where a piece's figures go, and how they come back as part of the page."""

    folder: Path

    def place(self, figure: Any, name: str, caption: str) -> Markup:
        save(figure, self.folder, name)
        return embedded(self.folder / f"{name}.svg", f"{caption} To make it again: {REPORT_COMMAND}.")
