"""The choice of a teacher: the server's adapter (Feng et al., Algorithm 1), or one of three controls.

`initial` is the first adapter of the training; `own` is the client's own of its last round; `others` is the mean of the
other clients' adapters, the server's average without the client's own part:

    (w − p_i w_i) / (1 − p_i)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

import torch

from pipeline.federated.algorithm import ClientState, Context, Sent, ServerState, ServerUpdate, Update
from pipeline.model.adapter import Adapter

Teacher = Literal["server", "initial", "own", "others"]
"""Which adapter teaches."""
TOTAL = "examples_of_all"
"""The tensor in a server's memory with the number of examples in its average; also used by SCAFFOLD."""
INITIAL = "initial."
"""The prefix of the initial adapter's tensors in a client's memory."""


def teacher_of(teacher: Teacher, sent: Sent, state: ClientState, examples: int) -> Adapter:
    """The adapter from which a client with this number of examples distils in a round."""
    if teacher == "own":
        return state.adapter
    if teacher == "initial":
        return initial_of(sent, state)
    if teacher == "others":
        return others_mean(sent.adapter, state.adapter, examples, sent.memory.get(TOTAL))
    return sent.adapter


def initial_of(sent: Sent, state: ClientState) -> Adapter:
    """The first adapter of the training, which the server sends in a client's first round and the client stores."""
    return {name: state.memory.get(INITIAL + name, tensor) for name, tensor in sent.adapter.items()}


def teacher_memory(teacher: Teacher, sent: Sent, state: ClientState) -> Adapter:
    """What a client stores for its next teachers."""
    if teacher != "initial":
        return {}
    return {INITIAL + name: tensor for name, tensor in initial_of(sent, state).items()}


def others_mean(server: Adapter, own: Adapter, examples: int, total: torch.Tensor | None) -> Adapter:
    """(w − p_i w_i) / (1 − p_i): the server's average without the client's own part.

    Before the first round, and for a single client, there are no others, and the result is the server's adapter.
    """
    share = 0.0 if total is None else examples / int(total)
    if not 0 < share < 1:
        return server
    return {name: (w - share * own[name]) / (1 - share) for name, w in server.items()}


def counting_examples(server_update: ServerUpdate) -> ServerUpdate:
    """The same server's part of a round, which also stores the number of examples in the average."""

    def counting(state: ServerState, updates: Iterable[Update], context: Context) -> ServerState:
        total = 0

        def counted() -> Iterator[Update]:
            nonlocal total
            for update in updates:
                total += update.examples
                yield update

        renewed = server_update(state, counted(), context)
        return replace(renewed, memory={TOTAL: torch.tensor(total)})

    return counting


def send_with_total(state: ServerState) -> Sent:
    """Send the server's adapter and the number of examples in its average."""
    return Sent(state.adapter, state.memory)
