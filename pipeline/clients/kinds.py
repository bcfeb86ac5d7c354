"""Kinds of settings, and the function that makes the partition of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from pipeline.clients import balanced, domains, iid, skews
from pipeline.clients.folds import Fold, refolded
from pipeline.clients.manifest import Manifest
from pipeline.clients.setting import Balanced, Domains, Iid
from pipeline.clients.skews import Given, Natural, Skewed
from pipeline.errors import QuorumError

AnySetting = Annotated[Domains | Iid | Balanced | Skewed | Natural | Given, Field(discriminator="kind")]

BY_DOMAIN: dict[str, Callable[[Any, Mapping[str, Any], int], Manifest]] = {
    "domains": domains.partition,
    "iid": iid.partition,
    "balanced": balanced.partition,
}
"""Kinds whose clients are domains, or get parts of domains."""
SKEWED: dict[str, Callable[[Any, Mapping[str, Any], int, Mapping[str, str]], Manifest]] = {
    "skewed": skews.skewed,
    "natural": skews.natural,
    "given": skews.given,
}
"""Kinds whose clients divide one data set, of which the server may have the development and test sets."""


def partition(
    name: str,
    setting: AnySetting,
    examples: Mapping[str, Any],
    seed: int,
    fold: Fold = "official",
    groups: Mapping[str, str] | None = None,
) -> Manifest:
    """The manifest of a setting at a seed, with a fold's splits.

    Args:
        name: the setting's, for messages.
        groups: example -> its cluster, if the setting is skewed by cluster; owner -> its silo, if it has silos.

    Raises:
        QuorumError: the setting needs more examples than there are, or a given partition is of other examples.
    """
    try:
        if setting.kind in BY_DOMAIN:
            return BY_DOMAIN[setting.kind](setting, refolded(examples, fold), seed)
        return SKEWED[setting.kind](setting, examples, seed, groups or {})
    except QuorumError as error:
        raise QuorumError(f"params.yaml: settings.{name}: {error}") from None
