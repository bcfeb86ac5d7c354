"""Callbacks of a training: they run before, between and after its rounds, add figures to a round, and end the training.

class Distance(Callback):
    def begin(self, progress: Progress) -> None:
        self.first = progress.server.adapter

    def figures(self, progress: Progress) -> Figures:
        return {"distance": norm(change(progress.server.adapter, self.first))}
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.federated.algorithm import Owner
from pipeline.federated.checkpoint import save_progress
from pipeline.federated.figures import Figures
from pipeline.federated.history import OnRound, Round
from pipeline.federated.state import Private, Progress
from pipeline.model.adapter import write_adapter
from pipeline.workspace import layout
from pipeline.workspace.progress import say


class Callback:
    """What else happens in a training. The defaults do nothing."""

    def begin(self, progress: Progress) -> None:
        """Called once, before the first round that this process trains; a resumed training has progress by then."""

    def is_over(self, progress: Progress) -> bool:
        """Whether the training ends here. Called before every round, including the first."""
        del progress
        return False

    def figures(self, progress: Progress) -> Figures:
        """Figures to add to a round that has just ended: `NAME` for one of the round, `CLIENT/NAME` for a client's.

        The round has the figures of the callbacks before this one. All are in the history and in MLflow.
        """
        del progress
        return {}

    def after_round(self, progress: Progress) -> None:
        """Called after every round, with the figures of all callbacks."""

    def end(self, progress: Progress) -> None:
        """Called once, after the last round; not if the training fails."""


@dataclass(frozen=True)
class Stopping(Callback):
    """End the training after a number of rounds, or when no model has improved for a while.

    Attributes:
        rounds: the largest number of rounds.
        patience: rounds without an improved model after which the training ends, unless a client has yet to join.
        joins: client -> the round in which it joins.
    """

    rounds: int
    patience: int
    joins: Mapping[str, int] = field(default_factory=dict)

    def is_over(self, progress: Progress) -> bool:
        waiting = any(number > progress.round for number in self.joins.values())
        return progress.round >= self.rounds or (progress.stale >= self.patience and not waiting)


@dataclass(frozen=True)
class SavingRounds(Callback):
    """Write each client's own adapter after a round, and the server's, to files of the training with this key.

    A checkpoint has only the last and the best. It must run before `Checkpointing`, so that every round of a checkpoint
    has its models if the process is killed.
    """

    key: str
    private: Private

    def after_round(self, progress: Progress) -> None:
        for name, state in self.private.states.items():
            write_adapter(layout.round_adapter(self.key, progress.round, name), state.adapter)
        write_adapter(layout.round_adapter(self.key, progress.round, "server"), progress.server.adapter)


@dataclass(frozen=True)
class Checkpointing(Callback):
    """Save what the server and the clients of this process need to resume, under the key of the training."""

    key: str
    private: Private

    def after_round(self, progress: Progress) -> None:
        save_progress(self.key, progress, self.private)


@dataclass(frozen=True)
class Reporting(Callback):
    """Print one line per round, with the validation losses of the `owner`'s model, and pass the round's rows on."""

    label: str
    owner: Owner
    on_round: OnRound

    def after_round(self, progress: Progress) -> None:
        self.on_round(progress.last)
        brief = [f"{row.client} {_trained(row)}, validation {row.loss_of(self.owner):.3f}" for row in progress.last]
        say(f"{self.label}: round {progress.round}: " + "; ".join(brief))


def _trained(row: Round) -> str:
    return "was not selected" if row.train_loss is None else f"train {row.train_loss:.3f}"
