"""What a server and an organisation say to each other: the whole list, name by name.

A message is a header of JSON and a body of tensors in the safetensors format, which is empty where none travel. The
records below are closed: a field that is not theirs, and a figure that is not declared, never leaves an organisation.
"""

from __future__ import annotations

import hashlib
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from pipeline.errors import QuorumError
from pipeline.workspace.record import Record, first_problem

JOB = r"^\w+(-\w+)?$"
"""A training's name: its order's hash, and that of who takes part with which data."""
Kind = Literal["hello", "join", "train", "score", "finish"]
"""Who are you; here is the adapter that you come in with; train; judge the server's model; the training is over."""

FIGURES = frozenset(
    {"cross_entropy", "teacher_entropy", "tau", "share_distilled"}
)  # what objectives of this project name
"""The figures of a training that may travel: means over all of a client's tokens."""

ErrorCode = Literal[
    "another_training", "an_earlier_round", "another_content", "another_server", "not_finite", "disk", "damaged",
    "undeclared", "failed",
]  # fmt: skip

ERRORS: dict[ErrorCode, str] = {
    "another_training": "works for another training; start its node with this order",
    "an_earlier_round": "has gone on to a later round, and forgotten its answer; begin the training anew",
    "another_content": "was asked the same round before, with another model; begin the training anew",
    "another_server": "was told of another server's model in the round before; begin the training anew",
    "not_finite": "has a loss or a gradient that is not finite; lower learning_rate",
    "disk": "cannot write to its disk; its operator must free space",
    "damaged": "has a damaged file; its operator's log names it",
    "undeclared": "has a figure that is not on the list of those that may travel; see pipeline/engines/messages.py",
    "failed": "failed; its operator's log says why",
}
"""All that is told of an organisation's error: its own text stays in its log."""


class Facts(Record):
    """What an organisation is, beside its data: whatever differs from the server's is refused by name.

    `train`, `val` and `test`: how many examples there are of each; `weight`: how many one stands for in an average.
    `data`: a hash of them, so that it can be said later what was trained on; a server has none, and compares none.
    """

    code: str
    order: str
    backbone: str
    packages: dict[str, str]
    precision: str
    threads: int
    weight: float
    train: int
    val: int
    test: int
    data: str = ""


class Request(Record):
    """What the server asks. `nonce` names this one asking, and its answer repeats it.

    `began` is a hash of the model that the round began with, and `unknown` whether its loss is asked for, too.
    """

    kind: Kind
    job: str = Field(pattern=JOB)
    round: int = Field(ge=0)
    nonce: str
    began: str = ""
    unknown: bool = False


class Reply(Record):
    """What an organisation answers: the numbers of one round, or an error's code.

    `loss` and `figures` are of its training, in nats a token; `local`, `server` and `began` validation losses of its
    own model, of the server's, and of the one that the round began with. `scores`: means over its test set, by metric.
    """

    kind: Kind
    job: str
    round: int
    nonce: str
    error: ErrorCode | None = None
    examples: int = Field(default=0, ge=0)
    steps: int = Field(default=0, ge=0)
    seconds: float = 0.0
    loss: float = 0.0
    figures: dict[str, float] = Field(default_factory=dict)
    local: float | None = None
    server: float | None = None
    began: float | None = None
    facts: Facts | None = None
    scores: dict[str, float] = Field(default_factory=dict)


Header = TypeVar("Header", bound=BaseModel)


def parsed(kind: type[Header], text: str) -> Header:
    """
    Raises:
        QuorumError: the text is no such header.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise QuorumError(
            f"message: not a {kind.__name__}: {first_problem(error)}; both ends need one version"
        ) from None


def answers(reply: Reply, request: Request) -> bool:
    """Whether a reply is about what was asked."""
    return (reply.kind, reply.job, reply.round) == (request.kind, request.job, request.round)


def strange(reply: Reply, facts: Facts | None) -> str | None:
    """What of a reply's numbers no honest client tells; None where all is well.

    Args:
        facts: what the client said of itself at first.
    """
    if undeclared := sorted(set(reply.figures) - FIGURES):
        return f"tells {undeclared[0]!r}, which is no declared figure"
    if reply.kind == "score" and reply.server is None:
        return "tells no loss of the server's model"
    if reply.kind == "train" and facts is not None:
        known = round(facts.weight * facts.train)
        if reply.examples != known:
            return f"tells of {reply.examples} examples, and had {known} when the training began"
        if reply.steps < 1:
            return "tells of no optimizer step"
    return None


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
