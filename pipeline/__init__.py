"""Quorum: federated learning for meeting summarization, as a reproducible workflow."""

from pathlib import Path


def summarize(
    meeting: str | Path,
    *,
    run: str,
    client: str,
    query: str | None = None,
    turns: str | None = None,
    parts: str = "auto",
) -> str:
    """The summary of a new meeting, as `python -m pipeline summarize` prints it, from the workspace that one is in.

    The first call loads the backbone; further ones find it loaded.

    Args:
        meeting: a file: .vtt, .srt, .sbv, .docx, .txt or QMSum's .json.
        run: a run of params.yaml, with or without its seed; `client`: whose adapter.
        query: what to summarize; None: the whole meeting, as `queries` in params.yaml says it.
        turns: use only these, counted from 1: `A-B`.
        parts: of a long meeting: `auto`, all of it in parts; `one`, the turns nearest to the query.

    Raises pipeline.errors.QuorumError if what was asked for is wrong or missing.
    """
    from pipeline.runs.summarize import summarize_file
    from pipeline.workspace.quiet import silence

    silence()
    return summarize_file(Path(meeting), run=run, client=client, query=query, turns=turns, parts=parts)
