"""Reading a folder of weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers.utils import logging

from pipeline.errors import QuorumError


@contextmanager
def reading_weights(folder: Path, remedy: str) -> Iterator[None]:
    """Let transformers read a folder, without its messages.

    Raises:
        QuorumError: the folder is damaged; `remedy` is the end of the message.
    """
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    except Exception as error:  # transformers passes on any error of its readers
        reason = " ".join(str(error).split())[:160]
        raise QuorumError(f"{folder}: damaged backbone ({reason}); {remedy}") from error
