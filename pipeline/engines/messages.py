"""The messages between a server and an organisation: a complete list of what may leave the organisation.

A message is a JSON header and a body of tensors in the safetensors format, which may be empty. The records below are
closed: no other field leaves an organisation, and no figure that the training's objective and algorithm do not declare
(see `Algorithm.declared`).
"""

import hashlib
from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from pipeline.errors import QuorumError
from pipeline.workspace.record import Record, first_problem

JOB = r"^\w+(-\w+)?$"
"""A training's name: the hash of its order, and the hash of the participants and their data."""
RequestKind = Literal["hello", "join", "train", "score", "finish"]
"""Exchange facts; join with this adapter; train; score the server's model; end the training and test."""

ERRORS = {
    "another_training": "works for another training; start its node with this order",
    "an_earlier_round": "is in a later round, and no longer has this answer; start the training over",
    "another_content": "has answered this round for another model; start the training over",
    "another_server": "has another server's model of the round before; start the training over",
    "not_finite": "has a loss or a gradient that is not finite; lower learning_rate",
    "disk": "cannot write to its disk; its operator must free space",
    "damaged": "has a damaged file; its operator's log names it",
    "undeclared": "has a figure that neither its objective nor its algorithm declares; declare it there",
    "failed": "failed; its operator's log says why",
}
"""An error's code -> what a server reports of it. The error's own text stays in the organisation's log."""


class Facts(Record):
    """An organisation's facts except its texts. A server refuses a node whose facts in `COMPARED` differ from its own.

    Attributes:
        code: a hash of the code that trains.
        order: a hash of the training's order.
        backbone: a hash of the frozen weights.
        packages: the versions of the packages that results depend on.
        precision: the number format of the frozen layers.
        threads: the number of threads that torch uses.
        weight: the number of examples that each one represents in an average.
        train, val, test: the numbers of examples.
        data: a hash of the examples, as a record of what was trained on; empty for a server.
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
    """The header of a server's request.

    Attributes:
        nonce: identifies the request; the reply repeats it.
        began: a hash of the server's model at the start of the round.
        unknown: whether to compute the validation loss of that model, too.
    """

    kind: RequestKind
    job: str = Field(pattern=JOB)
    round: int = Field(ge=0)
    nonce: str
    began: str = ""
    unknown: bool = False


class Reply(Record):
    """The header of an organisation's reply: the numbers of one round, or an error's code.

    Attributes:
        kind: as in the request, like `job`, `round` and `nonce`.
        error: the error's code; None if there is no error.
        examples: the client's weight in averages.
        loss: the mean training loss in nats per token.
        figures: declared means over all tokens, by name, in a reply to `train`.
        local: the validation loss of the client's own model, in nats per token.
        server: the validation loss of the server's model.
        began: the validation loss of the server's model at the start of the round.
        facts: the organisation's facts, in a reply to `hello`.
        scores: means over the test set by metric, in a reply to `finish`.
    """

    kind: RequestKind
    job: str
    round: int
    nonce: str
    error: str | None = Field(default=None, pattern=f"^({'|'.join(ERRORS)})$")
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


Header = TypeVar("Header", Request, Reply)


def parsed(kind: type[Header], text: str) -> Header:
    """Parse a header. Raises QuorumError if the text is not a header of this kind."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        found = first_problem(error)
        raise QuorumError(f"message: not a {kind.__name__}: {found}; both ends need one version") from None


def implausible(reply: Reply, examples: int) -> str | None:
    """What is implausible about a reply's numbers, given its client's number of examples; None if nothing is."""
    if reply.kind != "train" and reply.figures:
        return "reports figures, and trained nothing"
    if reply.kind == "score" and reply.server is None:
        return "reports no loss of the server's model"
    if reply.kind == "train" and reply.examples != examples:
        return f"reports {reply.examples} examples, and had {examples} when the training began"
    if reply.kind == "train" and reply.steps < 1:
        return "reports no optimizer steps"
    return None


def digest(body: bytes) -> str:
    """The sha256 of a body, in hexadecimal."""
    return hashlib.sha256(body).hexdigest()
