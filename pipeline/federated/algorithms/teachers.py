"""Who teaches: the server's adapter, as in Feng et al., Algorithm 1, or one of three controls at equal budget.

`initial`, the adapter that everyone began with; `own`, the client's of its last round; `others`, the mean of the other
clients': the server's average less the client's own part:

    (w − p_i w_i) / (1 − p_i)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import torch

from pipeline.federated.algorithm import ClientState, Context, Sent, ServerState, ServerUpdate, Update
from pipeline.model.adapter import Adapter

Teacher = Literal["server", "initial", "own", "others"]
TOTAL = "examples_of_all"
"""Where a server's memory keeps how many examples stand behind its adapter."""
INITIAL = "initial."
"""Under names that begin so a client remembers the initial adapter."""


def teacher_of(teacher: Teacher, sent: Sent, state: ClientState, examples: int) -> Adapter:
    """The adapter that a client with so many examples learns from in a round."""
    if teacher == "own":
        return state.adapter
    if teacher == "initial":
        return initial_of(sent, state)
    if teacher == "others":
        return others_mean(sent.adapter, state.adapter, examples, sent.memory.get(TOTAL))
    return sent.adapter


def initial_of(sent: Sent, state: ClientState) -> Adapter:
    """The adapter that everyone began with: what the server sends in a client's first round, remembered after it."""
    return {name: state.memory.get(INITIAL + name, tensor) for name, tensor in sent.adapter.items()}


def remembered(teacher: Teacher, sent: Sent, state: ClientState) -> Adapter:
    """What a client keeps for its next teachers."""
    if teacher != "initial":
        return {}
    return {INITIAL + name: tensor for name, tensor in initial_of(sent, state).items()}


def others_mean(server: Adapter, own: Adapter, examples: int, total: torch.Tensor | None) -> Adapter:
    """(w − p_i w_i) / (1 − p_i): the server's average with the client's own part taken out of it again.

    Before the first round, and for a client that is alone, there are no others: the server's adapter.
    """
    share = 0.0 if total is None else examples / int(total)
    if not 0 < share < 1:
        return server
    return {name: (w - share * own[name]) / (1 - share) for name, w in server.items()}


def with_total(server_update: ServerUpdate) -> ServerUpdate:
    """A server that also remembers how many examples are behind its adapter."""

    def remembering(state: ServerState, updates: Iterable[Update], context: Context) -> ServerState:
        total = 0

        def counted() -> Iterator[Update]:
            nonlocal total
            for update in updates:
                total += update.examples
                yield update

        adapter = server_update(state, counted(), context).adapter
        return ServerState(adapter, {TOTAL: torch.tensor(total)})

    return remembering


def of_all(state: ServerState) -> Sent:
    """What the server sends: its adapter, and how many examples are behind it."""
    return Sent(state.adapter, state.memory)
