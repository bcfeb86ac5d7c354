"""Whether every client of a manifest has enough optimizer steps a round."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clients.batches import LEAST_STEPS, short_rounds
from pipeline.clients.folds import Fold
from pipeline.clients.kinds import partition
from pipeline.clients.manifest import Manifest
from pipeline.clients.setting import Balanced, Domains, Setting
from pipeline.corpora.conversation import Conversation
from pipeline.errors import QuorumError


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

    Args:
        batch: the largest batch of the setting's trainings, and their local epochs.

    Raises:
        QuorumError: a client has too few steps, and would have enough with all of its examples.
    """
    short = short_rounds(manifest, *batch)
    if not short:
        return []
    everything = partition(name, _with_all(setting), examples, seed, fold)
    small = set() if isinstance(setting, Balanced) else set(short_rounds(everything, *batch))
    lines = []
    for client, steps in short.items():
        found = f"client {client} has {len(manifest[client]['train'])} training examples, so {steps} steps a round"
        if client not in small:
            raise QuorumError(
                f"params.yaml: settings.{name}: {found}, not {LEAST_STEPS}; raise train_fraction or counts, or give "
                "its runs a smaller batch_size"
            )
        lines.append(f"{name}: {found}, where {LEAST_STEPS} are wanted: it may learn little")
    return lines


def _with_all(setting: Setting) -> Setting:
    """The setting with all training examples of its clients; `counts` stay."""
    if isinstance(setting, Balanced):
        return setting
    all_of_it = setting.model_copy(update={"train_fraction": 1.0})
    if isinstance(all_of_it, Domains):
        only = {client: share.model_copy(update={"train_fraction": None}) for client, share in all_of_it.only.items()}
        all_of_it = all_of_it.model_copy(update={"only": only})
    return all_of_it
