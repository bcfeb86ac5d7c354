"""A cache of the prompts that decoding needs in addition to the prefix store's entries, where it is small.

Seven runs decode titles of the same texts, and encoding these takes two thirds of an evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.federated.token_figures import Load
from pipeline.model.backbone import Backbone, Prefix, Rendered
from pipeline.model.store import PrefixStore
from pipeline.workspace import layout

CACHE_BYTES = 1_000_000_000
"""The cache's limit, for all texts of one evaluation; a larger evaluation is not cached."""


class Prompts:
    """A language model's prefixes for generation, by the key of a text's entry.

    Args:
        load: reads entries of the prefix store.
        windows: all windows of an evaluation.
    """

    def __init__(self, backbone: Backbone, load: Load, windows: Sequence[Rendered]) -> None:
        self._backbone, self._load, self._store = backbone, load, PrefixStore(layout.prompts())
        self._caches = sum(backbone.bytes_of_source(len(one.source)) for one in windows) <= CACHE_BYTES

    def __call__(self, key: str, window: Rendered) -> Prefix:
        """Return a text's full prefix, from the cache or computed."""
        if self._store.has(key):
            (entry,), (more,) = self._load([key]), self._store.training([key])
            return entry | more
        entry, more = self._backbone.encode(window, for_generation=True)
        if self._caches:
            self._store.put(key, more)
        return entry | more
