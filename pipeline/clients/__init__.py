"""Records -> clients: who holds which examples."""
