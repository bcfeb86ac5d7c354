"""The default query."""

from __future__ import annotations

WHOLE = "Summarize the whole meeting."
"""The query of a summary that has none."""
