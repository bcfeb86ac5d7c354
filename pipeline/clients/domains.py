"""Kind `domains`: a client a domain or corpus, and the corpus's own splits."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.clients.manifest import Manifest, by_split, scaled
from pipeline.clients.setting import Domains
from pipeline.corpora.conversation import Conversation


def partition(setting: Domains, examples: Mapping[str, Conversation], seed: int) -> Manifest:
    """Examples by domain: a fraction of training, a limit on validation, all of test.

    Clients share the fraction and the limit, but for those named in `only`.
    """
    return {client: scaled(by_split(examples, client), setting.share_of(client), seed) for client in setting.clients}
