"""Methods that tables and plans treat apart, by name; a new algorithm changes nothing here."""

OURS = "AdaFedSelectKD"
"""The method that the first paper proposes, and every table compares with the others."""

ZEROSHOT = "ZeroShot"
"""The untrained backbone: a row of every table, and no algorithm."""
