"""A planned run as it lies on disk: its examples, training, summaries, scores."""
