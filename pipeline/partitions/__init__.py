"""Ways to split examples over clients."""
