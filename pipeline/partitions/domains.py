"""Settings `domains`, `extreme`, `long`: a client a domain or corpus, and the corpus's own splits."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.corpora.example import Example
from pipeline.partitions.manifest import Manifest, by_split, scaled
from pipeline.partitions.setting import Setting


def partition(setting: Setting, examples: Mapping[str, Example], _seed: int) -> Manifest:
    """Examples by domain; training scaled alike for every client, validation capped, test whole.

    A client named in `only` has a share of its own.
    """
    return {
        client: scaled(by_split(examples, client), setting.only.get(client, setting.share))
        for client in setting.clients
    }
