"""The methods that tables and plans treat specially, by name. A new algorithm needs no change here."""

OURS = "AdaFedSelectKD"
"""The method that Feng et al. propose, which every table compares with the others."""

ZEROSHOT = "ZeroShot"
"""The untrained backbone: a row of every table, and no algorithm."""
