"""Kind `iid`, as in Fig. 6: every client has an equal part of every domain, drawn for each seed.

Feng et al., Section V-B1: the data of each domain is divided evenly, and each client gets one part of each domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.clients.manifest import Manifest, by_split, scaled
from pipeline.clients.setting import Iid, Share
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS
from pipeline.corpora.hash_order import hash_order


def partition(setting: Iid, examples: Mapping[str, Conversation], seed: int) -> Manifest:
    """Deal each split of each domain out to the clients, by example as in the paper, or by meeting.

    Domains are scaled before they are dealt, so that the clients together have the examples of kind `domains`.
    """
    manifest: Manifest = {client: {split: [] for split in SPLITS} for client in setting.clients}
    share = Share(train_fraction=setting.train_fraction, validation_examples=setting.validation_examples)
    dealt = dict.fromkeys(SPLITS, 0)
    for domain in setting.of:
        ids = scaled(by_split(examples, domain), share, seed)
        for split in SPLITS:
            units = _units(ids[split], examples, setting.unit)
            order = hash_order(list(units), salt=f"{seed}/{domain}/{split}/")
            for unit in order:
                # Every domain continues with the next client, or the first would get every domain's remainder.
                manifest[setting.clients[dealt[split] % len(setting.clients)]][split] += units[unit]
                dealt[split] += 1
    return manifest


def _units(ids: Sequence[str], examples: Mapping[str, Conversation], unit: str) -> dict[str, list[str]]:
    """Examples that are dealt together: one, or all of a meeting."""
    units: dict[str, list[str]] = {}
    for identity in ids:
        units.setdefault(identity if unit == "example" else examples[identity].meeting, []).append(identity)
    return units
