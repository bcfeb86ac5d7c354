"""A checkpoint after every round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pipeline.federated.callbacks import Callback
from pipeline.federated.checkpoint import save_progress
from pipeline.federated.figures import Figures
from pipeline.federated.state import Private, Progress


@dataclass(frozen=True)
class Checkpointing(Callback):
    """Save what the server and the clients of this process need to resume, under the key of the training."""

    saves: ClassVar[bool] = True
    key: str
    private: Private

    def after_round(self, progress: Progress) -> Figures:
        save_progress(self.key, progress, self.private)
        return {}
