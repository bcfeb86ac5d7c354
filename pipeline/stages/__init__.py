"""One module a DVC stage: read declared dependencies, call the rooms below, write declared outs."""
