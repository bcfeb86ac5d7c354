"""Who the clients of an experiment's settings are: `clients.skews`, each on a data set of params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from pipeline.clients.skews import Given, Natural, Skewed
from pipeline.workspace.layout import OWN
from pipeline.workspace.record import Record


def check_own(file: Path) -> None:
    """Check that DVC tracks a user's file.

    Raises:
        ValueError: the file is not in the folder where DVC looks for changes.
    """
    if OWN not in file.parents:
        raise ValueError(f"file: {file}: is not in {OWN}/, where DVC looks; move it there, and set {OWN}/{file.name}")


class OnData(Record):
    """A federation on one data set of params.yaml."""

    data: str


class SkewedOn(OnData, Skewed):
    """Skewed clients. Without `alpha` and `beta` they take the file's `alpha`, so that one key varies all.

    `spread: true`: neither labels nor sizes are skewed, unless `beta` is set.
    """

    spread: bool = False

    @model_validator(mode="after")
    def _spread_or_skewed(self) -> SkewedOn:
        if self.spread and self.alpha is not None:
            raise ValueError("spread: leaves labels as they are, and alpha skews them; remove one")
        return self


class NaturalOn(OnData, Natural):
    """One client for each owner of texts; see `Natural`."""


class GivenOn(OnData, Given):
    """Clients that a file lists; see `Given`."""

    @model_validator(mode="after")
    def _check_file(self) -> GivenOn:
        check_own(self.file)
        return self


Federation = Annotated[SkewedOn | NaturalOn | GivenOn, Field(discriminator="kind")]
