"""Engines, which run a round's clients in this process or on other machines."""
