"""Kind `domains`: a client a domain or corpus, and the corpus's own splits."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clients.manifest import Manifest, by_split, scaled
from pipeline.clients.setting import Domains
from pipeline.corpora.example import Example


def partition(setting: Domains, examples: Mapping[str, Example], seed: int) -> Manifest:
    """Examples by domain; training scaled alike for every client, validation capped, test whole.

    A client named in `only` has a share of its own.
    """
    return {client: scaled(by_split(examples, client), setting.share_of(client), seed) for client in setting.clients}
