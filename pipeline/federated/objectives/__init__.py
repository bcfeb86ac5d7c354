"""One file an objective: what a client's training makes small."""
