"""Who runs a round's clients."""
