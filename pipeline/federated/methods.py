"""The methods that tables and plans treat specially, by name. A new algorithm needs no change here."""

from typing import Literal

OURS = "AdaFedSelectKD"
"""The method that Feng et al. propose, which every table compares with the others."""

ZEROSHOT = "ZeroShot"
"""The untrained backbone: a row of every table, and no algorithm."""

TURNS: dict[str, Literal["lead", "random"]] = {"LeadTurns": "lead", "RandomTurns": "random"}
"""Method -> which turns of the source are its summary: rows that need no model."""

UNTRAINED = (ZEROSHOT, *TURNS)
