"""Settings whose clients are domains, or get parts of domains.

Feng et al., Section V-B1, Fig. 6, is kind `iid`: the data of each domain is divided evenly, and each client gets one
part of each. Section V-B2, Fig. 7, is kind `balanced`: 200 training, 40 validation and 40 test examples of each domain.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import cycle

from pipeline.clients.manifest import Manifest, by_split, scaled, take_at_most
from pipeline.clients.setting import Balanced, Counts, Domains, Iid, Setting, Share
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS
from pipeline.corpora.hash_order import hash_order
from pipeline.errors import QuorumError


def of_domains(setting: Domains, examples: Mapping[str, Conversation], seed: int) -> Manifest:
    """Examples by domain: a fraction of training, a limit on validation, all of test."""
    return {client: scaled(by_split(examples, client), setting.share_of(client), seed) for client in setting.clients}


def iid(setting: Iid, examples: Mapping[str, Conversation], seed: int) -> Manifest:
    """Deal each split of each domain out to the clients, by example as in the paper, or by meeting.

    Domains are scaled before they are dealt, so that the clients together have the examples of kind `domains`.
    """
    manifest: Manifest = {client: {split: [] for split in SPLITS} for client in setting.clients}
    share = Share(train_fraction=setting.train_fraction, validation_examples=setting.validation_examples)
    # Every domain continues with the next client, or the first would get every domain's remainder.
    turns = {split: cycle(setting.clients) for split in SPLITS}
    for domain in setting.of:
        for split, ids in scaled(by_split(examples, domain), share, seed).items():
            units: dict[str, list[str]] = {}
            for identity in ids:
                unit = identity if setting.unit == "example" else examples[identity].meeting
                units.setdefault(unit, []).append(identity)
            for unit in hash_order(list(units), salt=f"{seed}/{domain}/{split}/"):
                manifest[next(turns[split])][split] += units[unit]
    return manifest


def balanced(setting: Balanced, examples: Mapping[str, Conversation], seed: int) -> Manifest:
    """Draw `counts` examples of each split of each domain, within the corpus's splits.

    Raises:
        QuorumError: a domain has fewer examples than that.
    """
    manifest: Manifest = {client: {} for client in setting.clients}
    for client in setting.clients:
        for split, own in by_split(examples, client).items():
            wanted = getattr(setting.counts, split)
            if len(own) < wanted:
                raise QuorumError(f"{client} has {len(own)} {split} examples, not {wanted}; lower its counts")
            manifest[client][split] = take_at_most(own, wanted, salt=f"{seed}/")
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
