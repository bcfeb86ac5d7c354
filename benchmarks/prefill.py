"""The prefill of one example, all that is frozen of it for training and decoding, against the model's own forward pass.

`model(**inputs)` of the same tokens is what a plain program would call; it computes logits at every position besides,
of which Quorum needs none.
"""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.backbones import NO_EMBEDDED, embedded, has_embedded
from benchmarks.comparison import OURS, Row, interleaved
from benchmarks.training_step import SMOLLM, TARGET, batch
from pipeline.model.frozen_linear import DTYPES
from pipeline.model.precision import Precision, resolve

SOURCE = 1024
WHAT = f"prefill of an example, {SMOLLM}, {SOURCE} source and {TARGET} target tokens"
AIMS: dict[Precision, float] = {"fp32": 4.0, "bf16": 1.2}
"""The other side's precision -> how many times faster ours has to be."""


def rows(repeats: int) -> list[Row]:
    ours = resolve("auto", "cpu")
    if not has_embedded():
        return [
            Row(f"{WHAT}, {ours}", _against(theirs), promised=aim, skipped=NO_EMBEDDED) for theirs, aim in AIMS.items()
        ]
    made = embedded()
    backbone = made.backbone(ours)
    item = batch(1, SOURCE, TARGET, backbone.vocabulary, backbone.end_token)[0]
    ids = torch.tensor([item.source + item.target[:-1]])
    plain = {precision: made.plain(DTYPES[precision]) for precision in AIMS}

    def forward(precision: Precision) -> Callable[[], Any]:
        return lambda: torch.no_grad()(plain[precision])(input_ids=ids, use_cache=True).logits.shape

    sides: dict[str, Callable[[], Any]] = {OURS: lambda: backbone.encode(item, for_generation=True) and None}
    seconds, _ = interleaved(sides | {precision: forward(precision) for precision in AIMS}, max(repeats, 5))
    return [
        Row(
            f"{WHAT}, {ours}",
            _against(theirs),
            ratio=seconds[theirs].median / seconds[OURS].median,
            promised=aim,
            ours=seconds[OURS],
            theirs=seconds[theirs],
        )
        for theirs, aim in AIMS.items()
    ]


def _against(precision: Precision) -> str:
    return f"`model(**inputs)` in {precision}"
