"""The backbones that are timed: the embedded one, and BART's shape in any width with random weights."""

from __future__ import annotations

from typing import Any

import torch
from transformers import BartConfig, BartForConditionalGeneration

from pipeline import layout
from pipeline.model.backbone import Backbone
from pipeline.model.loading import load_backbone
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.tiny import tiny_tokenizer

NO_EMBEDDED = "run `dvc repro backbone` first"


def has_embedded() -> bool:
    return (layout.BACKBONE / layout.ABOUT_BACKBONE).is_file()


def embedded() -> Backbone:
    return load_backbone(layout.BACKBONE, 6, torch.device("cpu"))


def bart(width: int, **changes: Any) -> Seq2SeqBackbone:
    """6 + 6 layers with heads of 64, 50,265 words; adapters on the top three."""
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=50265,
        d_model=width,
        encoder_layers=6,
        decoder_layers=6,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        encoder_attention_heads=width // 64,
        decoder_attention_heads=width // 64,
        max_position_embeddings=1024,
        dropout=0.0,
        **changes,
    )
    return Seq2SeqBackbone(f"bart-{width}", BartForConditionalGeneration(config), tiny_tokenizer(), 3)
