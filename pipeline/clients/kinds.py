"""Kinds of settings, and the function that makes the partition of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.clients import balanced, domains, iid
from pipeline.clients.folds import Fold, refolded
from pipeline.clients.manifest import Manifest
from pipeline.clients.setting import Setting
from pipeline.corpora.conversation import Conversation
from pipeline.errors import QuorumError

KINDS: dict[str, Callable[[Any, Mapping[str, Conversation], int], Manifest]] = {
    "domains": domains.partition,
    "iid": iid.partition,
    "balanced": balanced.partition,
}


def partition(
    name: str, setting: Setting, examples: Mapping[str, Conversation], seed: int, fold: Fold = "official"
) -> Manifest:
    """The manifest of a setting at a seed, with a fold's splits.

    Raises:
        QuorumError: the setting needs more examples than there are; the message names it.
    """
    try:
        return KINDS[setting.kind](setting, refolded(examples, fold), seed)
    except QuorumError as error:
        raise QuorumError(f"params.yaml: settings.{name}: {error}") from None
