"""The pages of experiments: planned runs and their results -> tables, figures and a page."""
