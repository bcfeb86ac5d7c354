"""Loading an encoder from a folder of weights."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from transformers import AttentionInterface, AutoModel, AutoTokenizer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.utils import logging

from pipeline.errors import QuorumError
from pipeline.model.encoder import Encoder, select_layers
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.precision import Precision
from pipeline.model.presets import ENCODERS
from pipeline.workspace.files import read_json
from pipeline.workspace.layout import ABOUT_BACKBONE

FP32_ATTENTION = "quorum_fp32"


def load_encoder(
    folder: Path,
    frozen: FrozenPart,
    device: torch.device,
    precision: Precision = "fp32",
    layers: Sequence[int] | None = None,
) -> Encoder:
    """The encoder in a folder that the `backbone` stage wrote.

    `frozen`: its frozen part. `layers`: the numbers of the layers that it has, from below; None: all.

    Raises QuorumError if the folder is missing or damaged, or lacks one of the layers, or more are frozen than there
    are.
    """
    name = read_json(folder / ABOUT_BACKBONE, remedy="run `dvc repro`")["name"]
    attention = FP32_ATTENTION if precision == "bf16" and device.type == "cpu" else "sdpa"
    with reading_weights(folder, "remove it, and run `dvc repro` again"):
        model = AutoModel.from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, attn_implementation=attention
        )
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if layers is not None:
        select_layers(name, model, layers)
    return Encoder(name, model.to(device), tokenizer, frozen, pool=ENCODERS[name].pool, precision=precision)


@contextmanager
def reading_weights(folder: Path, remedy: str) -> Iterator[None]:
    """Let transformers read a folder, without its messages.

    Raises QuorumError if the folder is damaged; `remedy` is the end of the message.
    """
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    except Exception as error:  # transformers passes on any error of its readers
        reason = " ".join(str(error).split())[:160]
        raise QuorumError(f"{folder}: damaged backbone ({reason}); {remedy}") from error


def attention_in_fp32(
    module: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **others: object
) -> tuple[Tensor, None]:
    """transformers' attention interface, in fp32 for an encoder in bf16 on a processor.

    torch's attention in bf16 takes twice as long there as in fp32, its gradient three times: 8 texts of 64 tokens and
    12 heads 10.3 ms against 3.6, and 5.5 where bf16 is turned into fp32 first.

    Args:
        query, key, value: (batch, heads, tokens, d), as (batch, tokens, heads, d) of what it returns, in fp32.
        attention_mask: (batch, 1, tokens, tokens), boolean, true where a query sees a key; None where all are seen.
    """
    with torch.autocast(query.device.type, enabled=False):
        attended, _ = sdpa_attention_forward(
            module, query.float(), key.float(), value.float(), attention_mask, **others
        )
    return attended, None


AttentionInterface.register(FP32_ATTENTION, attention_in_fp32)
