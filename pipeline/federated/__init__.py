"""Federated learning: the loop, one module an algorithm, the losses, and what travels."""
