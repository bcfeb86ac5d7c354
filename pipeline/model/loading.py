"""A folder of weights -> a `Backbone`."""

from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer, PreTrainedConfig

from pipeline.errors import QuorumError
from pipeline.model.backbone import Backbone
from pipeline.model.causal import CausalBackbone
from pipeline.model.encoder_loading import reading_weights
from pipeline.model.precision import Precision
from pipeline.model.seq2seq import Seq2SeqBackbone
from pipeline.workspace.files import read_json
from pipeline.workspace.layout import ABOUT_BACKBONE


def load_backbone(folder: Path, adapted_layers: int, device: torch.device, precision: Precision = "fp32") -> Backbone:
    """The backbone in a folder that the `backbone` stage wrote.

    Raises QuorumError if the folder is missing or damaged, or has fewer decoder layers than are to be adapted.
    """
    name = read_json(folder / ABOUT_BACKBONE, remedy="run `dvc repro backbone`")["name"]
    with reading_weights(folder, "run `dvc repro --force backbone`"):
        causal = not AutoConfig.from_pretrained(folder, local_files_only=True).is_encoder_decoder
        auto = AutoModelForCausalLM if causal else AutoModelForSeq2SeqLM
        model = auto.from_pretrained(folder, dtype=torch.float32, local_files_only=True).to(device)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    depth = decoder_depth(model.config)
    if adapted_layers > depth:
        raise QuorumError(f"adapted_layers: {adapted_layers}, but {name} has {depth} decoder layers; lower it")
    family = CausalBackbone if causal else Seq2SeqBackbone
    return family(name, model, tokenizer, adapted_layers, precision)


def decoder_depth(config: PreTrainedConfig) -> int:
    """The number of decoder layers of a model, of any family."""
    depth = getattr(config, "decoder_layers", None) or getattr(config, "num_decoder_layers", None)
    return int(depth or config.num_hidden_layers)


def choose_device(wanted: str) -> torch.device:
    """`auto` -> a GPU where there is one. Raises QuorumError if `cuda` is wanted, and there is no GPU."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise QuorumError("device: cuda, but no GPU can be used here; set device: auto or cpu")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")
