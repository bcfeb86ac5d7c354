"""The one error that a user is meant to see."""

import importlib
from typing import Any


class QuorumError(Exception):
    """Something outside the code is wrong: a file, a key, a machine.

    The message is one line that says what is wrong, where, and what to do.
    The command line prints it and exits with status 1; `PIPELINE_DEBUG=1` shows the traceback.

    `code` is all that is told of it where the message may not travel: an error of an organisation in a federation.
    """

    def __init__(self, message: str, code: str = "failed") -> None:
        super().__init__(message)
        self.code = code


def listed(module: str) -> Any:
    """A module that a table of ours names. Raises QuorumError if it, or one that it imports, is not there."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        where = f"pipeline/{'/'.join(module.split('.')[1:-1])}/__init__.py"
        raise QuorumError(f"{where}: names {module}: {error}; add the module, or correct the line") from None
