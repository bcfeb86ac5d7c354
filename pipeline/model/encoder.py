"""An encoder whose lower part is frozen: BERT, RoBERTa, DistilBERT, and MiniLM, which is a small BERT.

Embeddings and the lowest layers may be frozen; whatever lies above trains, wholly or by adapters. The output of the
last frozen layer is computed once for an example, real tokens alone, and training begins there; where no layer is
frozen, the token ids stand in its place. Dropout is 0: what is stored must not depend on a draw.

What trains is an adapter like any other, a dict of tensors:

    embeddings.*          the embeddings, where nothing is frozen
    layers.K.*            a whole layer
    layers.K.down …       a bottleneck after it (Houlsby et al., ICML 2019), post-norm, as BERT's own layers
    layers.K.….lora_A/B   low-rank changes of its query and value projections (Hu et al., ICLR 2022)
    head.*                the task's
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapter, apply_adapter, init_adapter
from pipeline.model.backbone import Prefix, Rendered, pad
from pipeline.model.cut import Above, Cut
from pipeline.model.lora import DOWN, SCALE, UP, init_lora
from pipeline.model.precision import Precision, products_in

Pool = Literal["mean", "first"]
PROJECTIONS = ("query", "value", "q_lin", "v_lin")
"""What BERT's and DistilBERT's query and value projections are called."""


class Lower(NamedTuple):
    """What has been computed below a lower cut: its layers, and a text's hidden states (T, n) behind them, or None."""

    layers: int
    hidden: Callable[[Rendered], Tensor | None]


class Encoder:
    """A pretrained encoder, cut.

    Args:
        model: transformers' own, without a head.
        pool: how a text is one vector: the mean of its tokens, as MiniLM was trained, or the first, as BERT.

    Raises:
        QuorumError: it has fewer layers than are to be frozen.
    """

    def __init__(
        self, name: str, model: Any, tokenizer: Any, cut: Cut, *, pool: Pool = "first", precision: Precision = "fp32"
    ) -> None:
        self.name, self.tokenizer, self.cut, self.pool, self.precision = name, tokenizer, cut, pool, precision
        self._model = model.eval().requires_grad_(False)
        self._layers: nn.ModuleList = _layers_of(model)
        if cut.layers > len(self._layers):
            raise QuorumError(f"frozen: {cut}: {name} has {len(self._layers)} layers; freeze fewer")
        self.width = int(model.config.hidden_size)
        self.trained = range(cut.layers, len(self._layers))

    @property
    def device(self) -> torch.device:
        found: torch.device = next(self._model.parameters()).device
        return found

    @property
    def stores_tokens(self) -> bool:
        """Whether nothing but embeddings lies below the cut, so that token ids are all that is stored."""
        return not self.cut.layers

    def initial(self, above: Above, size: int, seed: int) -> Adapter:
        """What trains at first: the pretrained weights above the cut, or fresh adapters there.

        Args:
            size: m of a bottleneck, r of LoRA; of whole layers it does not matter.
        """
        if above == "bottleneck":
            return init_adapter(self.trained, self.width, size, seed)
        if above == "lora":
            return init_lora(self._projections(), size, seed)
        found = {} if self.cut.embeddings else _parameters(self._model.embeddings, "embeddings")
        for index in self.trained:
            found |= _parameters(self._layers[index], f"layers.{index}")
        return dict(sorted(found.items()))

    def _projections(self) -> dict[str, tuple[int, int]]:
        return {
            f"layers.{index}.{path}": (module.in_features, module.out_features)
            for index in self.trained
            for path, module in self._layers[index].named_modules()
            if isinstance(module, nn.Linear) and path.split(".")[-1] in PROJECTIONS
        }

    def pair(self, first: Sequence[int], second: Sequence[int]) -> tuple[list[int], int]:
        """Two texts' tokens as the model reads them together: (ids, where the second begins)."""
        begin, between, end = self._around
        return [*begin, *first, *between, *second, *end], len(begin) + len(first) + len(between)

    @cached_property
    def _around(self) -> tuple[list[int], list[int], list[int]]:
        """The special tokens before, between and behind two texts."""
        (one,), (other,) = (self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in "ab")
        ids = self.tokenizer("a", "b")["input_ids"]
        first, second = ids.index(one), ids.index(other)
        return ids[:first], ids[first + 1 : second], ids[second + 1 :]

    def encode(self, rendered: Sequence[Rendered], lower: Lower | None = None) -> Iterator[Prefix]:
        """What is frozen of each text, in their order: `hidden` (T, n) in fp32, or `ids` (T,); and its targets.

        One after the other: in a batch the last bits of a text would depend on what else the store lacked. They do not
        depend on `lower`, from which the layers between two cuts go on.
        """
        for one in rendered:
            stored = {"ids": torch.tensor(one.source)}
            if not self.stores_tokens:
                with torch.no_grad():
                    stored = {"hidden": self._frozen(stored, one, lower)}
            yield stored | {"targets": torch.tensor(one.target, dtype=torch.int64)} | _places(one)

    def _frozen(self, stored: Prefix, one: Rendered, lower: Lower | None) -> Tensor:
        begun = None if lower is None else lower.hidden(one)
        if lower is None or begun is None:
            hidden, _ = self._run(*self._embedded([stored], {}), {}, range(self.cut.layers))
        else:
            states, mask = pad([begun.to(self.device)])
            hidden, _ = self._run(states, mask, {}, range(lower.layers, self.cut.layers))
        return hidden[0].cpu()

    def states(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The last layer's output (texts, longest, n), and which of it are tokens, (texts, longest)."""
        if self.stores_tokens:
            hidden, mask = self._embedded(prefixes, adapter)
        else:
            hidden, mask = pad([prefix["hidden"] for prefix in prefixes])
        return self._run(hidden, mask, adapter, self.trained)

    def pooled(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Each text as one vector: (texts, n)."""
        if self.pool == "first":
            return hidden[:, 0]
        kept = mask[..., None].to(hidden.dtype)
        return (hidden * kept).sum(1) / kept.sum(1)

    def _embedded(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        ids, mask = pad([prefix["ids"] for prefix in prefixes], float(self.tokenizer.pad_token_id))
        ids, mask = ids.to(self.device), mask.to(self.device)
        more = {}
        if getattr(self._model.config, "type_vocab_size", 0) > 1:
            # Of a pair, all that comes behind the first separator is the second text.
            separators = (ids == self.tokenizer.sep_token_id).long()
            more["token_type_ids"] = ((separators.cumsum(1) - separators).clamp(max=1)) * mask
        own = _of(adapter, "embeddings")
        return functional_call(self._model.embeddings, own, (ids,), more), mask

    def _run(self, hidden: Tensor, mask: Tensor, adapter: Mapping[str, Tensor], layers: range) -> tuple[Tensor, Tensor]:
        seen = None if bool(mask.all()) else mask[:, None, None, :].expand(-1, 1, mask.shape[1], -1)
        with products_in(self.precision, hidden.device):
            for index in layers:
                layer = self._layers[index]
                out = functional_call(layer, self._changed(index, adapter), (hidden,), {"attention_mask": seen})
                hidden = out if isinstance(out, Tensor) else out[0]
                hidden = apply_adapter(adapter, index, hidden, post_norm=True)
        return hidden.float(), mask

    def _changed(self, index: int, adapter: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """A layer's parameters that are not as they were pretrained."""
        changed = {}
        for name, tensor in _of(adapter, f"layers.{index}").items():
            if name.endswith(DOWN):
                path = name.removesuffix(DOWN)
                weight = self._layers[index].get_parameter(f"{path}.weight")
                changed[f"{path}.weight"] = weight + SCALE * adapter[f"layers.{index}.{path}{UP}"] @ tensor
            elif not name.endswith(UP) and name not in BOTTLENECK:
                changed[name] = tensor
        return changed


BOTTLENECK = ("down", "up", "norm.weight", "norm.bias")


def keep_layers(name: str, model: Any, kept: Sequence[int]) -> None:
    """Leave these layers alone, from below: a smaller model that was not trained as one.

    Raises:
        QuorumError: one of them is none.
    """
    layers = _layers_of(model)
    strange = [index for index in kept if not 0 <= index < len(layers)]
    if strange or sorted(set(kept)) != list(kept):
        raise QuorumError(f"layers: {list(kept)}: {name} has layers 0 to {len(layers) - 1}; name some of them in order")
    own = nn.ModuleList([layers[index] for index in kept])
    if hasattr(model, "transformer"):
        model.transformer.layer = own
    else:
        model.encoder.layer = own


def _layers_of(model: Any) -> nn.ModuleList:
    layers = model.transformer.layer if hasattr(model, "transformer") else model.encoder.layer
    assert isinstance(layers, nn.ModuleList)
    return layers


def _parameters(module: nn.Module, prefix: str) -> Adapter:
    return {f"{prefix}.{name}": tensor.detach().cpu().clone() for name, tensor in module.named_parameters()}


def _of(adapter: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) + 1 :]: tensor for name, tensor in adapter.items() if name.startswith(f"{prefix}.")}


def _places(rendered: Rendered) -> Prefix:
    """Which tokens are asked about; of a text that is asked about as a whole none."""
    return {"places": torch.tensor(rendered.places, dtype=torch.int64)}
