"""What `tune` of an experiment on labelled texts tries: grids of values, each on a run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipeline.workspace.record import Record

Grid = tuple[str, list[float]]
"""A run, and the values that are tried on it."""


class TextTune(Record):
    """Tuning at a seed that no table reports.

    `rates`: data set -> family of its rates -> the run that chooses it and the values that are tried. `knobs`: the same
    of its runs' hyperparameters, tried at the rates that were chosen. `own_rates`: run -> rates for it alone, tried
    at the rates and hyperparameters that were chosen.
    """

    seed: int = Field(default=1000, ge=0)
    rates: dict[str, dict[Literal["adamw", "sgd", "pooled"], Grid]] = Field(default_factory=dict)
    knobs: dict[str, dict[str, Grid]] = Field(default_factory=dict)
    own_rates: dict[str, list[float]] = Field(default_factory=dict)

    def grids(self) -> dict[str, Grid]:
        """Key below `tune` -> its grid."""
        found = {f"rates.{data}.{name}": grid for data, own in self.rates.items() for name, grid in own.items()}
        found |= {f"knobs.{data}.{name}": grid for data, own in self.knobs.items() for name, grid in own.items()}
        return found | {f"own_rates.{run}": (run, values) for run, values in self.own_rates.items()}
