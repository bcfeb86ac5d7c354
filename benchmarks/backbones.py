"""The models that are timed: the embedded one, and BART's shape in any size with random weights.

Each comes twice: as Quorum's backbone, and as transformers makes it, which is what the other side of a comparison runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, BartConfig, BartForConditionalGeneration

from pipeline.model.backbone import Backbone
from pipeline.model.loading import decoder_depth, load_backbone
from pipeline.model.precision import Precision
from pipeline.model.presets import OFFLINE
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.model.tiny import tiny_tokenizer
from pipeline.workspace import layout

NO_EMBEDDED = "run `dvc repro backbone` first"
ADAPTED = {6: 3, 12: 6}
"""Decoder layers of a BART -> how many of them carry adapters."""


@dataclass(frozen=True)
class Model:
    """One model, made when it is asked for: a process that measures one side holds only that.

    `backbone` of a precision, `plain` of a number format; `adapted`: how many of its top decoder layers carry adapters.
    """

    backbone: Callable[[Precision], Backbone]
    plain: Callable[[torch.dtype], Any]
    config: Callable[[], Any]
    adapted: int

    def layers(self) -> range:
        depth = decoder_depth(self.config())
        return range(depth - self.adapted, depth)


def has_embedded() -> bool:
    return bool((layout.backbone(OFFLINE) / layout.ABOUT_BACKBONE).is_file())


def embedded(device: str = "cpu") -> Model:
    def plain(dtype: torch.dtype) -> Any:
        return (
            AutoModelForCausalLM.from_pretrained(layout.backbone(OFFLINE), dtype=dtype).requires_grad_(False).to(device)
        )

    return Model(
        lambda precision: load_backbone(layout.backbone(OFFLINE), 6, torch.device(device), precision),
        plain,
        lambda: AutoConfig.from_pretrained(layout.backbone(OFFLINE)),
        adapted=6,
    )


def bart(width: int, layers: int = 6, device: str = "cpu", **changes: Any) -> Model:
    """Encoder and decoder of so many layers with heads of 64, 50,265 words."""

    def config() -> BartConfig:
        return BartConfig(
            vocab_size=50265,
            d_model=width,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_ffn_dim=4 * width,
            decoder_ffn_dim=4 * width,
            encoder_attention_heads=width // 64,
            decoder_attention_heads=width // 64,
            max_position_embeddings=1024,
            dropout=0.0,
            **changes,
        )

    def plain(dtype: torch.dtype) -> Any:
        torch.manual_seed(0)
        return BartForConditionalGeneration(config()).requires_grad_(False).eval().to(device, dtype)

    def backbone(precision: Precision) -> Backbone:
        return Seq2SeqBackbone(f"bart-{width}", plain(torch.float32), tiny_tokenizer(), ADAPTED[layers], precision)

    return Model(backbone, plain, config, ADAPTED[layers])
