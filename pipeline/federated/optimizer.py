"""A client's optimizer: AdamW or plain SGD, and AdamW's moments, which may outlive a round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from pipeline.federated.knobs import ClientOptimizer, Schedule
from pipeline.model.adapter import Adapter

BETAS = (0.9, 0.999)
EPSILON = 1e-8
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
WARM_UP = 0.06
"""The share of a linear schedule's steps in which the rate grows; FedNLP's code has it."""


@dataclass(frozen=True)
class LocalTraining:
    """The knobs of a client's training.

    `schedule`: a constant rate without warm-up, or one that grows and then falls to 0 within every round.
    """

    learning_rate: float
    weight_decay: float
    batch_size: int
    local_epochs: int
    clip_norm: float
    optimizer: ClientOptimizer = "adamw"
    schedule: Schedule = "constant"


def optimizer_of(student: Adapter, training: LocalTraining) -> torch.optim.Optimizer:
    """AdamW with no weight decay on norms and biases; or SGD without momentum or decay."""
    if training.optimizer == "sgd":
        return torch.optim.SGD(student.values(), lr=training.learning_rate)
    plain = [tensor for name, tensor in student.items() if not decays(name)]
    matrices = [tensor for name, tensor in student.items() if decays(name)]
    groups = [{"params": matrices, "weight_decay": training.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    # One pass over memory in place of ten: of an encoder that trains whole, AdamW took a third of a round.
    return torch.optim.AdamW(groups, lr=training.learning_rate, betas=BETAS, eps=EPSILON, fused=True)


def decays(name: str) -> bool:
    """Whether a tensor of this name is a matrix, which weight decay is for.

    >>> [decays(name) for name in ("layers.5.up", "layers.5.norm.weight", "layers.5.output.LayerNorm.weight")]
    [True, False, False]
    """
    return not (name.endswith(".bias") or ".norm." in name or "layernorm" in name.lower().replace("_", ""))


def schedule_of(optimizer: torch.optim.Optimizer, training: LocalTraining, steps: int) -> LRScheduler:
    """The rate of each of a round's steps, as a share of the learning rate."""
    warm = math.ceil(WARM_UP * steps)

    def share(step: int) -> float:
        if training.schedule == "constant":
            return 1.0
        return step / warm if step < warm else (steps - step) / max(1.0, steps - warm)

    return LambdaLR(optimizer, share)


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
        optimizer.state[tensor] = {kind: moments[f"{kind}.{name}"].to(tensor.device, copy=True) for kind in MOMENTS}
