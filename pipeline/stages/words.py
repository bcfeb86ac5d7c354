"""Masks of the selective run -> which words it distilled, by part of speech: pos_kd.csv and word_shares.csv."""

from __future__ import annotations

from pipeline.federated.methods import OURS
from pipeline.plan.orders import MainOrder, read_order
from pipeline.runs.words import words_of_run
from pipeline.workspace import layout
from pipeline.workspace.tables import write_table

PARTS = (
    *("client", "pos", "words", "distilled", "base_rate", "distilled_given_pos", "pos_given_distilled"),
    *("pos_given_not_distilled", "lift"),
)
SHARES = ("run", "client", "share", "value", "low", "high")


def run() -> None:
    """Write both tables; without a selective run they have no rows."""
    order = read_order(layout.order("main"), MainOrder)
    name = next((row.name for row in order.runs if row.method == OURS), None)
    words = words_of_run([row for row in order.runs if row.name == name], order.sign_flips)
    write_table(layout.POS_SHARES, words.parts, PARTS)
    write_table(layout.WORD_SHARES, words.shares, SHARES)
