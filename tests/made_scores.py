"""Scores as if runs had been evaluated: what the tests of claims share."""

from __future__ import annotations

from pipeline.evaluation.scores import Scored


def scored(shift: float, client: str = "A") -> list[Scored]:
    """Twenty meetings of one example each; all shifted alike, so the difference has no spread."""
    return [Scored(f"{client}{i}", client, f"m{i}", 10, {"average": 20.0 + i + shift, "loss": 9.0}) for i in range(20)]


def spread(shift: float, client: str) -> list[Scored]:
    """Twenty meetings of the client's own."""
    return [Scored(row.id, client, f"{client}{row.meeting}", row.tokens, row.values) for row in scored(shift, client)]
