"""A client's data and its training: AdamW on the loss of stored prefixes."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pipeline.errors import QuorumError
from pipeline.federated.algorithm import Fit, Pull, Randomness, Trace
from pipeline.federated.head import backward_through_head
from pipeline.federated.objectives.distillation import Distillation
from pipeline.federated.token_figures import Hidden, Load, token_cross_entropy, token_entropies
from pipeline.model.adapter import Adapter, on_device
from pipeline.model.backbone import Prefix, targets_of
from pipeline.model.entry import Entry

BETAS = (0.9, 0.999)
EPSILON = 1e-8
MOMENTS = ("exp_avg", "exp_avg_sq", "step")


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
        marks: for each training example which of its target tokens are marked, boolean (T_i,); see `Algorithm.marks`.
    """

    def __init__(
        self,
        train: Sequence[Entry],
        val: Sequence[Entry],
        backbone: Hidden,
        load: Load,
        training: LocalTraining,
        advance: Callable[[int], None] = lambda n: None,
        marks: Sequence[Tensor] | None = None,
    ) -> None:
        self.train, self.val = tuple(train), tuple(val)
        self._backbone, self._load, self._training, self._advance = backbone, load, training, advance
        self._marks = marks

    @property
    def examples(self) -> int:
        return len(self.train)

    def fit(
        self,
        start: Adapter,
        rng: Randomness,
        teacher: Adapter | None = None,
        how: Distillation | None = None,
        *,
        pull: Pull | None = None,
        moments: Adapter | None = None,
    ) -> Fit:
        """Train a copy of `start`.

        Raises:
            QuorumError: the loss is not finite.
        """
        began = time.monotonic()
        # Sorted: the norm that clips sums over tensors, and its last bit depends on their order.
        device = self._backbone.device
        student = {name: start[name].detach().to(device, copy=True).requires_grad_() for name in sorted(start)}
        teacher = None if teacher is None else on_device(teacher, device)
        how = self._with_threshold(teacher, how)
        torch.manual_seed(_number(f"{rng.seed}/{rng.client}/{rng.round}/dropout"))
        optimizer = _adamw(student, self._training)
        restore_moments(optimizer, student, moments or {})
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
                hidden = self._backbone.target_hidden(prefixes, student)
                guide = None if teacher is None else self._guide(teacher, chosen, prefixes, guides)
                marks = self._marks_of(chosen, how, rng, steps)
                optimizer.zero_grad(set_to_none=True)
                losses = backward_through_head(self._backbone.head, hidden, targets_of(prefixes), guide, how, marks)
                total = float(losses.loss.sum())
                _check_finite("loss", total, rng, steps)
                _add_to_gradients(student, pull)
                norm = torch.nn.utils.clip_grad_norm_(student.values(), self._training.clip_norm)
                _check_finite("norm of the gradient", float(norm), rng, steps)
                optimizer.step()
                steps += 1
                loss_sum += total
                entropy_sum += float(losses.entropy.sum())
                _note(distilled[epoch], losses.distilled.cpu(), chosen, offsets)
                self._advance(len(chosen))
        tokens = offsets[-1] * self._training.local_epochs
        tau = math.nan if how is None else how.tau
        trace = Trace(loss_sum / tokens, entropy_sum / tokens, distilled, steps, time.monotonic() - began, tau)
        kept = {} if moments is None else moments_of(optimizer, student)
        return Fit({name: tensor.detach().cpu() for name, tensor in student.items()}, trace, kept)

    def gradient(self, adapter: Adapter) -> Adapter:
        """The gradient of the mean cross-entropy of all training tokens, as much memory as one batch takes."""
        leaves = {name: adapter[name].detach().to(self._backbone.device, copy=True) for name in sorted(adapter)}
        total = {name: torch.zeros_like(tensor) for name, tensor in leaves.items()}
        tokens = sum(entry.tokens for entry in self.train)
        for tensor in leaves.values():
            tensor.requires_grad_()
        for at in range(0, len(self.train), self._training.batch_size):
            entries = self.train[at : at + self._training.batch_size]
            prefixes = self._load([entry.key for entry in entries])
            hidden = self._backbone.target_hidden(prefixes, leaves)
            backward_through_head(self._backbone.head, hidden, targets_of(prefixes), None, None)
            share = sum(entry.tokens for entry in entries) / tokens
            for name, tensor in leaves.items():
                if tensor.grad is not None:
                    total[name] += share * tensor.grad
                tensor.grad = None
        return {name: tensor.cpu() for name, tensor in total.items()}

    def _with_threshold(self, teacher: Adapter | None, how: Distillation | None) -> Distillation | None:
        """τ in nats, where it is asked for as a quantile of the teacher's entropies on the training tokens."""
        if teacher is None or how is None or how.quantile is None:
            return how
        entropies = token_entropies(self._backbone, self._load, self.train, teacher)
        return replace(how, tau=float(torch.cat(entropies).double().quantile(how.quantile)))

    def _marks_of(self, chosen: Sequence[int], how: Distillation | None, rng: Randomness, step: int) -> Tensor | None:
        """What the tokens of a batch are selected by, besides the teacher's entropy."""
        if how is None or how.select in ("entropy", "inverse"):
            return None
        if how.select == "random":
            name = f"{rng.seed}/{rng.client}/{rng.round}/draw/{step}"
            tokens = sum(self.train[i].tokens for i in chosen)
            return torch.rand(tokens, generator=_generator(name)).to(self._backbone.device)
        if self._marks is None:
            raise ValueError("select: marked, but the client's tokens have no marks")
        return torch.cat([self._marks[i] for i in chosen]).to(self._backbone.device)

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


def batch_order(rng: Randomness, epoch: int, count: int) -> list[int]:
    """A permutation of the examples that depends on (seed, client, round, epoch) alone."""
    name = f"{rng.seed}/{rng.client}/{rng.round}/{epoch}"
    return torch.randperm(count, generator=_generator(name)).tolist()


def _generator(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(_number(name))


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")


def _check_finite(what: str, value: float, rng: Randomness, steps: int) -> None:
    if not math.isfinite(value):
        raise QuorumError(
            f"round {rng.round}, client {rng.client}, step {steps + 1}: the {what} is {value}; lower learning_rate and "
            "run again, which begins anew"
        )


def _adamw(student: Adapter, training: LocalTraining) -> torch.optim.AdamW:
    """AdamW with no weight decay on LayerNorm."""
    norms = [tensor for name, tensor in student.items() if ".norm." in name]
    matrices = [tensor for name, tensor in student.items() if ".norm." not in name]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=BETAS, eps=EPSILON)


def moments_of(optimizer: torch.optim.Optimizer, student: Adapter) -> Adapter:
    """AdamW's moments and step counts, by tensor name."""
    return {
        f"{kind}.{name}": optimizer.state[tensor][kind].detach().cpu().clone()
        for name, tensor in student.items()
        for kind in MOMENTS
    }


def restore_moments(optimizer: torch.optim.Optimizer, student: Adapter, moments: Adapter) -> None:
    """Put back what `moments_of` took; nothing where there is nothing."""
    if not moments:
        return
    for name, tensor in student.items():
        found = {kind: moments[f"{kind}.{name}"].clone() for kind in MOMENTS}
        optimizer.state[tensor] = {k: t if k == "step" else t.to(tensor.device) for k, t in found.items()}


def _add_to_gradients(student: Adapter, pull: Pull | None) -> None:
    if pull is None:
        return
    with torch.no_grad():
        for name, term in pull(student).items():
            gradient = student[name].grad
            if gradient is not None:
                gradient.add_(term)


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
