"""The methods that tables and plans treat specially, by name. A new algorithm needs no change here."""

from typing import Literal

OURS = "AdaFedSelectKD"  # the method that Feng et al. propose, which every table compares with the others

ZEROSHOT = "ZeroShot"  # the untrained backbone: a row of every table, and no algorithm

Rule = Literal["lead", "random", "longest", "frequent", "regression", "oracle"]
TURNS: dict[str, Rule] = {"LeadTurns": "lead", "RandomTurns": "random"}
"""Method -> which turns of a meeting are its summary: rows that need no model."""
UNITS: dict[str, Rule] = {
    "LeadUnits": "lead",
    "RandomUnits": "random",
    "LongestUnits": "longest",
    "FrequentUnits": "frequent",
    "RegressionUnits": "regression",
    "OracleUnits": "oracle",
}
"""Method -> by which rule units of a document are chosen; a backbone says only how many units are read."""
RULES = TURNS | UNITS

UNTRAINED = (ZEROSHOT, *RULES)
