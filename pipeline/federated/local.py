"""A client's examples and its local training, on stored prefixes or on token ids."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import cast

import torch
from torch import Tensor

from pipeline.clients.batches import batch_sizes, batches
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Fit, Pull, Trace
from pipeline.federated.head import BackboneWithHead, BackboneWithStates, Load, backward_through_head, per_token
from pipeline.federated.history import check_names
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY, entropy
from pipeline.federated.objectives.objective import ItemLosses, Objective
from pipeline.federated.optimizer import LocalTraining, moments_of, optimizer_of, restore_moments, schedule_of
from pipeline.federated.randomness import Randomness, batch_order
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Prefix, targets_of
from pipeline.model.entry import Entry


def represented(count: int, weight: float) -> int:
    """The number of examples that `count` examples represent, each `weight`; at least 1, but of none 0."""
    return max(1, round(weight * count)) if count else 0


class LocalClientData:
    """The examples of one client; implements `ClientData` for algorithms and `ClientExamples` for objectives.

    Args:
        advance: called after each batch with its number of examples.
        weight: the number of examples that each one represents, if they are a sample of the client's.
    """

    def __init__(
        self,
        train: Sequence[Entry],
        val: Sequence[Entry],
        backbone: BackboneWithHead,
        load: Load,
        training: LocalTraining,
        advance: Callable[[int], None] = lambda n: None,
        weight: float = 1.0,
    ) -> None:
        self.train, self.val, self._weight = tuple(train), tuple(val), weight
        self._backbone, self._load, self._training, self._advance = backbone, load, training, advance

    @property
    def examples(self) -> int:
        return represented(len(self.train), self._weight)

    @property
    def epochs(self) -> int:
        return self._training.local_epochs

    @property
    def learning_rate(self) -> float:
        return self._training.learning_rate

    def fit(
        self,
        start: Adapter,
        rng: Randomness,
        objective: Objective = CROSS_ENTROPY,
        *,
        pull: Pull | None = None,
        moments: Adapter | None = None,
        epochs: Sequence[int] | None = None,
    ) -> Fit:
        """Train a copy of `start`; see `ClientData.fit`.

        Raises QuorumError if the loss or its gradient is not finite.
        """
        began, size = time.monotonic(), self._training.batch_size
        epochs = range(self.epochs) if epochs is None else epochs
        student = _trainable(start, self._device)
        objective = objective.begin(self)
        torch.manual_seed(rng.number("dropout"))
        optimizer = optimizer_of(student, self._training)
        restore_moments(optimizer, student, moments or {})
        # A window's states are as wide as the longest window of its batch, so another epoch cannot reuse them.
        reuse = len(epochs) > 1 and not getattr(self._backbone, "ragged", False)
        adapter = None if objective.teacher is None else on_device(objective.teacher, self._device)
        teacher = _Teacher(adapter, self._backbone, self.train, cached=reuse)
        schedule = schedule_of(optimizer, self._training, self.batches * len(epochs))
        record = _Record([0, *accumulate(entry.tokens for entry in self.train)], len(epochs))
        for row, epoch in enumerate(epochs):
            for chosen in batches(batch_order(rng, epoch, len(self.train)), size):
                step = record.steps + (epoch - row) * self.batches
                extras = on_device(objective.extras(self, rng, step, chosen), self._device)
                losses = self._backward(student, chosen, objective, teacher, extras)
                total = float(losses.loss.sum())
                _check_finite("loss", total, rng, record.steps)
                if pull is not None:
                    _add_to_gradients(student, pull)
                norm = torch.nn.utils.clip_grad_norm_(student.values(), self._training.clip_norm)
                _check_finite("norm of the gradient", float(norm), rng, record.steps)
                optimizer.step()
                schedule.step()
                record.add(row, chosen, total, losses)
                self._advance(len(chosen))
        trace = record.trace(objective.constants, time.monotonic() - began)
        moments = {} if moments is None else moments_of(optimizer, student)
        return Fit({name: tensor.detach().cpu() for name, tensor in student.items()}, trace, moments)

    def gradient(self, adapter: Adapter) -> Adapter:
        """The gradient of the mean cross-entropy of all training tokens, with the memory of one batch."""
        leaves = _trainable(adapter, self._device)
        total = {name: torch.zeros_like(tensor) for name, tensor in leaves.items()}
        whole = self._divisor(range(len(self.train)))
        for chosen in self._in_batches():
            self._backward(leaves, chosen, CROSS_ENTROPY)
            share = self._divisor(chosen) / whole
            for name, tensor in leaves.items():
                if tensor.grad is not None:
                    total[name] += share * tensor.grad
        return {name: tensor.cpu() for name, tensor in total.items()}

    @torch.no_grad()
    def states(self, adapter: Adapter) -> tuple[Tensor, Tensor, Tensor]:
        own, found, targets = on_device(adapter, self._device), [], []
        for chosen in self._in_batches():
            prefixes = self._load([self.train[i].key for i in chosen])
            found.append(self._with_states(prefixes, own).cpu())
            targets.append(targets_of(prefixes).cpu())
        both, classes = torch.cat(found), 2
        return both[:, :-classes], both[:, -classes:], torch.cat(targets)

    def step(self, adapter: Adapter, gradient: Tensor) -> Adapter:
        student = _trainable(adapter, self._device)
        optimizer = optimizer_of(student, self._training)
        at = 0
        for chosen in self._in_batches():
            states = self._with_states(self._load([self.train[i].key for i in chosen]), student)
            part = gradient[at : at + len(states)].to(self._device)
            torch.autograd.backward(states[:, : part.shape[1]], part)
            at += len(states)
        optimizer.step()
        return {name: tensor.detach().cpu() for name, tensor in student.items()}

    def _backward(
        self,
        student: Adapter,
        chosen: Sequence[int],
        objective: Objective,
        teacher: _Teacher | None = None,
        extras: Adapter | None = None,
    ) -> ItemLosses:
        """The losses of a batch; sets the gradient of their mean in the student's tensors."""
        prefixes = self._load([self.train[i].key for i in chosen])
        read = self._with_states if objective.states else self._backbone.target_hidden
        hidden = read(prefixes, student)
        at_teacher = None if teacher is None else teacher.hidden(chosen, prefixes)
        for tensor in student.values():
            tensor.grad = None
        divisor = self._divisor(chosen)
        found = backward_through_head(
            self._backbone.head, hidden, targets_of(prefixes), objective, at_teacher, extras, divisor
        )
        if objective.states:  # what a skipped batch does not train: moments and weight decay would move it, too
            for tensor in student.values():
                if tensor.grad is not None and not tensor.grad.any():
                    tensor.grad = None
        return found

    def _with_states(self, prefixes: Sequence[Prefix], adapter: Adapter) -> Tensor:
        """The states before the head's last layer, then the logits: (items, width + classes)."""
        return cast("BackboneWithStates", self._backbone).states_and_logits(prefixes, adapter)

    def _divisor(self, chosen: Sequence[int]) -> int:
        """What these examples' sum of losses is divided by: the number of their items, or their own."""
        return len(chosen) if self._training.loss_over == "examples" else self.items(chosen)

    def _in_batches(self) -> Iterator[range]:
        size = self._training.batch_size
        return (range(len(self.train))[at : at + size] for at in range(0, len(self.train), size))

    def validation_loss(self, adapter: Adapter) -> float:
        """Mean cross-entropy a target token of the validation examples, in nats."""
        losses = per_token(self._backbone, self._load, self.val, adapter)
        return float(torch.cat(losses).double().mean())

    # -- for objectives; see `ClientExamples` -------------------------------------------------------------------------

    def entropies(self, adapter: Adapter) -> Tensor:
        return torch.cat(per_token(self._backbone, self._load, self.train, adapter, entropy))

    def pieces(self, example: int) -> Sequence[str]:
        targets = self._load([self.train[example].key])[0]["targets"]
        return self._backbone.pieces(targets.tolist())

    def items(self, examples: Sequence[int]) -> int:
        return sum(self.train[i].tokens for i in examples)

    @property
    def batches(self) -> int:
        return len(batch_sizes(len(self.train), self._training.batch_size))

    def progress(self, number: int, step: int) -> float:
        epoch, batch = divmod(step, self.batches)
        rounds, epochs = self._training.rounds, self._training.local_epochs
        return number / rounds * (epoch + 1) / epochs * (batch + 1) / self.batches

    @property
    def _device(self) -> torch.device:
        return self._backbone.device


@dataclass
class _Teacher:
    """A round's frozen teacher; if `cached`, its hidden states of the first epoch are reused in later epochs."""

    adapter: Adapter | None
    backbone: BackboneWithHead
    train: Sequence[Entry]
    cached: bool
    known: dict[int, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def hidden(self, chosen: Sequence[int], prefixes: Sequence[Prefix]) -> Tensor | None:
        """The hidden states of a batch, (tokens, width); None if there is no teacher."""
        if self.adapter is None:
            return None
        if all(i in self.known for i in chosen):
            return torch.cat([self.known[i] for i in chosen])
        hidden = self.backbone.target_hidden(prefixes, self.adapter)
        if self.cached:
            parts = torch.split(hidden, [self.train[i].tokens for i in chosen])
            self.known.update(zip(chosen, parts, strict=True))
        return hidden


@dataclass
class _Record:
    """Sums of a training's losses and figures, and its masks, batch by batch.

    `offsets` are the indices of the examples' first items among the items of all examples, and at last their number.
    """

    offsets: Sequence[int]
    epochs: int
    steps: int = 0
    loss: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)
    masks: dict[str, Tensor] = field(default_factory=dict)

    def add(self, epoch: int, chosen: Sequence[int], loss: float, losses: ItemLosses) -> None:
        self.steps += 1
        self.loss += loss
        for name, values in losses.figures.items():
            self.figures[name] = self.figures.get(name, 0.0) + float(values.sum())
        places = [slice(self.offsets[i], self.offsets[i + 1]) for i in chosen]
        for name, values in losses.masks.items():
            rows = self.masks.setdefault(name, torch.zeros(self.epochs, self.offsets[-1], dtype=torch.bool))
            parts = torch.split(values.cpu(), [place.stop - place.start for place in places])
            for place, part in zip(places, parts, strict=True):
                rows[epoch, place] = part

    def trace(self, constants: Mapping[str, float], seconds: float) -> Trace:
        items = self.offsets[-1] * self.epochs
        means = {name: total / items for name, total in self.figures.items()}
        shares = {f"share_{name}": float(rows.float().mean()) for name, rows in self.masks.items()}
        check_names([*shares, *means, *constants], self.masks)
        return Trace(self.loss / items, self.steps, seconds, {**shares, **means, **constants}, self.masks)


def _trainable(adapter: Adapter, device: torch.device) -> Adapter:
    """A copy with gradients, sorted by name: the last bit of the norm for clipping depends on the order of its sum."""
    return {name: adapter[name].detach().to(device, copy=True).requires_grad_() for name in sorted(adapter)}


def _check_finite(what: str, value: float, rng: Randomness, steps: int) -> None:
    if not math.isfinite(value):
        raise QuorumError(
            f"round {rng.round}, client {rng.client}, step {steps + 1}: the {what} is {value}; lower learning_rate and "
            "run again, which starts over",
            code="not_finite",
        )


@torch.no_grad()
def _add_to_gradients(student: Adapter, pull: Pull) -> None:
    for name, term in pull(student).items():
        if (gradient := student[name].grad) is not None:
            gradient.add_(term)
