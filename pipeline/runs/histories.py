"""Reading models/<run>/history.csv: what a training left of its rounds."""

from __future__ import annotations

from pipeline.federated.history import Round
from pipeline.workspace import layout
from pipeline.workspace.tables import read_table


def read_history(run_id: str, seed: int) -> list[Round]:
    """One run at one seed, as its training left it.

    Raises:
        QuorumError: it is not trained.
    """
    return [Round.of_row(row, seed) for row in read_table(layout.history(run_id))]
