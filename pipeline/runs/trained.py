"""Reads what a training wrote: the rounds in models/<run>/history.csv, and its seconds on this machine."""

from __future__ import annotations

from pipeline.federated.history import Round
from pipeline.workspace import layout
from pipeline.workspace.files import read_json
from pipeline.workspace.record import Json
from pipeline.workspace.tables import read_table


def read_history(run_id: str, seed: int) -> list[Round]:
    """Read the rounds of one run at one seed.

    Raises:
        QuorumError: the run is not trained.
    """
    return [Round.of_row(row, seed) for row in read_table(layout.history(run_id))]


def timed_training(run: str) -> Json:
    """Read the seconds of a run's training, in total and for each client's rounds.

    Empty if it trained nothing, or if the file is of another training, for example of a copy of the workspace. Two runs
    that report the same training, before and after the server averages, both have its seconds.
    """
    timing, trained = layout.timing("train", run), layout.trained_as(run)
    timed: Json = read_json(timing) if timing.is_file() and trained.is_file() else {}
    return timed if timed and timed["rounds"] and timed["training"] == read_json(trained)["training"] else {}
