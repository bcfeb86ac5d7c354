"""Saving the models of every round. A checkpoint has only the last and the best, and an audit needs the others."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.federated.callbacks import Callback
from pipeline.federated.figures import Figures
from pipeline.federated.state import Private, Progress
from pipeline.model.adapter import write_adapter
from pipeline.workspace import layout


@dataclass(frozen=True)
class SavingRounds(Callback):
    """Write each client's own adapter after a round, and the server's, to files of the training with this key.

    It must run before `Checkpointing`, so that every round of a checkpoint has its models if the process is killed.
    """

    key: str
    private: Private

    def after_round(self, progress: Progress) -> Figures:
        for name, state in self.private.states.items():
            write_adapter(layout.round_adapter(self.key, progress.round, name), state.adapter)
        write_adapter(layout.round_adapter(self.key, progress.round, "server"), progress.server.adapter)
        return {}
