"""Who the clients of an experiment's settings are: `clients.skews`, each on a data set of params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from pipeline.clients.skews import Given, Natural, Skewed
from pipeline.workspace.layout import OWN
from pipeline.workspace.record import Record


def check_own(file: Path) -> None:
    """
    Raises:
        ValueError: the file does not lie where DVC looks for changes.
    """
    if OWN not in file.parents:
        raise ValueError(
            f"file: {file}: lay it in the experiment's folder {OWN}/, where DVC looks, and say {OWN}/{file.name}"
        )


class OnData(Record):
    """A federation is on one data set."""

    data: str


class SkewedOn(OnData, Skewed):
    """Without `alpha` and `beta` it takes the file's `alpha`, so that one key varies it.

    `spread: true`: neither labels nor sizes are skewed, unless `beta` is set.
    """

    spread: bool = False

    @model_validator(mode="after")
    def _spread_or_skewed(self) -> SkewedOn:
        if self.spread and self.alpha is not None:
            raise ValueError("spread: leaves labels as they are, and alpha skews them; remove one")
        return self


class NaturalOn(OnData, Natural):
    """See `Natural`."""


class GivenOn(OnData, Given):
    """See `Given`."""

    @model_validator(mode="after")
    def _where_dvc_looks(self) -> GivenOn:
        check_own(self.file)
        return self


Federation = Annotated[SkewedOn | NaturalOn | GivenOn, Field(discriminator="kind")]
