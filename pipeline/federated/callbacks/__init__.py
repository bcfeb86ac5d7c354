"""What goes along with a training: each is told of every finished round, and may say that it is over."""

from __future__ import annotations

from typing import Protocol

from pipeline.federated.state import Progress


class Callback(Protocol):
    """Something beside the loop; it does nothing by itself."""

    def is_over(self, progress: Progress) -> bool:
        """Whether the training should end here; asked before every round, the first one too."""
        del progress
        return False

    def after_round(self, progress: Progress) -> None:
        """A round is finished."""
        del progress
