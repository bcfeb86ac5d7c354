"""Bottleneck adapters on the top N decoder layers.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Eq. 5: Ŷ = LayerNorm(Y + ReLU(Y·W_down)·W_up), after each adapted layer; the bottleneck is Houlsby et al., ICML 2019.
In pre-norm stacks (Llama, T5) a LayerNorm on the residual stream would wreck the pretrained scale, so there
Ŷ = Y + ReLU(LayerNorm(Y)·W_down)·W_up. No biases; the LayerNorm's gain and shift train and travel too.

An adapter is plain data, `dict[str, Tensor]`; the empty dict is "no adapter": the bare backbone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn.functional import layer_norm, relu

from pipeline.errors import QuorumError
from pipeline.files import canonical, write_bytes

Adapter = dict[str, Tensor]

INITIAL_STD = 0.02
NORM_EPS = 1e-5


def init_adapter(layers: Iterable[int], width: int, bottleneck: int, seed: int) -> Adapter:
    """A fresh adapter: W_down ~ N(0, 0.02²), W_up = 0, gain 1, shift 0.

    Args:
        layers: indices of the adapted decoder layers.
        width: n, the backbone's hidden size; W_down is (n, m), W_up (m, n).
        bottleneck: m.
    """
    generator = torch.Generator().manual_seed(seed)
    adapter: Adapter = {}
    for layer in layers:
        adapter[f"layers.{layer}.down"] = torch.randn(width, bottleneck, generator=generator) * INITIAL_STD
        adapter[f"layers.{layer}.up"] = torch.zeros(bottleneck, width)
        adapter[f"layers.{layer}.norm.weight"] = torch.ones(width)
        adapter[f"layers.{layer}.norm.bias"] = torch.zeros(width)
    return {name: adapter[name] for name in sorted(adapter)}


def apply_adapter(adapter: Mapping[str, Tensor], layer: int, hidden: Tensor, *, post_norm: bool) -> Tensor:
    """Eq. 5 on the output of one layer; layers that the adapter does not name pass unchanged.

    Args:
        hidden: Y, (..., n).
        post_norm: the backbone normalizes after each block (BART, LED) rather than before (Llama, T5).
    """
    if f"layers.{layer}.down" not in adapter:
        return hidden
    down, up = adapter[f"layers.{layer}.down"], adapter[f"layers.{layer}.up"]
    gain, shift = adapter[f"layers.{layer}.norm.weight"], adapter[f"layers.{layer}.norm.bias"]
    if post_norm:
        return layer_norm(hidden + relu(hidden @ down) @ up, (hidden.shape[-1],), gain, shift, NORM_EPS)
    normed = layer_norm(hidden, (hidden.shape[-1],), gain, shift, NORM_EPS)
    return hidden + relu(normed @ down) @ up


@contextmanager
def attached(
    layers: Iterable[nn.Module], adapter: Mapping[str, Tensor], *, post_norm: bool, where: Tensor | None = None
) -> Iterator[None]:
    """Apply the adapter by forward hooks on a model's own decoder layers, whatever class calls them.

    Args:
        where: boolean (batch, length): the positions that are adapted; None adapts all.
    """

    def hook(index: int) -> Any:
        def adapt(_module: nn.Module, _inputs: Any, output: Tensor | tuple[Tensor, ...]) -> Any:
            hidden = output if isinstance(output, Tensor) else output[0]
            adapted = apply_adapter(adapter, index, hidden, post_norm=post_norm)
            if where is not None:
                adapted = torch.where(where[..., None], adapted, hidden)
            return adapted if isinstance(output, Tensor) else (adapted, *output[1:])

        return adapt

    handles = [layer.register_forward_hook(hook(index)) for index, layer in enumerate(layers)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def pack(adapter: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> bytes:
    """The safetensors bytes of an adapter, the same for the same tensors.

    `about` becomes one metadata key: safetensors writes several in random order.
    """
    metadata = {"quorum": canonical(dict(about))} if about else None
    content: bytes = save({name: tensor.detach().cpu().contiguous() for name, tensor in adapter.items()}, metadata)
    return content


def unpack(content: bytes) -> Adapter:
    tensors = load(content)
    # safetensors gives names in random order, and sums over an adapter depend on theirs in the last bit.
    return {name: tensors[name] for name in sorted(tensors)}


def digest(adapter: Mapping[str, Tensor]) -> str:
    """sha256 of an adapter's tensors."""
    return hashlib.sha256(pack(adapter)).hexdigest()


def write_adapter(path: Path, adapter: Mapping[str, Tensor], about: Mapping[str, Any] | None = None) -> None:
    write_bytes(path, pack(adapter, about))


def read_adapter(path: Path) -> Adapter:
    """Load an adapter.

    Raises:
        QuorumError: the file is missing or damaged.
    """
    try:
        return unpack(path.read_bytes())
    except FileNotFoundError:
        raise QuorumError(f"{path}: no such adapter; run `dvc repro` or correct the run's or client's name") from None
    except SafetensorError as error:
        raise QuorumError(
            f"{path}: damaged adapter ({error}); run `dvc repro --force` on the stage that writes it"
        ) from None
