"""Kind `balanced`, as in Fig. 7: a client a domain, each with the same number of examples, drawn for each seed.

Feng et al., Section V-B2: 200 training, 40 validation and 40 test examples of each domain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pipeline.clients.manifest import Manifest, by_split, take_at_most
from pipeline.clients.setting import Balanced, Counts, Setting
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS
from pipeline.errors import QuorumError


def partition(setting: Balanced, examples: Mapping[str, Conversation], seed: int) -> Manifest:
    """Draw `counts` examples of each split of each domain, within the corpus's splits.

    Raises:
        QuorumError: a domain has fewer examples than that.
    """
    manifest: Manifest = {}
    for client in setting.clients:
        own = by_split(examples, client)
        manifest[client] = {split: [] for split in SPLITS}
        for split in SPLITS:
            wanted = getattr(setting.counts, split)
            if len(own[split]) < wanted:
                raise QuorumError(f"{client} has {len(own[split])} {split} examples, not {wanted}; lower its counts")
            manifest[client][split] = take_at_most(own[split], wanted, salt=f"{seed}/")
    return manifest


def fitted(setting: Setting, examples: Mapping[str, Conversation], sample: Collection[str]) -> Setting:
    """The setting with counts that the sample can give: the smallest number that any of its clients has of a split.

    Counts are chosen for real corpora. A real client with fewer examples is a mistake in the counts.

    Args:
        sample: corpora that were not available, so that the sample is used instead of them.
    """
    if not isinstance(setting, Balanced):
        return setting
    made_up = {example.domain for example in examples.values() if example.corpus in sample}
    own = [by_split(examples, client) for client in setting.clients if client in made_up]
    least = {split: min([getattr(setting.counts, split), *(len(of[split]) for of in own)]) for split in SPLITS}
    return setting.model_copy(update={"counts": Counts(**least)})
