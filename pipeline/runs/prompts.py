"""What decoding needs of a text besides its entry in the store: kept for the next run's evaluation, where it is small.

Seven runs write titles of the same texts: to read these takes two thirds of an evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.federated.token_figures import Load
from pipeline.model.backbone import Backbone, Prefix, Rendered
from pipeline.model.store import PrefixStore
from pipeline.workspace import layout

KEPT = 1_000_000_000
"""Bytes, at most, of all texts of an evaluation; those of a larger one are read anew in each."""


class Prompts:
    """Texts as a language model has read them, by the key of their entry.

    Args:
        load: reads entries.
        windows: all that an evaluation reads.
    """

    def __init__(self, backbone: Backbone, load: Load, windows: Sequence[Rendered]) -> None:
        self._backbone, self._load, self._store = backbone, load, PrefixStore(layout.prompts())
        self._keeps = sum(backbone.bytes_of_source(len(one.source)) for one in windows) <= KEPT

    def __call__(self, key: str, window: Rendered) -> Prefix:
        """All that is frozen of a text."""
        if self._store.has(key):
            (entry,), (more,) = self._load([key]), self._store.training([key])
            return entry | more
        entry, more = self._backbone.encode(window, for_generation=True)
        if self._keeps:
            self._store.put(key, more)
        return entry | more
