"""Scores of an experiment on labelled texts -> its tables, figures and page."""
