"""One training step of AdaFedSelectKD from the prefix store, against the same step written the obvious way.

The obvious way: transformers' own full forward of source and target, adapters as modules on the top layers by hooks,
once without gradient for the teacher and once for the student, full logits, one backward pass; the same numbers, which
is checked. Both sides run in this process, in turn. `python -m benchmarks.training_step [--repeats 3]`.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import transformers
from transformers import BartConfig, BartForConditionalGeneration

from pipeline import layout
from pipeline.federated.distillation import Distillation, selective_kd_loss
from pipeline.files import write_json
from pipeline.model.adapter import Adapter, adapting, attached, init_adapter
from pipeline.model.backbone import Backbone, Rendered, targets_of
from pipeline.model.head import backward_through_head
from pipeline.model.loading import load_backbone
from pipeline.model.obtain import ABOUT
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.tiny import tiny_tokenizer
from pipeline.progress import say

TAU, WEIGHT = 5.0, 0.2
OUT = layout.REPORTS / "benchmarks" / "training_step.json"


def batch(size: int, source: int, target: int, vocabulary: int, end: int) -> list[Rendered]:
    """Random tokens of full length: the store's advantage does not depend on what they say."""
    generator = torch.Generator().manual_seed(0)

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, min(vocabulary, 250), (count,), generator=generator).tolist())

    return [Rendered(ids(source), (*ids(target - 1), end), source, source) for _ in range(size)]


def from_store(backbone: Backbone, prefixes: list[Any], student: Adapter, teacher: Adapter) -> float:
    targets = targets_of(prefixes)
    hidden = backbone.target_hidden(prefixes, student)
    with torch.no_grad():
        guide = backbone.target_hidden(prefixes, teacher)
    losses = backward_through_head(backbone.head, hidden, targets, guide, Distillation(TAU, WEIGHT))
    return float(losses.loss.mean())


def plainly(backbone: Any, rendered: list[Rendered], student: Adapter, teacher: Adapter) -> float:
    """Full forward of equal-length sources and targets in one batch, twice; full logits."""
    model = backbone.model
    targets = torch.tensor([r.target for r in rendered])
    if backbone.family == "causal":
        ids = torch.tensor([r.source + r.target[:-1] for r in rendered])
        start = len(rendered[0].source) - 1
        where = (torch.arange(ids.shape[1])[None] >= start).expand(ids.shape[0], -1)

        def logits(adapter: Adapter) -> torch.Tensor:
            with attached(backbone._layers, adapting(adapter, post_norm=False, where=where)):
                return model(ids, use_cache=False).logits[:, start:]
    else:
        sources = torch.tensor([r.source for r in rendered])

        def logits(adapter: Adapter) -> torch.Tensor:
            with attached(backbone._layers, adapting(adapter, post_norm=True)):
                return model(sources, labels=targets, use_cache=False).logits

    with torch.no_grad():
        guide = logits(teacher)
    loss, _ = selective_kd_loss(logits(student), guide, targets, tau=TAU, weight=WEIGHT)
    loss.backward()
    return float(loss.detach())


def measure(
    name: str, backbone: Any, size: int, source: int, target: int, bottleneck: int, repeats: int
) -> dict[str, Any]:
    rendered = batch(size, source, target, backbone.vocabulary, backbone.end_token)
    began = time.perf_counter()
    prefixes = [backbone.encode(r, for_generation=False)[0] for r in rendered]
    encoding = time.perf_counter() - began
    teacher = init_adapter(backbone.adapted_layers, backbone.width, bottleneck, 1)
    gradients: dict[str, Adapter] = {}
    seconds: dict[str, list[float]] = {"store": [], "plain": []}
    losses: dict[str, float] = {}
    steps: dict[str, Callable[[Adapter], float]] = {
        "store": lambda student: from_store(backbone, prefixes, student, teacher),
        "plain": lambda student: plainly(backbone, rendered, student, teacher),
    }
    for repeat in range(repeats + 1):
        for side, step in steps.items():
            generator = torch.Generator().manual_seed(2)
            student = {
                k: (t + 0.01 * torch.randn(t.shape, generator=generator)).requires_grad_() for k, t in teacher.items()
            }
            began = time.perf_counter()
            losses[side] = step(student)
            if repeat:
                seconds[side].append(time.perf_counter() - began)
            gradients[side] = {k: t.grad for k, t in student.items() if t.grad is not None}
        say(f"{name}: " + ", ".join(f"{s} {v[-1]:.1f} s" for s, v in seconds.items() if v))
    difference = max(
        float((gradients["store"][k] - g).abs().max() / g.abs().max()) for k, g in gradients["plain"].items()
    )
    store, plain = (statistics.median(seconds[side]) for side in ("store", "plain"))
    return {
        "what": name,
        "batch": size,
        "source_tokens": source,
        "target_tokens": target,
        "store_seconds": round(store, 3),
        "plain_seconds": round(plain, 3),
        "times_faster": round(plain / store, 2),
        "store_spread": [round(min(seconds["store"]), 3), round(max(seconds["store"]), 3)],
        "plain_spread": [round(min(seconds["plain"]), 3), round(max(seconds["plain"]), 3)],
        "encoding_seconds_once": round(encoding, 2),
        "losses": losses,
        "largest_relative_gradient_difference": difference,
    }


def bart_base_shape() -> Seq2SeqBackbone:
    """BART-base's shape with random weights: 6 + 6 layers, d = 768, 50,265 words."""
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=50265,
        d_model=768,
        encoder_layers=6,
        decoder_layers=6,
        encoder_ffn_dim=3072,
        decoder_ffn_dim=3072,
        encoder_attention_heads=12,
        decoder_attention_heads=12,
        max_position_embeddings=1024,
        dropout=0.0,
    )
    return Seq2SeqBackbone("bart-base-shape", BartForConditionalGeneration(config), tiny_tokenizer(), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    if (layout.BACKBONE / ABOUT).is_file():
        embedded = load_backbone(layout.BACKBONE, 6, torch.device("cpu"))
        rows.append(measure(embedded.name, embedded, 16, 448, 80, 1152, arguments.repeats))
        del embedded
    else:
        say(f"{layout.BACKBONE} is not there: run `dvc repro backbone` first; its row is left out")
    rows.append(measure("bart-base shape", bart_base_shape(), 16, 512, 80, 1536, arguments.repeats))
    machine = {
        "cores": torch.get_num_threads(),
        "processor": platform.processor() or platform.machine(),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
    }
    write_json(OUT, {"machine": machine, "rows": rows})
    print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
