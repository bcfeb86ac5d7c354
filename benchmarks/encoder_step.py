"""A training step above a cut encoder: from what is stored, against the same kernels without a store.

MiniLM, 64 tokens a text, eight texts a step, cross-entropy over 20 labels. The other side runs the frozen part in every
step, in one padded batch and without gradients, and then the very same step. Not in it: clipping and the optimizer.
"""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.comparison import OURS, THEIRS, Row, interleaved
from pipeline.federated.head import backward_through_head
from pipeline.federated.objectives.cross_entropy import CROSS_ENTROPY
from pipeline.model.adapter import Adapter
from pipeline.model.backbone import Prefix, Rendered, targets_of
from pipeline.model.encoder import Encoder
from pipeline.model.encoder_loading import load_encoder
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.obtain import obtain
from pipeline.model.presets import OFFLINE_ENCODER
from pipeline.model.store import PrefixStore
from pipeline.tasks.classify import Classify
from pipeline.tasks.encoded import EncoderWithHead

TEXTS, TOKENS, LABELS, STEPS = 8, 64, 20, 10
CUTS = {"e,0-2": ("three layers", 1.3), "e,0-4": ("one layer", 2.5), "e,0-5": ("the head alone", 50.0)}
"""Frozen part -> what trains, and the aim."""
TASK = Classify()


def rows(repeats: int) -> list[Row]:
    with TemporaryDirectory() as folder:
        obtain(OFFLINE_ENCODER, Path(folder) / "backbone", Path(folder))
        return [_row(Path(folder), cut, repeats) for cut in CUTS]


def _row(folder: Path, cut: str, repeats: int) -> Row:
    what, promised = CUTS[cut]
    encoder = load_encoder(folder / "backbone", FrozenPart.parse(cut), torch.device("cpu"))
    sides = steps_of(encoder, folder / "store" / cut)
    seconds, found = interleaved(sides, repeats)
    apart = max(float((found[OURS][name] - found[THEIRS][name]).abs().max()) for name in found[OURS])
    if apart > 1e-4:
        raise RuntimeError(f"{what}: the two sides' gradients are {apart:.1e} apart")
    return Row(
        f"a step above a frozen encoder, {what} trained",
        "the same kernels without a store",
        ratio=seconds[THEIRS].median / seconds[OURS].median,
        promised=promised,
        ours=seconds[OURS],
        theirs=seconds[THEIRS],
        details={"steps": STEPS, "texts": TEXTS, "tokens": TOKENS, "largest_difference": apart},
    )


def steps_of(encoder: Encoder, folder: Path) -> dict[str, Callable[[], Adapter]]:
    """Both sides: so many steps each; the gradients of the last."""
    draw = random.Random(1)
    batches = [[_text(draw, encoder) for _ in range(TEXTS)] for _ in range(STEPS)]
    store = PrefixStore(folder)
    keys = [[f"{step:02d}{place:02d}" for place in range(TEXTS)] for step in range(STEPS)]
    for names, batch in zip(keys, batches, strict=True):
        for name, prefix in zip(names, _frozen(encoder, batch), strict=True):
            store.put(name, prefix)
    loader = PrefixStore(folder, torch.device("cpu"), cache_bytes=1_000_000_000)
    classes = tuple(map(str, range(LABELS)))
    start = encoder.initial("layers", 0, 1) | TASK.initial(encoder, classes, 1)

    def run(load: Callable[[int], Sequence[Prefix]]) -> Adapter:
        leaves = {name: tensor.clone().requires_grad_() for name, tensor in start.items()}
        seen = EncoderWithHead(encoder, TASK)
        for step in range(STEPS):
            for tensor in leaves.values():
                tensor.grad = None
            prefixes = load(step)
            outputs = seen.target_hidden(prefixes, leaves)
            backward_through_head(seen.head, outputs, targets_of(prefixes), CROSS_ENTROPY)
        return {name: tensor.grad for name, tensor in leaves.items() if tensor.grad is not None}

    return {
        OURS: lambda: run(lambda step: loader.training(keys[step])),
        THEIRS: lambda: run(lambda step: _frozen(encoder, batches[step])),
    }


def _frozen(encoder: Encoder, batch: Sequence[Rendered]) -> list[Prefix]:
    whole = list(encoder.encode(batch))
    return whole if encoder.trained else [TASK.head_input(encoder, prefix) for prefix in whole]


def _text(draw: random.Random, encoder: Encoder) -> Rendered:
    """Random words: their time is that of any others."""
    first, last = encoder.tokenizer.cls_token_id, encoder.tokenizer.sep_token_id
    low, high = len(encoder.tokenizer) // 2, len(encoder.tokenizer)
    ids = (first, *(draw.randrange(low, high) for _ in range(TOKENS - 2)), last)
    return Rendered(ids, (draw.randrange(LABELS),), TOKENS, TOKENS)
