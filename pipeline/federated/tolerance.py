"""What a server does where answers are missing or bad; without torch, which the plan saves."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.workspace.record import Record


class Tolerance(Record):
    """Rules of a training's rounds, in params.yaml under `tolerance`.

    `minimum`: so many good answers make a round; None: all that were asked for. `repeats`: how often the others are
    asked again where there are fewer; `pause`: so many seconds after it failed, so that a full disk can be freed first.
    `without_quorum`: what comes then: the training stops, or the round is skipped
    and leaves the server's model as it is. `deadline`: seconds from asking, after which an answer is late.
    `largest_change`: the norm, over all parameters, of the largest change that can be one round's work.
    """

    minimum: int | None = Field(default=None, ge=1)
    repeats: int = Field(default=0, ge=0)
    pause: float = Field(default=0.0, ge=0, exclude_if=lambda seconds: seconds == 0)
    without_quorum: Literal["stop", "skip"] = "stop"
    deadline: float | None = Field(default=None, gt=0)
    largest_change: float = Field(default=1e4, gt=0)


STRICT = Tolerance()
"""Everyone answers, and well."""
