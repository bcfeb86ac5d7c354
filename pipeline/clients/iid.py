"""Kind `iid`, as in Fig. 6: every client holds an equal part of every domain, drawn anew for each seed.

Feng et al., Section V-B1: the data of each domain is divided evenly, and each client gets one part of each domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.clients.manifest import Manifest, by_split, scaled
from pipeline.clients.setting import Iid, Share
from pipeline.corpora.example import SPLITS, Example
from pipeline.corpora.hash_order import hash_order


def partition(setting: Iid, examples: Mapping[str, Example], seed: int) -> Manifest:
    """Each domain's examples, within each split, dealt out to the clients.

    By example, as in the paper, or by whole meetings. The share that is taken is taken of each domain before it is
    dealt, so that the clients together hold what `domains` holds.
    """
    manifest: Manifest = {client: {split: [] for split in SPLITS} for client in setting.clients}
    share = Share(train_fraction=setting.train_fraction, validation_examples=setting.validation_examples)
    dealt = dict.fromkeys(SPLITS, 0)
    for domain in setting.of:
        held = scaled(by_split(examples, domain), share, seed)
        for split in SPLITS:
            units = _units(held[split], examples, setting.unit)
            order = hash_order(list(units), salt=f"{seed}/{domain}/{split}/")
            for unit in order:
                # Every domain goes on where the last one stopped, else the first client would get every odd one out.
                manifest[setting.clients[dealt[split] % len(setting.clients)]][split] += units[unit]
                dealt[split] += 1
    return manifest


def _units(ids: Sequence[str], examples: Mapping[str, Example], unit: str) -> dict[str, list[str]]:
    """What is dealt out as one: an example, or all examples of a meeting."""
    units: dict[str, list[str]] = {}
    for identity in ids:
        units.setdefault(identity if unit == "example" else examples[identity].meeting, []).append(identity)
    return units
