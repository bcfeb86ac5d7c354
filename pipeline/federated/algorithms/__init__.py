"""One file an algorithm."""
