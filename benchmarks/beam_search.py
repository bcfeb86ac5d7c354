"""Beam search with 4 beams against `model.generate`: same sequences, and how much faster.

From a stored prefill, which of an encoder-decoder is its encoder's output, and with the prefill. No end token is
allowed, so that both sides write the same number of tokens.
"""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.backbones import NO_EMBEDDED, Model, bart, embedded, has_embedded
from benchmarks.comparison import OURS, THEIRS, Row, Spread, interleaved
from benchmarks.training_step import SMOLLM, batch
from pipeline.errors import QuorumError
from pipeline.model.backbone import Backbone, Prefix
from pipeline.model.backbone import Row as Wanted
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.generation import generate
from pipeline.model.precision import Precision, resolve

BEAMS = 4
PREFILL = "prefill"
WORSE: dict[Precision, float] = {"fp32": 1e-5, "bf16": 0.01}
"""How many nats a token a sequence may be less likely than the other side's, by the plain model."""
PREFILLED = ("from a stored prefill", "prefill included")


def measure(
    what: str, model: Model, size: int, source: int, new: int, promised: tuple[float | None, float | None], repeats: int
) -> list[Row]:
    """Two rows: from a stored prefill, and with the prefill, which is timed apart; `promised` are their aims."""
    precision = resolve("auto", "cpu")
    backbone, plain = model.backbone(precision), model.plain(torch.float32)
    rendered = batch(size, source, 2, backbone.vocabulary, backbone.end_token)
    prefixes = [_decodable(backbone, item) for item in rendered]
    rule = DecodingRule(beams=BEAMS, min_tokens=new, max_tokens=new)
    ids = torch.tensor([item.source for item in rendered])
    sides: dict[str, Callable[[], Any]] = {
        PREFILL: lambda: [_decodable(backbone, item) for item in rendered] and None,
        OURS: lambda: generate(backbone, prefixes, [Wanted(i, {}) for i in range(size)], rule),
        THEIRS: lambda: _by_transformers(plain, ids, new),
    }
    seconds, written = interleaved(sides, repeats)
    likelihoods = {side: _log_probabilities(plain, ids, written[side]) for side in (OURS, THEIRS)}
    worse = float((likelihoods[THEIRS] - likelihoods[OURS]).max())
    if worse > WORSE[precision] * new:
        raise QuorumError(f"{what}: a sequence of ours is {worse:.1e} nats less likely than the other side's")
    same = sum(a == b for a, b in zip(written[OURS], written[THEIRS], strict=True))
    prefill, ours = seconds[PREFILL], seconds[OURS]
    both = Spread(prefill.median + ours.median, prefill.low + ours.low, prefill.high + ours.high, ours.runs)
    return [
        Row(
            _named(what, source, size, new, how, precision),
            "`model.generate` in fp32",
            ratio=seconds[THEIRS].median / took.median,
            promised=aim,
            ours=took,
            theirs=seconds[THEIRS],
            details={
                "same_sequences": f"{same} of {size}",
                "largest_difference_of_likelihoods": float((likelihoods[OURS] - likelihoods[THEIRS]).abs().max()),
            },
        )
        for how, took, aim in zip(PREFILLED, (ours, both), promised, strict=True)
    ]


def _named(what: str, source: int, size: int, new: int, how: str, precision: Precision) -> str:
    return f"beam search, {BEAMS} beams, {what}, {source} source tokens, {size} x {new} tokens, {how}, {precision}"


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
    model = bart(384, init_std=0.1, forced_eos_token_id=None)
    found = measure("BART's shape (d = 384, 6 + 6 layers)", model, 16, 512, 80, (None, 6.0), repeats)
    if has_embedded():
        return [*found, *measure(SMOLLM, embedded(), 8, 448, 40, (12.0, 8.0), repeats)]
    named = (_named(SMOLLM, 448, 8, 40, how, resolve("auto", "cpu")) for how in PREFILLED)
    missing = zip(named, (12.0, 8.0), strict=True)
    return [*found, *(Row(what, "`model.generate`", promised=aim, skipped=NO_EMBEDDED) for what, aim in missing)]
