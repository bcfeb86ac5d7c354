"""Callbacks of a training: they run after every round, and may end the training.

class Every(Callback):
    def after_round(self, progress: Progress) -> None:
        print(progress.round, progress.last)
"""

from __future__ import annotations

from typing import Protocol

from pipeline.federated.state import Progress


class Callback(Protocol):
    """What else happens between rounds. The defaults do nothing."""

    def is_over(self, progress: Progress) -> bool:
        """Whether the training ends here. Called before every round, including the first."""
        del progress
        return False

    def after_round(self, progress: Progress) -> None:
        """Called with the progress after every round."""
        del progress
