"""Methods that tables and plans treat apart, by name; a new algorithm changes nothing here."""

from typing import Literal

OURS = "AdaFedSelectKD"
"""The method that the first paper proposes, and every table compares with the others."""

ZEROSHOT = "ZeroShot"
"""The untrained backbone: a row of every table, and no algorithm."""

TURNS: dict[str, Literal["lead", "random"]] = {"LeadTurns": "lead", "RandomTurns": "random"}
"""Method -> which turns of the source are its summary: rows that need no model."""

UNTRAINED = (ZEROSHOT, *TURNS)
