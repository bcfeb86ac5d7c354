"""Faults of a simulation, under `faults` in params.yaml. No import of torch: the plan reads it."""

from typing import Any, Literal

from pydantic import Field

from pipeline.workspace.record import Record

Poison = Literal["nan", "inf", "huge", "shape", "names", "foreign", "reversed"]
"""How a client's update is corrupted.

The server can recognize the first six from the update alone: one number is NaN, infinite or 1e30; a tensor has another
shape or name; the update is of another training. `reversed` points the other way, `strength` times as far, and cannot
be recognized.
"""


def _chance(description: str) -> Any:
    return Field(default=0.0, ge=0, lt=1, description=f"The probability that {description}.")


class Faults(Record):
    """Faults of a simulation. Each is drawn per assignment from (seed, client, round, time), independently."""

    dropout: float = _chance("a client never begins")
    dropout_during: float = _chance("a client stops before its training ends; the training is lost")
    lost: float = _chance("an update does not arrive")
    truncated: float = _chance("an update arrives truncated")
    duplicated: float = _chance("an update arrives twice")
    poisoned: dict[str, Poison] = Field(
        default_factory=dict, description="Client -> how each of its updates is corrupted."
    )
    strength: float = Field(
        default=10.0, gt=0, description="The length of a `reversed` change, in lengths of the client's own change."
    )
    seconds: float = Field(default=60.0, gt=0, description="The median duration of a client's round, in seconds.")
    spread: float = Field(
        default=0.5,
        ge=0,
        description="The σ of two log-normal factors of a duration: one of the client, one of the assignment.",
    )
    stragglers: float = _chance("a client is slow in a round")
    slowdown: float = Field(default=10.0, ge=1, description="The factor by which a straggler's round takes longer.")

    @property
    def silent(self) -> bool:
        """Whether some answers never arrive, so that the server needs a deadline."""
        return bool(self.dropout or self.dropout_during or self.lost)
