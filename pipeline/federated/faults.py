"""What goes wrong in a simulation, as params.yaml declares it under `faults`; without torch, which the plan saves."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.workspace.record import Record

Poison = Literal["nan", "inf", "huge", "shape", "names", "foreign", "reversed"]
"""How an update is made bad.

The first six can be seen from the update alone: a number that is none, infinite, 1e30; a tensor of another shape or
name; another training's. `reversed` goes the other way, `strength` times as far, and looks like any other.
"""


class Faults(Record):
    """Chances are of a client in a round, each drawn by itself from (seed, client, round, time of asking).

    `dropout`: it never begins. `dropout_during`: it stops before its training ends, which is lost. `lost`: its update
    does not arrive. `truncated`: it arrives cut off. `duplicated`: it arrives twice. `poisoned`: client -> how all its
    updates are made bad. The clock: a client takes `seconds` for a round, times a log-normal factor of its own and one
    of the round, both of this `spread`; a straggler (of that chance) takes `slowdown` times as long.
    """

    dropout: float = Field(default=0.0, ge=0, lt=1)
    dropout_during: float = Field(default=0.0, ge=0, lt=1)
    lost: float = Field(default=0.0, ge=0, lt=1)
    truncated: float = Field(default=0.0, ge=0, lt=1)
    duplicated: float = Field(default=0.0, ge=0, lt=1)
    poisoned: dict[str, Poison] = Field(default_factory=dict)
    strength: float = Field(default=10.0, gt=0)
    seconds: float = Field(default=60.0, gt=0)
    spread: float = Field(default=0.5, ge=0)
    stragglers: float = Field(default=0.0, ge=0, lt=1)
    slowdown: float = Field(default=10.0, ge=1)

    @property
    def silent(self) -> bool:
        """Whether some answer never comes: a server without a deadline would wait for ever."""
        return bool(self.dropout or self.dropout_during or self.lost)
