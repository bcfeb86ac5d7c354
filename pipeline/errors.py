"""The one error that a user is meant to see."""


class QuorumError(Exception):
    """Something outside the code is wrong: a file, a key, a machine.

    The message is one line that says what is wrong, where, and what to do.
    The command line prints it and exits with status 1; `PIPELINE_DEBUG=1` shows the traceback.
    """
