"""Where figures of the page on the paper go, and how they come back as part of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipeline.errors import QuorumError
from pipeline.report.figures.style import save
from pipeline.report.page import embedded, piece
from pipeline.workspace import layout


@dataclass(frozen=True)
class Canvas:
    """A folder of figures, and the command that makes them again."""

    folder: Path
    command: str

    def place(self, figure: Any, name: str, caption: str, **about: Any) -> Markup:
        """Save a figure; what embeds it, with its caption.

        Args:
            caption: a macro of `pieces.html.j2`, which is told `about`.

        Raises:
            QuorumError: a study has taken its name.
        """
        if (self.folder / f"{name}.svg").exists():
            raise QuorumError(f"{layout.PARAMS}: studies.{name}: is the name of a figure; give the study another")
        save(figure, self.folder, name)
        return embedded(self.folder / f"{name}.svg", piece(caption, command=self.command, **about).striptags())
