"""A folder of weights -> a `Backbone`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.utils import logging

from pipeline.errors import QuorumError
from pipeline.model.backbone import Backbone
from pipeline.model.causal import CausalBackbone
from pipeline.model.precision import Precision, resolve
from pipeline.model.processor import compute_with
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.workspace.files import read_json
from pipeline.workspace.layout import ABOUT_BACKBONE, BACKBONE, WEIGHTS


class Wanted(Protocol):
    """What an order says of the backbone that its stage needs."""

    @property
    def adapted_layers(self) -> int: ...

    @property
    def device(self) -> str: ...

    @property
    def precision(self) -> Precision: ...

    @property
    def threads(self) -> int: ...


def planned_backbone(order: Wanted) -> Backbone:
    """The backbone of the workspace, as an order wants it; the process computes with the order's threads from then on.

    Raises:
        QuorumError: it is missing or damaged, or this machine has no such device or precision.
    """
    resolve(order.precision, order.device)
    compute_with(order.threads)
    return load_backbone(BACKBONE, order.adapted_layers, choose_device(order.device), order.precision)


def load_backbone(folder: Path, adapted_layers: int, device: torch.device, precision: Precision = "fp32") -> Backbone:
    """The backbone in a folder that the `backbone` stage wrote.

    Raises:
        QuorumError: the folder is missing or damaged, or has fewer decoder layers than are to be adapted.
    """
    name = read_json(folder / ABOUT_BACKBONE, remedy="run `dvc repro backbone`")["name"]
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        causal = not AutoConfig.from_pretrained(folder, local_files_only=True).is_encoder_decoder
        auto = AutoModelForCausalLM if causal else AutoModelForSeq2SeqLM
        model = auto.from_pretrained(folder, dtype=torch.float32, local_files_only=True).to(device)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # transformers raises whatever its readers raise
        reason = " ".join(str(error).split())[:160]
        raise QuorumError(f"{folder}: damaged backbone ({reason}); run `dvc repro --force backbone`") from error
    depth = decoder_depth(model.config)
    if adapted_layers > depth:
        raise QuorumError(f"adapted_layers: {adapted_layers}, but {name} has {depth} decoder layers; lower it")
    if causal:
        return CausalBackbone(name, model, tokenizer, adapted_layers, precision)
    return Seq2SeqBackbone(name, model, tokenizer, adapted_layers, precision)


def decoder_depth(config: Any) -> int:
    """How many decoder layers a model has, by the name that its family gives them."""
    depth = getattr(config, "decoder_layers", None) or getattr(config, "num_decoder_layers", None)
    return int(depth or config.num_hidden_layers)


def weights_bytes(folder: Path) -> int:
    """What one exchange would cost if the whole model travelled: its weights lie there in fp32."""
    return (folder / WEIGHTS).stat().st_size


def backbone_digest(folder: Path) -> str:
    """sha256 of a folder's weights, as the `backbone` stage found it."""
    digest: str = read_json(folder / ABOUT_BACKBONE, remedy="run `dvc repro backbone`")["digest"]
    return digest


def choose_device(wanted: str) -> torch.device:
    """`auto` -> a GPU where there is one.

    Raises:
        QuorumError: `cuda` was asked for and there is none.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise QuorumError("device: cuda, but no GPU can be used here; set device: auto or cpu")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")
