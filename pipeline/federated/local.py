"""A client's data and its training: AdamW on the loss of stored prefixes."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Randomness, Trace
from pipeline.federated.distillation import Distillation
from pipeline.federated.head import backward_through_head, cross_entropy_through_head
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Backbone, Prefix, targets_of
from pipeline.model.entry import Entry

BETAS = (0.9, 0.999)
EPSILON = 1e-8
EVALUATION_BATCH = 16

Load = Callable[[Sequence[str]], list[Prefix]]


@dataclass(frozen=True)
class LocalTraining:
    """A client's optimizer; a fresh one each round, constant learning rate, no warm-up."""

    learning_rate: float
    weight_decay: float
    batch_size: int
    local_epochs: int
    clip_norm: float


class StoredClientData:
    """The examples of one client over the prefix store; see `ClientData`.

    Args:
        load: keys -> prefixes, on the device that trains.
    """

    def __init__(
        self,
        train: Sequence[Entry],
        val: Sequence[Entry],
        backbone: Backbone,
        load: Load,
        training: LocalTraining,
        advance: Callable[[int], None] = lambda n: None,
    ) -> None:
        self.train, self.val = tuple(train), tuple(val)
        self._backbone, self._load, self._training, self._advance = backbone, load, training, advance

    @property
    def examples(self) -> int:
        return len(self.train)

    def fit(
        self, start: Adapter, rng: Randomness, teacher: Adapter | None = None, how: Distillation | None = None
    ) -> tuple[Adapter, Trace]:
        """Train a copy of `start`.

        Raises:
            QuorumError: the loss is not finite.
        """
        began = time.monotonic()
        # Sorted: the norm that clips sums over tensors, and its last bit depends on their order.
        device = self._backbone.device
        student = {name: start[name].detach().to(device, copy=True).requires_grad_() for name in sorted(start)}
        teacher = None if teacher is None else on_device(teacher, device)
        optimizer = _adamw(student, self._training)
        offsets = _offsets(self.train)
        distilled = torch.zeros(self._training.local_epochs, offsets[-1], dtype=torch.bool)
        guides: dict[int, Tensor] = {}
        loss_sum = entropy_sum = 0.0
        steps = 0
        for epoch in range(self._training.local_epochs):
            order = batch_order(rng, epoch, len(self.train))
            for at in range(0, len(order), self._training.batch_size):
                chosen = order[at : at + self._training.batch_size]
                prefixes = self._load([self.train[i].key for i in chosen])
                targets = targets_of(prefixes)
                hidden = self._backbone.target_hidden(prefixes, student)
                guide = None if teacher is None else self._guide(teacher, chosen, prefixes, guides)
                optimizer.zero_grad(set_to_none=True)
                losses = backward_through_head(self._backbone.head, hidden, targets, guide, how)
                total = float(losses.loss.sum())
                _check_finite("loss", total, rng, steps)
                norm = torch.nn.utils.clip_grad_norm_(student.values(), self._training.clip_norm)
                _check_finite("norm of the gradient", float(norm), rng, steps)
                optimizer.step()
                steps += 1
                loss_sum += total
                entropy_sum += float(losses.entropy.sum())
                _note(distilled[epoch], losses.distilled.cpu(), chosen, offsets)
                self._advance(len(chosen))
        tokens = offsets[-1] * self._training.local_epochs
        trace = Trace(loss_sum / tokens, entropy_sum / tokens, distilled, steps, time.monotonic() - began)
        return {name: tensor.detach().cpu() for name, tensor in student.items()}, trace

    @torch.no_grad()
    def _guide(
        self, teacher: Adapter, chosen: Sequence[int], prefixes: Sequence[Prefix], known: dict[int, Tensor]
    ) -> Tensor:
        """The teacher's hidden states; it is frozen for the round, so later epochs find them in `known`."""
        if any(i not in known for i in chosen):
            hidden = self._backbone.target_hidden(prefixes, teacher)
            if self._training.local_epochs == 1:
                return hidden
            known.update(zip(chosen, torch.split(hidden, [self.train[i].tokens for i in chosen]), strict=True))
        return torch.cat([known[i] for i in chosen])

    def validation_loss(self, adapter: Adapter) -> float:
        """Mean cross-entropy a target token of the validation examples, in nats."""
        losses = token_cross_entropy(self._backbone, self._load, self.val, adapter)
        return float(torch.cat(losses).double().mean())


def token_cross_entropy(backbone: Backbone, load: Load, entries: Sequence[Entry], adapter: Adapter) -> list[Tensor]:
    """The loss of every target token, in nats, one tensor (T_i,) an example."""
    results: dict[int, Tensor] = {}
    adapter = on_device(adapter, backbone.device)
    by_length = sorted(range(len(entries)), key=lambda i: entries[i].tokens)
    for at in range(0, len(entries), EVALUATION_BATCH):
        chosen = by_length[at : at + EVALUATION_BATCH]
        prefixes = load([entries[i].key for i in chosen])
        with torch.no_grad():
            hidden = backbone.target_hidden(prefixes, adapter)
        losses = cross_entropy_through_head(backbone.head, hidden, targets_of(prefixes))
        results |= dict(zip(chosen, torch.split(losses.cpu(), [entries[i].tokens for i in chosen]), strict=True))
    return [results[i] for i in range(len(entries))]


def batch_order(rng: Randomness, epoch: int, count: int) -> list[int]:
    """A permutation of the examples that depends on (seed, client, round, epoch) alone."""
    name = f"{rng.seed}/{rng.client}/{rng.round}/{epoch}".encode()
    seed = int.from_bytes(hashlib.sha256(name).digest()[:7], "big")
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()


def _check_finite(what: str, value: float, rng: Randomness, steps: int) -> None:
    if not math.isfinite(value):
        raise QuorumError(
            f"round {rng.round}, client {rng.client}, step {steps + 1}: the {what} is {value}; the last good round is "
            "kept: lower learning_rate and run again"
        )


def _adamw(student: Adapter, training: LocalTraining) -> torch.optim.AdamW:
    """AdamW with no weight decay on LayerNorm."""
    norms = [tensor for name, tensor in student.items() if ".norm." in name]
    matrices = [tensor for name, tensor in student.items() if ".norm." not in name]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=BETAS, eps=EPSILON)


def _offsets(entries: Sequence[Entry]) -> list[int]:
    """Where each example's tokens begin when all are laid end to end, and the total last."""
    offsets = [0]
    for entry in entries:
        offsets.append(offsets[-1] + entry.tokens)
    return offsets


def _note(row: Tensor, distilled: Tensor, chosen: Sequence[int], offsets: Sequence[int]) -> None:
    """Write a batch's tokens to their places in the row of all training tokens."""
    at = 0
    for i in chosen:
        count = offsets[i + 1] - offsets[i]
        row[offsets[i] : offsets[i + 1]] = distilled[at : at + count]
        at += count
