"""Every round's models, kept: a checkpoint has but the last and the best, and an audit asks for others."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.federated.callbacks import Callback
from pipeline.federated.state import Private, Progress
from pipeline.model.adapter import write_adapter
from pipeline.workspace import layout


@dataclass(frozen=True)
class KeepingRounds(Callback):
    """Of the training with this key: each client's own adapter after a round, and the server's.

    Before the checkpoint: a round that is on record has its models, whenever the process dies.
    """

    key: str
    private: Private

    def after_round(self, progress: Progress) -> None:
        for name, state in self.private.states.items():
            write_adapter(layout.round_adapter(self.key, progress.round, name), state.adapter)
        write_adapter(layout.round_adapter(self.key, progress.round, "server"), progress.server.adapter)
