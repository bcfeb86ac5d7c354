"""The step of AdaFedSelectKD written the obvious way: a full forward, adapters by hooks, one backward pass.

transformers' own model reads source and target, adapters sit on its top layers by hooks: once without gradient for the
teacher, once for the student.
"""

import atexit
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from benchmarks.eq8 import token_losses
from pipeline.federated.objectives.distillation import Distillation
from pipeline.model.adapter import Adapt, Adapter, adapting, apply_adapter, attached
from pipeline.model.backbone import Rendered


def adapting_from(start: int, adapter: Adapter) -> Adapt:
    """The positions from `start` on, and no work on the others."""

    def adapt(layer: int, hidden: torch.Tensor) -> torch.Tensor:
        adapted = apply_adapter(adapter, layer, hidden[:, start:], post_norm=False)
        return torch.cat([hidden[:, :start], adapted], dim=1)

    return adapt


def plain_logits(model: Any, rendered: list[Rendered], *, compiled: bool) -> Callable[[Adapter], torch.Tensor]:
    """Full forward of equal-length sources and targets in one batch: adapter -> logits of the targets.

    Hooks are put on once, before compilation, and read the adapter in use: those of a later step would not be seen.
    """
    used: Adapter = {}
    inputs: dict[str, Any]
    targets = torch.tensor([r.target for r in rendered], device=model.device)
    if model.config.is_encoder_decoder:
        layers, adapt = model.get_decoder().layers, adapting(used, post_norm=True)
        inputs = {"input_ids": torch.tensor([r.source for r in rendered], device=model.device), "labels": targets}
    else:
        ids = torch.tensor([r.source + r.target[:-1] for r in rendered], device=model.device)
        start = len(rendered[0].source) - 1
        layers, adapt = model.model.layers, adapting_from(start, used)
        inputs = {"input_ids": ids, "logits_to_keep": ids.shape[1] - start}
    hooks = ExitStack()
    hooks.enter_context(attached(layers, adapt))
    atexit.register(hooks.close)
    run = torch.compile(model) if compiled else model

    def logits(adapter: Adapter) -> torch.Tensor:
        used.clear()
        used.update(adapter)
        found: torch.Tensor = run(**inputs, use_cache=False).logits
        return found

    return logits


def plainly(
    logits: Callable[[Adapter], torch.Tensor],
    targets: torch.Tensor,
    student: Adapter,
    teacher: Adapter,
    how: Distillation,
) -> float:
    """Teacher without gradient, student with it, the loss on full logits, one backward pass."""
    with torch.no_grad():
        guide = logits(teacher)
    loss = token_losses(logits(student).flatten(0, 1), guide.flatten(0, 1), targets.flatten(), how).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach())
