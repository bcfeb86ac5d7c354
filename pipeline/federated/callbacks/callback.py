"""The interface of a callback, which does nothing by itself."""

from __future__ import annotations

from typing import Protocol

from pipeline.federated.progress import Progress


class Callback(Protocol):
    """Something beside the loop."""

    def is_over(self, progress: Progress) -> bool:
        """Whether the training should end here; asked before every round, the first one too."""
        del progress
        return False

    def after_round(self, progress: Progress) -> None:
        """A round is finished."""
        del progress
