"""Kind `balanced`, as in Fig. 7: a client a domain, each with the same number of examples, drawn for each seed.

Feng et al., Section V-B2: 200 training, 40 validation and 40 test examples of each domain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pipeline.clients.manifest import Manifest, by_split, take_at_most
from pipeline.clients.setting import Balanced, Counts, Setting
from pipeline.corpora.example import SPLITS, Example
from pipeline.errors import QuorumError


def partition(setting: Balanced, examples: Mapping[str, Example], seed: int) -> Manifest:
    """So many examples of each split of each domain, within the corpus's splits.

    Raises:
        QuorumError: a domain has fewer.
    """
    manifest: Manifest = {}
    for client in setting.clients:
        held = by_split(examples, client)
        manifest[client] = {split: [] for split in SPLITS}
        for split in SPLITS:
            wanted = getattr(setting.counts, split)
            if len(held[split]) < wanted:
                raise QuorumError(
                    f"{client} has {len(held[split])} {split} examples, not {wanted}; ask for fewer in its counts"
                )
            manifest[client][split] = take_at_most(held[split], wanted, salt=f"{seed}/")
    return manifest


def fitted(setting: Setting, examples: Mapping[str, Example], sample: Collection[str]) -> Setting:
    """The same, asking for no more of a split than each client of the sample holds: still as many for every client.

    Sizes are chosen for real corpora, and a real client that has fewer is a mistake in them; of the sample, whose
    numbers mean nothing, what there is will do.

    Args:
        sample: the corpora in whose place it stands.
    """
    if not isinstance(setting, Balanced):
        return setting
    made_up = {example.domain for example in examples.values() if example.corpus in sample}
    held = [by_split(examples, client) for client in setting.clients if client in made_up]
    least = {split: min([getattr(setting.counts, split), *(len(of[split]) for of in held)]) for split in SPLITS}
    return setting.model_copy(update={"counts": Counts(**least)})
