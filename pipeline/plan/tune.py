"""What `tune` of params.yaml tries: searches over values of a key, at a seed that no table reports."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from pipeline.workspace.record import Record

Grid = Annotated[list[float], Field(min_length=2)]


class Search(Record):
    """One grid for all runs of a search, so that every method has as many trials.

    Attributes:
        grid: the values that are tried; one more beyond an end at which some best value is.
        chooses: dotted key of params.yaml -> the run that is trained with each value at that key.
    """

    grid: Grid
    chooses: dict[str, str] = Field(min_length=1)

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.grid != sorted(set(self.grid)) or self.grid[0] < 0:
            raise ValueError("grid: needs values from 0 on, each once, the lowest first")
        return self


class Tune(Record):
    """Searches in their order: each has the values that the searches before it chose."""

    seed: int = Field(default=1000, ge=0)
    searches: dict[str, Search] = Field(default_factory=dict)
