"""Setting `noniid_balanced` (Fig. 7): a client a domain, each with the same number of examples, drawn for each seed.

Feng et al., Section V-B2: 200 training, 40 validation and 40 test examples of each domain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline.corpora.example import SPLITS, Example
from pipeline.errors import QuorumError
from pipeline.partitions.manifest import Manifest, by_split, take_at_most
from pipeline.partitions.setting import Counts, Setting


def partition(setting: Setting, examples: Mapping[str, Example], seed: int) -> Manifest:
    """So many examples of each split of each domain, within the corpus's splits.

    Raises:
        QuorumError: a domain has fewer.
    """
    if setting.counts is None:
        raise QuorumError("kind: balanced needs sizes with train, val and test; add them")
    manifest: Manifest = {}
    for client in setting.clients:
        held = by_split(examples, client)
        manifest[client] = {split: [] for split in SPLITS}
        for split in SPLITS:
            wanted = getattr(setting.counts, split)
            if len(held[split]) < wanted:
                raise QuorumError(f"{client} has {len(held[split])} {split} examples, not {wanted}; ask for fewer")
            manifest[client][split] = take_at_most(held[split], wanted, salt=f"{seed}/")
    return manifest


def fitted(setting: Setting, examples: Mapping[str, Example]) -> Setting:
    """The same with no more of a split than the client that has least of it holds: still as many for every client."""
    if setting.counts is None:
        return setting
    held = [by_split(examples, client) for client in setting.clients]
    least = {split: min(getattr(setting.counts, split), *(len(h[split]) for h in held)) for split in SPLITS}
    return replace(setting, counts=Counts(**least))
