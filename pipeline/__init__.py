"""Quorum: federated learning for meeting summarization, as a reproducible workflow."""

from __future__ import annotations

from pathlib import Path

from pipeline.workspace.words import WHOLE


def summarize(meeting: str | Path, *, run: str, client: str, query: str = WHOLE, turns: str | None = None) -> str:
    """The summary of a new meeting, as `python -m pipeline summarize` prints it, from the workspace that one is in.

    The first call loads the backbone; further ones find it loaded.

    Args:
        meeting: a file: .vtt, .srt, .sbv, .docx, .txt or QMSum's .json.
        run: a run of params.yaml, with or without its seed; `client`: whose adapter.
        turns: use only these, counted from 1: `A-B`.

    Raises:
        pipeline.errors.QuorumError: what was asked for is wrong or missing.
    """
    from pipeline.runs.summarize import summarize_file
    from pipeline.workspace.quiet import silence

    silence()
    return summarize_file(Path(meeting), run=run, client=client, query=query, turns=turns)
