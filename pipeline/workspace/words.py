"""Words that a person may leave out."""

from __future__ import annotations

WHOLE = "Summarize the whole meeting."
"""What is asked where nothing is."""
