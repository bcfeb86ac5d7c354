"""A folder of weights -> an `Encoder`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

from pipeline.errors import QuorumError
from pipeline.model import encoder_attention
from pipeline.model.cut import Cut
from pipeline.model.encoder import Encoder, keep_layers
from pipeline.model.precision import Precision
from pipeline.model.presets import ENCODERS
from pipeline.workspace.files import read_json
from pipeline.workspace.layout import ABOUT_BACKBONE


def load_encoder(
    folder: Path, cut: Cut, device: torch.device, precision: Precision = "fp32", layers: Sequence[int] | None = None
) -> Encoder:
    """The encoder in a folder that the `backbone` stage wrote, cut.

    Args:
        layers: those that are kept, from below; None: all.

    Raises:
        QuorumError: the folder is missing or damaged, or has fewer layers than are kept or frozen.
    """
    name = read_json(folder / ABOUT_BACKBONE, remedy="run `dvc repro`")["name"]
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    attention = encoder_attention.NAME if precision == "bf16" and device.type == "cpu" else "sdpa"
    try:
        model = AutoModel.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, attn_implementation=attention
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers raises whatever its readers raise
        reason = " ".join(str(error).split())[:160]
        raise QuorumError(f"{folder}: damaged backbone ({reason}); remove it, and run `dvc repro` again") from error
    if layers is not None:
        keep_layers(name, model, layers)
    return Encoder(name, model.to(device), tokenizer, cut, pool=ENCODERS[name].pool, precision=precision)
