"""The choice of a teacher: the server's adapter (Feng et al., Algorithm 1), or one of three controls.

`initial` is the first adapter of the training; `own` is the client's own of its last round; `others` is the mean of the
other clients' adapters, the server's average without the client's own part:

    (w − p_i w_i) / (1 − p_i)
"""

from __future__ import annotations

from typing import Literal

from pipeline.federated.algorithm import ClientState, Sent
from pipeline.federated.algorithms.fedavg import TOTAL
from pipeline.model.adapter import Adapter

Teacher = Literal["server", "initial", "own", "others"]
"""Which adapter teaches."""
INITIAL = "initial."
"""The prefix of the initial adapter's tensors in a client's memory."""


def teacher_of(teacher: Teacher, sent: Sent, state: ClientState, examples: int) -> Adapter:
    """The adapter from which a client with this number of examples distils in a round."""
    if teacher == "own":
        return state.adapter
    if teacher == "initial":
        return initial_of(sent, state)
    if teacher == "others" and TOTAL in sent.memory:
        return others_mean(sent.adapter, state.adapter, examples / int(sent.memory[TOTAL]))
    return sent.adapter


def initial_of(sent: Sent, state: ClientState) -> Adapter:
    """The first adapter of the training, which the server sends in a client's first round and the client stores."""
    return {name: state.memory.get(INITIAL + name, tensor) for name, tensor in sent.adapter.items()}


def others_mean(server: Adapter, own: Adapter, share: float) -> Adapter:
    """(w − p_i w_i) / (1 − p_i): the server's average without the client's own part.

    A client with all examples (p_i = 1), or with none, has no others, and the result is the server's adapter.
    """
    if not 0 < share < 1:
        return server
    return {name: (w - share * own[name]) / (1 - share) for name, w in server.items()}
