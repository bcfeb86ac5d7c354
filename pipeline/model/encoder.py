"""An encoder whose lower part is frozen: BERT, RoBERTa, DistilBERT, and MiniLM, which is a small BERT.

Embeddings and the lowest layers may be frozen; all above them trains, in full or by adapters. The output of the last
frozen layer is computed and stored once an example, without padding, and training begins there. Where no layer is
frozen, the token ids are stored instead. Dropout is 0, since a stored output must not depend on a draw.

The trained tensors are an adapter like any other, a dict of tensors:

    embeddings.*          the embeddings, where nothing is frozen
    layers.K.*            a layer in full
    layers.K.down …       a bottleneck after it (Houlsby et al., ICML 2019), post-norm, as BERT's own layers
    layers.K.….lora_A/B   low-rank changes of its query and value projections (Hu et al., ICLR 2022)
    head.*                the task's
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapter, apply_adapter, init_adapter
from pipeline.model.backbone import Prefix, Rendered, pad
from pipeline.model.frozen_part import Above, FrozenPart
from pipeline.model.lora import DOWN, SCALE, UP, init_lora, projections
from pipeline.model.precision import Precision, products_in

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

Pool = Literal["mean", "first"]


BOTTLENECK = ("down", "up", "norm.weight", "norm.bias")


class Encoder:
    """A pretrained encoder with a frozen part.

    Args:
        model: transformers' own, without a head.
        pool: a text's vector: the mean of its tokens, as in MiniLM's training, or the first one, as in BERT's.

    Raises QuorumError if more layers are frozen than the model has.
    """

    def __init__(
        self,
        name: str,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        frozen: FrozenPart,
        *,
        pool: Pool = "first",
        precision: Precision = "fp32",
    ) -> None:
        self.name, self.tokenizer, self.frozen, self.pool, self.precision = name, tokenizer, frozen, pool, precision
        self._model = model.eval().requires_grad_(False)
        self.device: torch.device = model.device
        self._layers: nn.ModuleList = _layers_of(model)
        if frozen.layers > len(self._layers):
            raise QuorumError(f"frozen: {frozen}: {name} has {len(self._layers)} layers; freeze fewer")
        self.width = int(model.config.hidden_size)
        self.trained = range(frozen.layers, len(self._layers))

    @property
    def stores_tokens(self) -> bool:
        """Whether no layer is frozen, so that token ids are stored."""
        return not self.frozen.layers

    def initial(self, above: Above, size: int, seed: int) -> Adapter:
        """The initial adapter: the pretrained weights above the frozen part, or fresh adapters there.

        `size`: m of a bottleneck, r of LoRA; full layers ignore it.
        """
        if above == "bottleneck":
            return init_adapter(self.trained, self.width, size, seed)
        if above == "lora":
            return init_lora(projections(list(self._layers), self.trained), size, seed)
        found = {} if self.frozen.embeddings else _parameters(self._model.embeddings, "embeddings")
        for index in self.trained:
            found |= _parameters(self._layers[index], f"layers.{index}")
        return dict(sorted(found.items()))

    def pair(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], int]:
        """The token ids of two texts that are read as one, and the place at which the second begins."""
        begin, between, end = self._around
        return [*begin, *first, *between, *second, *end], len(begin) + len(first) + len(between)

    @cached_property
    def _around(self) -> tuple[list[int], list[int], list[int]]:
        """The special tokens before, between and behind two texts."""
        (one,), (other,) = (self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in "ab")
        ids = self.tokenizer("a", "b")["input_ids"]
        first, second = ids.index(one), ids.index(other)
        return ids[:first], ids[first + 1 : second], ids[second + 1 :]

    def encode(self, rendered: Sequence[Rendered]) -> Iterator[Prefix]:
        """What is stored of each text, in their order: `hidden` (T, n) in fp32, or `ids` (T,); `targets`; `places`.

        Texts are encoded one by one: in a batch the last bits of a text would depend on the other texts. Those that one
        window has `apart` are a batch.
        """
        for one in rendered:
            stored = {"ids": torch.tensor(one.source)}
            if not self.stores_tokens:
                texts = torch.tensor_split(stored["ids"], list(one.places[1:]) if one.apart else [])
                parts = [{"ids": ids} for ids in texts]
                with torch.no_grad():
                    hidden, mask = self._run(*self._embedded(parts, {}), {}, range(self.frozen.layers))
                stored = {"hidden": hidden[mask].cpu()}
            labels = {"targets": one.target, "places": one.places}
            yield stored | {name: torch.tensor(own, dtype=torch.int64) for name, own in labels.items()}

    def states(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The last layer's output (texts, longest, n) in fp32, and its mask (texts, longest), true at tokens."""
        if self.stores_tokens:
            hidden, mask = self._embedded(prefixes, adapter)
        else:
            hidden, mask = pad([prefix["hidden"] for prefix in prefixes])
        return self._run(hidden, mask, adapter, self.trained)

    def pooled(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """States (texts, longest, n) and their mask (texts, longest) -> one vector a text, (texts, n)."""
        if self.pool == "first":
            return hidden[:, 0]
        weights = mask[..., None].to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1)

    def _embedded(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The embeddings' output (texts, longest, n), and the mask (texts, longest)."""
        ids, mask = pad([prefix["ids"] for prefix in prefixes], float(self.tokenizer.pad_token_id))
        ids, mask = ids.to(self.device), mask.to(self.device)
        more = {}
        if getattr(self._model.config, "type_vocab_size", 0) > 1:
            # The second text of a pair is all behind the first separator.
            separators = (ids == self.tokenizer.sep_token_id).long()
            more["token_type_ids"] = ((separators.cumsum(1) - separators).clamp(max=1)) * mask
        own = _of(adapter, "embeddings")
        return functional_call(self._model.embeddings, own, (ids,), more), mask

    def _run(self, hidden: Tensor, mask: Tensor, adapter: Mapping[str, Tensor], layers: range) -> tuple[Tensor, Tensor]:
        """Run some of the layers on hidden states (texts, longest, n); their output in fp32, and the mask."""
        seen = None if bool(mask.all()) else mask[:, None, None, :].expand(-1, 1, mask.shape[1], -1)
        with products_in(self.precision, hidden.device):
            for index in layers:
                layer = self._layers[index]
                out = functional_call(layer, self._changed(index, adapter), (hidden,), {"attention_mask": seen})
                hidden = out if isinstance(out, Tensor) else out[0]
                hidden = apply_adapter(adapter, index, hidden, post_norm=True)
        return hidden.float(), mask

    def _changed(self, index: int, adapter: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A layer's parameters that differ from the pretrained ones."""
        changed = {}
        for name, tensor in _of(adapter, f"layers.{index}").items():
            if name.endswith(DOWN):
                path = name.removesuffix(DOWN)
                weight = self._layers[index].get_parameter(f"{path}.weight")
                changed[f"{path}.weight"] = weight + SCALE * adapter[f"layers.{index}.{path}{UP}"] @ tensor
            elif not name.endswith(UP) and name not in BOTTLENECK:
                changed[name] = tensor
        return changed


def select_layers(name: str, model: PreTrainedModel, selected: Sequence[int]) -> None:
    """Remove all other layers of a model, which gives a smaller one that was not trained as such.

    Raises QuorumError if the model lacks one of the layers, or they are not in order.
    """
    layers = _layers_of(model)
    if sorted(set(selected)) != list(selected) or not set(selected) <= set(range(len(layers))):
        raise QuorumError(
            f"layers: {list(selected)}: {name} has layers 0 to {len(layers) - 1}; name some of them in order"
        )
    for index in reversed(range(len(layers))):
        if index not in selected:
            del layers[index]


def _layers_of(model: PreTrainedModel) -> nn.ModuleList:
    """The layers of DistilBERT or of a model built like BERT, from below."""
    layers = (model.transformer if hasattr(model, "transformer") else model.encoder).layer
    assert isinstance(layers, nn.ModuleList)
    return layers


def _parameters(module: nn.Module, prefix: str) -> Adapter:
    """Copies of a module's parameters, their names below a prefix."""
    return {f"{prefix}.{name}": tensor.detach().cpu().clone() for name, tensor in module.named_parameters()}


def _of(adapter: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors below a prefix, by their names there."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in adapter.items() if name.startswith(f"{prefix}.")}
