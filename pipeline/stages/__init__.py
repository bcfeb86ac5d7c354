"""One module a DVC stage: it reads its order and calls the rooms below. `runs` knows how its files look.

A stage whose order or inputs are missing or damaged raises QuorumError.
"""
