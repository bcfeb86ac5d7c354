"""A checkpoint after every round."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.federated.callbacks import Callback
from pipeline.federated.checkpoint import save_progress
from pipeline.federated.state import Private, Progress


@dataclass(frozen=True)
class Checkpointing(Callback):
    """What the server and the clients of this process need to go on, beside the clients' blobs, under a key."""

    key: str
    private: Private

    def after_round(self, progress: Progress) -> None:
        save_progress(self.key, progress, self.private)
