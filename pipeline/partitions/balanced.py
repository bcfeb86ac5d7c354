"""Setting `noniid_balanced` (Fig. 7): a client a domain, each with the same number of examples, drawn for each seed.

Feng et al., Section V-B2: 200 training, 40 validation and 40 test examples of each domain.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.corpora.example import SPLITS, Example
from pipeline.errors import QuorumError
from pipeline.partitions.manifest import Manifest, by_split, take_at_most
from pipeline.partitions.setting import Setting


def partition(setting: Setting, examples: Mapping[str, Example], seed: int) -> Manifest:
    """So many examples of each split of each domain, within the corpus's splits.

    Raises:
        QuorumError: a domain has fewer.
    """
    if setting.counts is None:
        raise QuorumError("params.yaml: settings: kind: balanced needs sizes with train, val and test; add them")
    manifest: Manifest = {}
    for client in setting.clients:
        held = by_split(examples, client)
        manifest[client] = {split: [] for split in SPLITS}
        for split in SPLITS:
            wanted = getattr(setting.counts, split)
            if len(held[split]) < wanted:
                raise QuorumError(
                    f"params.yaml: settings: {client} has {len(held[split])} {split} examples, not {wanted}; ask for "
                    "fewer"
                )
            manifest[client][split] = take_at_most(held[split], wanted, salt=f"{seed}/")
    return manifest
