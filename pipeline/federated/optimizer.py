"""A client's optimizer, AdamW or SGD, its schedule, and AdamW's moments, which a client may save for the next round."""

import math
import re
from dataclasses import dataclass

import torch
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

from pipeline.federated.knobs import ClientOptimizer, LossOver, Schedule
from pipeline.model.adapter import Adapter

BETAS = (0.9, 0.999)
LAST = "head.out."  # begins the names of a head's last layer
NORM = re.compile(r"\.norm\d*\.")
EPSILON = 1e-8
MOMENTS = ("exp_avg", "exp_avg_sq", "step")
WARM_UP = 0.06
"""The share of a linear schedule's steps in which the rate grows (FedNLP's code, `warmup_ratio`)."""


@dataclass(frozen=True)
class LocalTraining:
    """The hyperparameters of a client's training in one round.

    Attributes:
        learning_rate: the largest learning rate of the round.
        weight_decay: AdamW's decoupled weight decay, on matrices alone.
        batch_size: a last batch of fewer than 4 examples joins the one before.
        clip_norm: the largest norm of the gradient over all tensors.
        optimizer: `adamw`, or `sgd` without momentum and weight decay.
        schedule: `constant`, or `linear`: the rate grows for 6% of the round's steps, then falls to 0.
        trunk_rate: the learning rate of all but a head's last layer, over that layer's.
        loss_over: whether the sum of a batch's losses is divided by its items or by its examples.
        rounds: of the whole training.
    """

    learning_rate: float
    weight_decay: float
    batch_size: int
    local_epochs: int
    clip_norm: float
    optimizer: ClientOptimizer = "adamw"
    schedule: Schedule = "constant"
    trunk_rate: float = 1.0
    loss_over: LossOver = "items"
    rounds: int = 1


def optimizer_of(student: Adapter, training: LocalTraining) -> torch.optim.Optimizer:
    """AdamW without weight decay on norms and biases, or SGD without momentum and weight decay."""
    rates = {True: training.learning_rate, False: training.learning_rate * training.trunk_rate}
    if training.optimizer == "sgd":
        parts = {last: [own for name, own in student.items() if name.startswith(LAST) is last] for last in rates}
        return torch.optim.SGD([{"params": own, "lr": rates[last]} for last, own in parts.items() if own])
    groups = [
        {"params": own, "weight_decay": decay, "lr": rates[last]}
        for matrix, decay in ((True, training.weight_decay), (False, 0.0))
        for last in rates
        if (own := [t for name, t in student.items() if decays(name) is matrix and name.startswith(LAST) is last])
    ]
    # Fused: one pass over memory instead of ten, which took a third of a round when all of an encoder trains.
    return torch.optim.AdamW(groups, betas=BETAS, eps=EPSILON, fused=True)


def decays(name: str) -> bool:
    """Whether weight decay applies to a tensor of this name, that is, whether it is a matrix.

    >>> [decays(name) for name in ("layers.5.up", "layers.5.norm.weight", "layers.5.output.LayerNorm.weight")]
    [True, False, False]
    """
    return not (name.endswith("bias") or NORM.search(name) or "layernorm" in name.lower().replace("_", ""))


def schedule_of(optimizer: torch.optim.Optimizer, training: LocalTraining, steps: int) -> LRScheduler:
    """The learning rate of each of the `steps` of a round."""
    warm = math.ceil(WARM_UP * steps)

    def share(step: int) -> float:
        if training.schedule == "constant":
            return 1.0
        return step / warm if step < warm else (steps - step) / max(1.0, steps - warm)

    return LambdaLR(optimizer, share)


def moments_of(optimizer: torch.optim.Optimizer, student: Adapter) -> Adapter:
    """AdamW's moments and step counts, by kind and tensor's name, as in `exp_avg.layers.5.up`."""
    return {
        f"{kind}.{name}": optimizer.state[tensor][kind].detach().cpu().clone()
        for name, tensor in student.items()
        for kind in MOMENTS
    }


def restore_moments(optimizer: torch.optim.Optimizer, student: Adapter, moments: Adapter) -> None:
    """Restore the moments that `moments_of` returned; empty moments change nothing."""
    for name, tensor in student.items() if moments else ():
        optimizer.state[tensor] = {kind: moments[f"{kind}.{name}"].to(tensor.device, copy=True) for kind in MOMENTS}
