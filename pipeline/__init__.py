"""Quorum: federated learning for meeting summarization, as a reproducible workflow."""
