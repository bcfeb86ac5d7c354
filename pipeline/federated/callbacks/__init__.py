"""Callbacks of a training: they run before, between and after its rounds, add figures to a round, and end the training.

class Distance(Callback):
    def begin(self, progress: Progress) -> None:
        self.first = progress.server.adapter

    def after_round(self, progress: Progress) -> Figures:
        return {"distance": norm(change(progress.server.adapter, self.first))}
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from pipeline.federated.figures import Figures
from pipeline.federated.state import Progress


class Callback(Protocol):
    """What else happens in a training. The defaults do nothing.

    `saves` says whether `after_round` saves the round. After such a callback, no other one may add figures.
    """

    saves: ClassVar[bool] = False

    def begin(self, progress: Progress) -> None:
        """Called once, before the first round that this process trains; a resumed training has progress by then."""
        del progress

    def is_over(self, progress: Progress) -> bool:
        """Whether the training ends here. Called before every round, including the first."""
        del progress
        return False

    def after_round(self, progress: Progress) -> Figures:
        """Called with the progress after every round, which has the figures of the callbacks before this one.

        Returns:
            Figures to add to the history and to MLflow: `NAME` for one of the round, `CLIENT/NAME` for one of a client.
        """
        del progress
        return {}

    def end(self, progress: Progress) -> None:
        """Called once, after the last round; not if the training fails."""
        del progress
