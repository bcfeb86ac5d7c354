"""Kinds of settings: the partition of each, and whether its clients have enough optimizer steps a round."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from pipeline.clients.batches import LEAST_STEPS, short_rounds
from pipeline.clients.folds import Fold, refolded
from pipeline.clients.manifest import Manifest
from pipeline.clients.setting import Balanced, Domains, Iid, Setting, users_clients
from pipeline.clients.skews import Given, Natural, Skewed
from pipeline.corpora.conversation import Conversation
from pipeline.errors import QuorumError
from pipeline.workspace.record import Json

AnySetting = Annotated[Domains | Iid | Balanced | Skewed | Natural | Given, Field(discriminator="kind")]


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

    Raises QuorumError if the setting needs more examples than there are, or a given partition is of other examples.
    """
    try:
        return setting.draw(refolded(examples, fold), seed, groups or {})
    except QuorumError as error:
        raise QuorumError(f"params.yaml: settings.{name}: {error}") from None


def check_rounds(
    name: str,
    setting: Setting,
    manifest: Manifest,
    examples: Mapping[str, Conversation],
    seed: int,
    fold: Fold,
    batch: tuple[int, int],
) -> list[str]:
    """Refuse a share that leaves a client too few steps a round; return a line on each client that is itself too small.

    `batch`: the largest batch of the setting's trainings, and their local epochs. Raises QuorumError if a client has
    too few steps, and would have enough with all of its examples.
    """
    if isinstance(setting, Balanced):
        small = users_clients(examples)
    else:
        everything: Json = {"train_fraction": 1.0} | ({"only": {}} if isinstance(setting, Domains) else {})
        small = set(short_rounds(partition(name, setting.model_copy(update=everything), examples, seed, fold), *batch))
    lines = []
    for client, steps in short_rounds(manifest, *batch).items():
        found = f"client {client} has {len(manifest[client]['train'])} training examples, so {steps} steps a round"
        if client not in small:
            remedy = "raise train_fraction or counts, or give its runs a smaller batch_size"
            raise QuorumError(f"params.yaml: settings.{name}: {found}, not {LEAST_STEPS}; {remedy}")
        lines.append(f"{name}: {found}, where {LEAST_STEPS} are wanted: it may learn little")
    return lines
