"""What a server does if updates are missing or bad. No import of torch: the plan reads it."""

from typing import Literal

from pydantic import Field

from pipeline.workspace.record import Record


class Tolerance(Record):
    """The server's rules for missing and bad updates, under `tolerance` in params.yaml."""

    minimum: int | None = Field(
        default=None, ge=1, description="The number of good updates that a round needs. None: all selected clients'."
    )
    repeats: int = Field(
        default=0, ge=0, description="How often the other clients are assigned again if there are fewer."
    )
    pause: float = Field(
        default=0.0,
        ge=0,
        exclude_if=lambda seconds: seconds == 0,
        description="Seconds between a failure and the next assignment, for instance to free a full disk.",
    )
    without_quorum: Literal["stop", "skip"] = Field(
        default="stop", description="What follows if there are still fewer: stop the training, or skip the round."
    )
    deadline: float | None = Field(
        default=None, gt=0, description="Seconds from the assignment, after which an answer is late. None: no limit."
    )
    largest_change: float = Field(
        default=1e4,
        gt=0,
        description="The largest Euclidean norm, over all parameters, of a change by one round's training.",
    )


STRICT = Tolerance()  # every selected client must send a good update at the first attempt
