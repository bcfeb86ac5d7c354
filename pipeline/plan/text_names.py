"""How runs on labelled texts are called."""

from __future__ import annotations


def is_called_after(run: str, setting: str) -> bool:
    """Whether a run's name says its setting, by which the table of the setting's methods finds it.

    >>> is_called_after("tc-fedavg", "tc"), is_called_after("tc-1-fedavg", "tc-1"), is_called_after("averaged", "tc")
    (True, True, False)
    """
    return run.startswith(f"{setting}-")
