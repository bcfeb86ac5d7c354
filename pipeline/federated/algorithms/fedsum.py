"""FedSum: federated extractive summarization with skipped batches, prototypes and perturbed heads.

Ma et al., "FedSum: Data-Efficient Federated Learning under Data Scarcity Scenario for Text Summarization",
Algorithms 1 and 2. θ are the layers of `tasks.extractor`, ω its last one. In round t, for the clients C that take part:

    client i:  train w with L_data, unless a normal batch is skipped, and L_pm          Eq. 2, 6, 7
               P_i ← the mean states of its units, by label                             Eq. 3
               one step of θ against L_po                                               Eq. 5
    server:    w ← Σ p_i w_i     P̄ ← Σ p_i P_i     (Q̄, ε̄) ← Σ p_i (mean Q_i, mean ε_i)    Eq. 2, 4
               ω̃_i ← ω_i with a share γ of its weights set to 0; it sends these, and each one's portrait P_i

with p_i = n_i / Σ_C n_j. A client weighs the head of p by ζ_p = tanh ‖P_i − P_p‖: the distance table of the paper,
which each client computes for itself. `mode: as_released` follows the authors' code (Li-Evan/FedSum @ 80d5f46), where
the limits are never reset, L_pm has its own pass, and L_po has no gradient; its draw is `by_examples`. In both modes a
newcomer's portrait is made of all its units at the received w, where the code makes all first portraits from one batch.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import (
    Algorithm,
    ClientData,
    ClientResult,
    ClientState,
    Context,
    Form,
    Knobs,
    Sent,
    ServerState,
    Trace,
    Update,
    WeightedMean,
    combined,
)
from pipeline.federated.algorithms.fedavg import TOTAL
from pipeline.federated.figures import Bounds
from pipeline.federated.objectives.extraction import FIRST_KEY, Extraction, Heads
from pipeline.federated.objectives.prototypes import class_means, prototype_gradient
from pipeline.federated.randomness import Randomness
from pipeline.model.adapter import Adapter

LIMITS, PROTOTYPES, PORTRAITS, HEADS = "limits", "prototypes", "portraits", "heads"
OMEGA = ("head.out.weight", "head.out.bias")
LIMIT = Bounds(-1e-3, 1e4)  # a column, or a document's sum of losses in nats, which may round below 0


class Hyperparameters(Knobs):
    """FedSum's parts, each of which can be switched off, and its two hyperparameters."""

    mode: Literal["as_published", "as_released"] = Field(
        default="as_published", description="The paper's algorithm, or that of the authors' code."
    )
    key_share: float = Field(
        default=0.5, gt=0, lt=1, description="λ: the share of key units that ends a prefix; 0.5 in the paper."
    )
    mask_rate: float = Field(
        default=0.3, ge=0, le=1, description="γ: the share of a head's weights that is set to 0; 0.3 in the code."
    )
    skip: bool = Field(default=True, description="Whether normal batches may be skipped.")
    prototypes: bool = Field(default=True, description="Whether L_po trains.")
    perturb: bool = Field(default=True, description="Whether L_pm trains.")
    distance: Literal["tanh", "scaled", "one"] = Field(
        default="tanh",
        description="ζ: of the distance, of it over the square root of its width, or 1 for all heads but its own.",
    )
    weights: Literal["round", "all"] = Field(
        default="round",
        description="Whether the limits' p_i (Eq. 2) is of the clients of a round, or, as the paper writes, of all.",
    )

    @model_validator(mode="after")
    def _check_used(self) -> Self:
        """Refuse a knob of a part that is off: it would change nothing."""
        published = self.mode == "as_published"
        works = {"mask_rate": self.perturb, "distance": self.perturb, "prototypes": published}
        works["weights"] = self.skip and published
        for name in (name for name, has in works.items() if not has):
            if getattr(self, name) != type(self).model_fields[name].default:
                parts = f"mode: {self.mode}, skip: {self.skip} and perturb: {self.perturb}"
                raise ValueError(f"{name}: changes nothing with {parts}; remove it")
        return self


def init(initial: Adapter, examples: int) -> ServerState:
    """Begin with limits of 0, by which every batch of the first round is prime, and without prototypes."""
    none = torch.zeros(2, initial[OMEGA[0]].shape[1])
    return ServerState(initial, {LIMITS: torch.zeros(2), PROTOTYPES: none, TOTAL: torch.tensor(examples)})


def shares(state: ServerState) -> Sent:
    """Send w, the limits, and what the last round's clients gave: prototypes, portraits and masked heads."""
    return Sent(state.adapter, {name: own for name, own in state.memory.items() if name != TOTAL})


def build(hyper: Hyperparameters) -> Algorithm:
    """Algorithm 1 (server) and Algorithm 2 (client), with the parts that the hyperparameters switch on."""
    released = hyper.mode == "as_released"

    def client_update(sent: Sent, state: ClientState, data: ClientData, rng: Randomness) -> ClientResult:
        limits = (float(sent.memory[LIMITS][0]), float(sent.memory[LIMITS][1])) if hyper.skip else None
        heads = None
        if hyper.perturb and HEADS in sent.memory:
            returns = PORTRAITS in state.memory  # with its last portrait
            portrait = state.memory[PORTRAITS] if returns else _prototypes(*data.states(sent.adapter), rng.client)
            heads = Heads(sent.memory[HEADS], zeta(portrait, sent.memory[PORTRAITS], hyper.distance))
        if released:
            objective = Extraction(limits, share=hyper.key_share, released=True)
            adapter, trace = _released_training(sent.adapter, data, rng, objective, heads)
        else:
            adapter, trace, _ = data.fit(sent.adapter, rng, Extraction(limits, heads, share=hyper.key_share))
        found = data.states(adapter)
        prototypes = _prototypes(*found, rng.client)
        if hyper.prototypes and not released and HEADS in sent.memory:
            adapter = data.step(adapter, prototype_gradient(*found, sent.memory[PROTOTYPES])[1])
        measured = torch.tensor([trace.figures["key_column"], trace.figures["key_loss"]])
        update = Update(adapter, data.examples, trace.steps, {LIMITS: measured, PROTOTYPES: prototypes})
        return ClientState(adapter, {PORTRAITS: prototypes}), update, trace

    def server_update(state: ServerState, updates: Iterable[Update], context: Context) -> ServerState:
        mean, heads, portraits = WeightedMean(), list[Tensor](), list[Tensor]()
        for update in updates:
            mean.add(update.adapter | update.memory, update.examples)
            rng = Randomness(context.seed, f"head {len(heads)}", context.round)
            heads.append(masked(torch.cat([update.adapter[name].flatten() for name in OMEGA]), hyper.mask_rate, rng))
            portraits.append(update.memory[PROTOTYPES].flatten())
        average = mean.value()
        memory = {PROTOTYPES: average[PROTOTYPES], HEADS: torch.stack(heads), PORTRAITS: torch.stack(portraits)}
        share = mean.weight / int(state.memory[TOTAL]) if released or hyper.weights == "all" else 1.0
        memory[LIMITS] = share * average[LIMITS] + (state.memory[LIMITS] if released else 0.0)
        return ServerState({name: average[name] for name in state.adapter}, memory | {TOTAL: state.memory[TOTAL]})

    return Algorithm(
        client_update,
        server_update,
        evaluates="server",
        init=init,
        shares=shares,
        states=True,
        objective=Extraction(None),
        holds=lambda sent: {LIMITS: Form((2,), LIMIT), PROTOTYPES: Form(sent.memory[PROTOTYPES].shape)},
    )


def zeta(own: Tensor, portraits: Tensor, distance: str) -> Tensor:
    """ζ_p = tanh ‖SP_i − SP_p‖ (heads,) of a portrait and those of the last round's clients (heads, 2 width)."""
    apart: Tensor = (own.flatten() - portraits).norm(dim=1)
    if distance == "one":
        return torch.sign(apart)
    return torch.tanh(apart / portraits.shape[1] ** 0.5 if distance == "scaled" else apart)


def masked(head: Tensor, rate: float, rng: Randomness) -> Tensor:
    """A head with a share of its numbers set to 0, and not scaled up."""
    return head * (torch.rand(len(head), generator=rng.generator("mask")) >= rate)


def _released_training(
    start: Adapter, data: ClientData, rng: Randomness, objective: Extraction, heads: Heads | None
) -> tuple[Adapter, Trace]:
    """As released: after each epoch of the data loss one of L_pm, in another order (FS 341-383).

    The trace is that of the data loss, without masks.
    """
    adapter, traces = start, []
    for number in range(data.epochs):
        adapter, trace, _ = data.fit(adapter, rng, objective, epochs=[number])
        traces.append(trace)
        if heads is not None:
            alone = replace(objective, heads=heads, data=False, before=[FIRST_KEY])
            adapter, _, _ = data.fit(adapter, rng, alone, epochs=[data.epochs + number])
    return adapter, combined(traces)


def _prototypes(states: Tensor, _logits: Tensor, labels: Tensor, client: str) -> Tensor:
    """The mean states of a client's units, by label: P_c (2, width). Raises QuorumError if a label has no unit."""
    means, counts = class_means(states, labels)
    if not bool(counts.all()):
        where = "in" if counts[1] else "outside"
        raise QuorumError(
            f"client {client}: all its units are {where} extracts; give it a document with both, or set `least`"
        )
    return means
