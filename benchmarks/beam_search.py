"""Beam search with 4 beams against `model.generate`: same sequences, and how much faster.

The embedded backbone starts from a stored prefill, whose time stands apart; the encoder-decoder from its stored encoder
output. No end token is allowed, so that both sides write the same number of tokens.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import BartConfig, BartForConditionalGeneration

from benchmarks.comparison import OURS, THEIRS, Row, interleaved
from benchmarks.training_step import batch, embedded
from pipeline import layout
from pipeline.layout import ABOUT_BACKBONE
from pipeline.model.backbone import Backbone, Prefix
from pipeline.model.backbone import Row as Wanted
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.generation import generate
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.tiny import tiny_tokenizer

BEAMS = 4


def bart_shape() -> Seq2SeqBackbone:
    """6 + 6 layers, d = 384, 50,265 words, random weights."""
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=50265,
        d_model=384,
        encoder_layers=6,
        decoder_layers=6,
        encoder_ffn_dim=1536,
        decoder_ffn_dim=1536,
        encoder_attention_heads=6,
        decoder_attention_heads=6,
        max_position_embeddings=1024,
        dropout=0.0,
        init_std=0.1,
        forced_eos_token_id=None,
    )
    return Seq2SeqBackbone("bart-shape", BartForConditionalGeneration(config), tiny_tokenizer(), 3)


def measure(what: str, backbone: Any, size: int, source: int, new: int, promised: float, repeats: int) -> Row:
    rendered = batch(size, source, 2, backbone.vocabulary, backbone.end_token)
    began = time.perf_counter()
    prefixes = [_decodable(backbone, item) for item in rendered]
    prefill = time.perf_counter() - began
    rule = DecodingRule(beams=BEAMS, min_tokens=new, max_tokens=new)
    ids = torch.tensor([item.source for item in rendered])
    sides = {
        OURS: lambda: generate(backbone, prefixes, [Wanted(i, {}) for i in range(size)], rule),
        THEIRS: lambda: _by_transformers(backbone, ids, new),
    }
    seconds, written = interleaved(sides, repeats)
    same = sum(a == b for a, b in zip(written[OURS], written[THEIRS], strict=True))
    return Row(
        f"beam search, {BEAMS} beams, {what}, {source} source tokens, {size} x {new} tokens",
        "`model.generate`",
        ratio=seconds[THEIRS].median / seconds[OURS].median,
        promised=promised,
        ours=seconds[OURS],
        theirs=seconds[THEIRS],
        details={"same_sequences": f"{same} of {size}", "prefill_seconds_apart": prefill},
    )


def _decodable(backbone: Backbone, rendered: Any) -> Prefix:
    prefix, extra = backbone.encode(rendered, for_generation=True)
    return prefix | extra


def _by_transformers(backbone: Any, ids: torch.Tensor, new: int) -> list[list[int]]:
    tokens = backbone.model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        num_beams=BEAMS,
        min_new_tokens=new,
        max_new_tokens=new,
        do_sample=False,
        early_stopping=False,
    )
    return [row[1:] if backbone.family == "seq2seq" else row[ids.shape[1] :] for row in tokens.tolist()]


def rows(repeats: int) -> list[Row]:
    found = [measure("BART's shape (d = 384, 6 + 6 layers)", bart_shape(), 16, 512, 80, 8.0, repeats)]
    if not (layout.BACKBONE / ABOUT_BACKBONE).is_file():
        skipped = "run `dvc repro backbone` first"
        return [*found, Row("beam search, SmolLM2-135M-Instruct", "`model.generate`", promised=5.0, skipped=skipped)]
    return [*found, measure("SmolLM2-135M-Instruct", embedded(), 8, 448, 40, 5.0, repeats)]
