"""What training and losses read of a run's examples: stored prefixes, or token ids where the run has no store."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.federated.token_figures import Hidden, Load
from pipeline.model.backbone import Backbone
from pipeline.model.entry import Entry
from pipeline.model.loader import Loader
from pipeline.model.uncached import UncachedBackbone, load_ids
from pipeline.plan.orders import EvaluateSpec, TrainSpec


def inputs(
    spec: TrainSpec | EvaluateSpec,
    backbone: Backbone,
    loader: Loader,
    entries: Sequence[Entry],
    *,
    dropped: float = 0.0,
) -> tuple[Hidden, Load]:
    """The backbone as a run sees it, and what loads its examples; `entries` are all that will be asked for.

    Args:
        dropped: the probability that dropout drops a hidden unit, of a run without the store.
    """
    if not spec.uncached:
        return backbone, loader.training
    seen = UncachedBackbone(backbone, spec.adapted_positions == "all", dropped)
    return seen, load_ids(entries, backbone.device)
