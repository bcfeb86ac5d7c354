"""Bottleneck adapters on the top N decoder layers.

Feng et al., "Adapter-based Selective Knowledge Distillation for Federated Multi-domain Meeting Summarization",
Eq. 5: Ŷ = LayerNorm(Y + ReLU(Y·W_down)·W_up), after each adapted layer; the bottleneck is Houlsby et al., ICML 2019.
In pre-norm stacks (Llama, T5) a LayerNorm on the residual stream would wreck the pretrained scale, so there
Ŷ = Y + ReLU(LayerNorm(Y)·W_down)·W_up. No biases; the LayerNorm's gain and shift train and travel too.

An adapter is plain data, `dict[str, Tensor]`; the empty dict is "no adapter": the bare backbone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.nn.functional import dropout, layer_norm, relu

from pipeline.model.onednn import product
from pipeline.model.tensor_file import damaged, tensor_bytes
from pipeline.workspace.files import canonical, write_bytes
from pipeline.workspace.record import Json

Adapter = dict[str, Tensor]

Adapt = Callable[[int, Tensor], Tensor]
"""Changes a decoder layer's output: (the layer's index, Y (batch, length, n)) -> Ŷ (batch, length, n)."""

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


def apply_adapter(
    adapter: Mapping[str, Tensor], layer: int, hidden: Tensor, *, post_norm: bool, dropped: float = 0.0
) -> Tensor:
    """Apply Eq. 5 to the output of one layer; a layer without adapter is not changed.

    Args:
        hidden: Y, (..., n).
        post_norm: the backbone normalizes after each block (BART, LED) rather than before (Llama, T5).
        dropped: the share of the inner width that is dropped, where gradients are taken.
    """
    if f"layers.{layer}.down" not in adapter:
        return hidden
    down, up = adapter[f"layers.{layer}.down"], adapter[f"layers.{layer}.up"]
    gain, shift = adapter[f"layers.{layer}.norm.weight"], adapter[f"layers.{layer}.norm.bias"]
    training = dropped > 0 and torch.is_grad_enabled()
    # In fp32, also between frozen layers in bf16.
    with torch.autocast(hidden.device.type, enabled=False):
        if post_norm:
            inner = dropout(relu(product(hidden, down)), dropped, training)
            return layer_norm(hidden + product(inner, up), (hidden.shape[-1],), gain, shift, NORM_EPS)
        normed = layer_norm(hidden, (hidden.shape[-1],), gain, shift, NORM_EPS)
        return hidden + product(dropout(relu(product(normed, down)), dropped, training), up)


def adapting(
    adapter: Mapping[str, Tensor], *, post_norm: bool, where: Tensor | None = None, dropped: float = 0.0
) -> Adapt:
    """One adapter for all rows of a batch.

    Args:
        where: boolean (batch, length): the positions that are adapted; None adapts all.
        dropped: see `apply_adapter`.
    """

    def adapt(layer: int, hidden: Tensor) -> Tensor:
        adapted = apply_adapter(adapter, layer, hidden, post_norm=post_norm, dropped=dropped)
        return adapted if where is None else torch.where(where[..., None], adapted, hidden)

    return adapt


class RowAdapters:
    """One adapter a row of a batch that is decoded; rows with the same adapter object are adapted together."""

    def __init__(self, adapters: Sequence[Adapter], *, post_norm: bool, device: torch.device) -> None:
        self._adapters, self._post_norm, self._device = list(adapters), post_norm, device
        rows: dict[int, list[int]] = {}
        for row, adapter in enumerate(adapters):
            rows.setdefault(id(adapter), []).append(row)
        self._groups = [(adapters[found[0]], torch.tensor(found, device=device)) for found in rows.values()]

    def __call__(self, layer: int, hidden: Tensor) -> Tensor:
        """See `Adapt`."""
        if len(self._groups) == 1:
            return apply_adapter(self._groups[0][0], layer, hidden, post_norm=self._post_norm)
        adapted = torch.empty_like(hidden)
        for adapter, found in self._groups:
            adapted[found] = apply_adapter(adapter, layer, hidden[found], post_norm=self._post_norm)
        return adapted

    @property
    def common(self) -> Adapter:
        """The adapter of all rows; the empty one if they have several."""
        return self._adapters[0] if len(self._groups) == 1 else {}

    def select(self, rows: Tensor) -> RowAdapters:
        """Row i becomes what row `rows[i]` was."""
        adapters = [self._adapters[row] for row in rows.tolist()]
        return RowAdapters(adapters, post_norm=self._post_norm, device=self._device)


@contextmanager
def attached(layers: Iterable[nn.Module], adapt: Adapt) -> Iterator[None]:
    """Adapt a model's own decoder layers by forward hooks, which work in any class of model."""

    def on_output(index: int, _module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> object:
        return adapt(index, output) if isinstance(output, Tensor) else (adapt(index, output[0]), *output[1:])

    with ExitStack() as hooks:
        for index, layer in enumerate(layers):
            hooks.enter_context(layer.register_forward_hook(partial(on_output, index)))
        yield


def pack(adapter: Mapping[str, Tensor], about: Json | None = None) -> bytes:
    """The safetensors bytes of an adapter; equal tensors give equal bytes.

    `about` becomes one metadata key, since safetensors writes several in random order.
    """
    metadata = {"quorum": canonical(about)} if about else None
    content: bytes = save({name: tensor.detach().cpu().contiguous() for name, tensor in adapter.items()}, metadata)
    return content


def packed_size(adapter: Mapping[str, Tensor]) -> int:
    """The number of bytes of `pack`, which depends on names, shapes and types alone."""
    return _size_of(tuple((name, tensor.dtype, tuple(tensor.shape)) for name, tensor in sorted(adapter.items())))


@lru_cache(maxsize=64)
def _size_of(form: tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]) -> int:
    return len(pack({name: torch.zeros(shape, dtype=dtype) for name, dtype, shape in form}))


def unpack(content: bytes) -> Adapter:
    """The adapter in safetensors bytes."""
    tensors = load(content)
    # safetensors returns names in random order, and the last bits of sums over an adapter depend on the order.
    return {name: tensors[name] for name in sorted(tensors)}


def on_device(adapter: Mapping[str, Tensor], device: torch.device) -> Adapter:
    """An adapter on another device."""
    return {name: tensor.to(device) for name, tensor in adapter.items()}


def digest(adapter: Mapping[str, Tensor]) -> str:
    """sha256 of an adapter's tensors."""
    return hashlib.sha256(pack(adapter)).hexdigest()


def write_adapter(path: Path, adapter: Mapping[str, Tensor], about: Json | None = None) -> None:
    """Save an adapter; see `pack`."""
    write_bytes(path, pack(adapter, about))


def read_adapter(path: Path) -> Adapter:
    """Load an adapter. Raises QuorumError if the file is missing, damaged, or not as its training saved it."""
    try:
        return unpack(tensor_bytes(path))
    except SafetensorError as error:
        raise damaged(path, str(error)) from None
