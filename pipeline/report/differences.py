"""One run less the others of a table, as `significance.csv` has it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pipeline.evaluation.scores import Comparison, significance
from pipeline.runs.results import Results


def differences(
    results: Results, ours: str | None, family: Collection[str], endpoints: Sequence[str], samples: int
) -> list[Comparison]:
    """One run less each other that wrote summaries; none, if the run is none of these.

    Args:
        family: the runs over which Holm's correction goes.
        endpoints: the metrics that runs are compared by, the one of summaries first.
    """
    written = {name: own for name, own in results.scored.items() if endpoints[0] in own[0].values}
    return significance(written, ours, family, endpoints, samples) if ours in written else []
