"""Loading an encoder from a folder of weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

from pipeline.model import encoder_attention
from pipeline.model.encoder import Encoder, select_layers
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.precision import Precision
from pipeline.model.presets import ENCODERS
from pipeline.model.weights import reading_weights
from pipeline.workspace.files import read_json
from pipeline.workspace.layout import ABOUT_BACKBONE


def load_encoder(
    folder: Path,
    frozen: FrozenPart,
    device: torch.device,
    precision: Precision = "fp32",
    layers: Sequence[int] | None = None,
) -> Encoder:
    """The encoder in a folder that the `backbone` stage wrote.

    Args:
        frozen: its frozen part.
        layers: the numbers of the layers that it has, from below; None: all.

    Raises:
        QuorumError: the folder is missing or damaged, or lacks one of the layers, or more are frozen than there are.
    """
    name = read_json(folder / ABOUT_BACKBONE, remedy="run `dvc repro`")["name"]
    attention = encoder_attention.NAME if precision == "bf16" and device.type == "cpu" else "sdpa"
    with reading_weights(folder, "remove it, and run `dvc repro` again"):
        model = AutoModel.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, attn_implementation=attention
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if layers is not None:
        select_layers(name, model, layers)
    return Encoder(name, model.to(device), tokenizer, frozen, pool=ENCODERS[name].pool, precision=precision)
