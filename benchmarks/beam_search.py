"""Beam search with 4 beams against `model.generate`: same sequences, and how much faster.

The embedded backbone starts from a stored prefill, whose time stands apart; the encoder-decoder from its stored encoder
output. No end token is allowed, so that both sides write the same number of tokens.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from benchmarks.backbones import NO_EMBEDDED, Model, bart, embedded, has_embedded
from benchmarks.comparison import OURS, THEIRS, Row, interleaved
from benchmarks.training_step import SMOLLM, batch
from pipeline.errors import QuorumError
from pipeline.model.backbone import Backbone, Prefix
from pipeline.model.backbone import Row as Wanted
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.generation import generate

BEAMS = 4


def measure(what: str, model: Model, size: int, source: int, new: int, promised: float, repeats: int) -> Row:
    backbone, plain = model.backbone(), model.plain()
    rendered = batch(size, source, 2, backbone.vocabulary, backbone.end_token)
    began = time.perf_counter()
    prefixes = [_decodable(backbone, item) for item in rendered]
    prefill = time.perf_counter() - began
    rule = DecodingRule(beams=BEAMS, min_tokens=new, max_tokens=new)
    ids = torch.tensor([item.source for item in rendered])
    sides = {
        OURS: lambda: generate(backbone, prefixes, [Wanted(i, {}) for i in range(size)], rule),
        THEIRS: lambda: _by_transformers(plain, ids, new),
    }
    seconds, written = interleaved(sides, repeats)
    scores = {side: _log_probabilities(plain, ids, written[side]) for side in sides}
    worse = float((scores[THEIRS] - scores[OURS]).max())
    if worse > 1e-3:
        raise QuorumError(f"{what}: a sequence of ours is {worse:.1e} nats less likely than the other side's")
    same = sum(a == b for a, b in zip(written[OURS], written[THEIRS], strict=True))
    return Row(
        _named(what, source, size, new),
        "`model.generate`",
        ratio=seconds[THEIRS].median / seconds[OURS].median,
        promised=promised,
        ours=seconds[OURS],
        theirs=seconds[THEIRS],
        details={
            "same_sequences": f"{same} of {size}",
            "largest_difference_of_scores": float((scores[OURS] - scores[THEIRS]).abs().max()),
            "prefill_seconds_apart": prefill,
            "times_faster_with_prefill": seconds[THEIRS].median / (seconds[OURS].median + prefill),
        },
    )


def _named(what: str, source: int, size: int, new: int) -> str:
    return f"beam search, {BEAMS} beams, {what}, {source} source tokens, {size} x {new} tokens, from a stored prefill"


def _decodable(backbone: Backbone, rendered: Any) -> Prefix:
    prefix, extra = backbone.encode(rendered, for_generation=True)
    return prefix | extra


def _by_transformers(model: Any, ids: torch.Tensor, new: int) -> list[list[int]]:
    tokens = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        num_beams=BEAMS,
        min_new_tokens=new,
        max_new_tokens=new,
        do_sample=False,
        early_stopping=False,
        no_repeat_ngram_size=0,
    )
    start = 1 if model.config.is_encoder_decoder else ids.shape[1]
    return [row[start:] for row in tokens.tolist()]


@torch.no_grad()
def _log_probabilities(model: Any, ids: torch.Tensor, written: list[list[int]]) -> torch.Tensor:
    """What the plain model gives each written sequence, in nats: (sequences,)."""
    totals = []
    for source, new in zip(ids, torch.tensor(written), strict=True):
        if model.config.is_encoder_decoder:
            logits = model(source[None], labels=new[None]).logits[0]
        else:
            logits = model(torch.cat([source, new])[None]).logits[0, source.shape[0] - 1 : -1]
        totals.append(logits.log_softmax(-1).gather(-1, new[:, None]).sum())
    return torch.stack(totals)


def rows(repeats: int) -> list[Row]:
    found = [
        measure(
            "BART's shape (d = 384, 6 + 6 layers)",
            bart(384, init_std=0.1, forced_eos_token_id=None),
            16,
            512,
            80,
            8.0,
            repeats,
        )
    ]
    if not has_embedded():
        return [
            *found,
            Row(_named(SMOLLM, 448, 8, 40), "`model.generate`", promised=5.0, skipped=NO_EMBEDDED),
        ]
    return [*found, measure(SMOLLM, embedded(), 8, 448, 40, 5.0, repeats)]
