"""Reporting rounds on the terminal and to a logger."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.federated.algorithm import Owner
from pipeline.federated.callbacks import Callback
from pipeline.federated.figures import Figures
from pipeline.federated.history import OnRound, Round
from pipeline.federated.state import Progress
from pipeline.workspace.progress import say


@dataclass(frozen=True)
class Reporting(Callback):
    """Print one line per round, and pass the round's rows on.

    Attributes:
        label: begins each line.
        owner: the model whose validation losses are printed.
        on_round: receives the rows of each round.
    """

    label: str
    owner: Owner
    on_round: OnRound

    def after_round(self, progress: Progress) -> Figures:
        self.on_round(progress.last)
        brief = [f"{row.client} {_trained(row)}, validation {row.loss_of(self.owner):.3f}" for row in progress.last]
        say(f"{self.label}: round {progress.round}: " + "; ".join(brief))
        return {}


def _trained(row: Round) -> str:
    return "was not selected" if row.train_loss is None else f"train {row.train_loss:.3f}"
