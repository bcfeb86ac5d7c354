"""What lies behind the scores: words, entropies, domains, how different clients are."""
