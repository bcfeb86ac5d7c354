"""A client's optimizer: AdamW, and the moments that may outlive a round."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pipeline.model.adapter import Adapter

BETAS = (0.9, 0.999)
EPSILON = 1e-8
MOMENTS = ("exp_avg", "exp_avg_sq", "step")


@dataclass(frozen=True)
class LocalTraining:
    """The knobs of a client's training; the learning rate is constant, without warm-up."""

    learning_rate: float
    weight_decay: float
    batch_size: int
    local_epochs: int
    clip_norm: float


def adamw(student: Adapter, training: LocalTraining) -> torch.optim.AdamW:
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
