"""Llama-shaped causal language models with a frozen prefix.

The source, a chat prompt with the transcript first and the query last, runs through the frozen model without adapters.
Adapters act on the positions whose output predicts a target: the last prompt token and y_1 … y_{T−1}. So all that
training needs of an example is constant: the source's keys and values in the layers above the first adapted one, and
for the target positions the output of the first adapted layer before its adapter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from transformers import PreTrainedConfig

from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapt, RowAdapters, adapting
from pipeline.model.attention import NAME as GROUPED_ATTENTION
from pipeline.model.backbone import Backbone, Decoding, Prefix, Rendered, Row
from pipeline.model.frozen_linear import DTYPES, logits_of
from pipeline.model.lora import lora
from pipeline.model.shared_source import SharedSource
from pipeline.model.stored_source import StoredSource

_CONTENT = "\N{OBJECT REPLACEMENT CHARACTER}"


class CausalBackbone(Backbone):
    """A causal model behind the `Backbone` interface."""

    def _configure(self, config: PreTrainedConfig) -> None:
        config._attn_implementation = GROUPED_ATTENTION
        self.width, self._layers = config.hidden_size, self.model.model.layers
        attention = self._layers[0].self_attn
        self._heads: tuple[int, int] = attention.k_proj.out_features // attention.head_dim, attention.head_dim
        self._before, self._after = self._chat_prompt()

    def check_lengths(self, source_tokens: int, new_tokens: int) -> None:
        known = self.model.config.max_position_embeddings
        if source_tokens + new_tokens > known:
            raise QuorumError(
                f"source_tokens: {source_tokens} and {new_tokens} new ones are more than the {known} positions of "
                f"{self.name}; lower source_tokens, target_tokens or max_tokens"
            )

    def _chat_prompt(self) -> tuple[list[int], str]:
        """The chat prompt around the user's content: (ids before it, text after it)."""
        if self.tokenizer.chat_template is None:
            return [], "\n"
        messages = [{"role": "user", "content": _CONTENT}]
        prompt = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        before, after = prompt.split(_CONTENT)
        return self.tokenizer(before, add_special_tokens=False)["input_ids"], after

    def _template(self, query: str) -> tuple[list[int], list[int], str, list[int]]:
        after = self.tokenizer(self._after, add_special_tokens=False)["input_ids"]
        return self._before, [*self._ids(f"\n\n{query}"), *after], "\n", []

    def _run(
        self, hidden: Tensor, layers: range, positions: Tensor, cache: Cache | None, adapt: Adapt, **attention: object
    ) -> Tensor:
        """Run some layers on hidden states (batch, length, width); each position sees itself and those before it."""
        rope = self.model.model.rotary_emb(hidden, position_ids=positions)
        with self._products():
            for index in layers:
                hidden = self._layers[index](
                    hidden, attention_mask=None, position_embeddings=rope, past_key_values=cache, **attention
                )
                hidden = adapt(index, hidden)
        return hidden

    @torch.no_grad()
    def encode(self, rendered: Rendered, *, for_generation: bool) -> tuple[Prefix, Prefix]:
        first, length = self.adapted_layers[0], len(rendered.source) - 1
        ids = torch.tensor([rendered.source + rendered.target[:-1]], device=self.device)
        positions = torch.arange(ids.shape[1], device=self.device)[None]
        cache = _KeyValueCache(DTYPES[self.precision])
        hidden = self.model.model.embed_tokens(ids)
        hidden = self._run(hidden, range(first + 1), positions, cache, _unadapted)
        targets, source = hidden[:, length:], hidden[:, :length]
        # Above the first adapted layer the source goes on alone: there the targets' states are the adapters' work.
        self._run(source, range(first + 1, len(self._layers)), positions[:, :length], cache, _unadapted)
        keys, values = cache.keys, cache.values
        prefix = {
            "targets": torch.tensor(rendered.target),
            "hidden": targets[0].cpu(),
            # (layers, key-value heads, length, d), as attention reads them.
            "keys": self._stacked(keys[first + 1 :], length),
            "values": self._stacked(values[first + 1 :], length),
        }
        if not for_generation:
            return prefix, {}
        lower = {
            "last_token": torch.tensor(rendered.source[-1:]),
            "lower_keys": self._stacked(keys[: first + 1], length),
            "lower_values": self._stacked(values[: first + 1], length),
        }
        return prefix, lower

    def _stacked(self, tensors: Sequence[Tensor], length: int) -> Tensor:
        """Per-layer (heads, ≥ length, d) -> (layers, heads, length, d), on the CPU; of no layer, an empty one."""
        if not tensors:
            heads, d = self._heads
            return torch.zeros(0, heads, length, d, dtype=DTYPES[self.precision])
        return torch.stack([tensor[:, :length] for tensor in tensors]).contiguous().cpu()

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        first = self.adapted_layers[0]
        adapt = adapting(adapter, post_norm=False)
        above = range(first + 1, len(self._layers))
        targets = [len(prefix["targets"]) for prefix in prefixes]
        stored = StoredSource([p["keys"] for p in prefixes], [p["values"] for p in prefixes], targets, above.start)
        hidden = torch.cat([prefix["hidden"] for prefix in prefixes])[None]
        begins = [prefix["keys"].shape[2] for prefix in prefixes]
        positions = torch.cat([torch.arange(at, at + n) for at, n in zip(begins, targets, strict=True)])[None]
        with lora(self._layers, adapter):
            positions = positions.to(hidden.device)
            hidden = self._run(adapt(first, hidden), above, positions, None, adapt, stored_source=stored)
        normed: Tensor = self.model.model.norm(hidden[0])
        return normed

    def _full_pass(self, rendered: Rendered) -> Tensor:
        ids = torch.tensor([rendered.source + rendered.target[:-1]], device=self.device)
        states: Tensor = self.model.model(ids, use_cache=False).last_hidden_state
        return states[0, len(rendered.source) - 1 :]

    def _predicting(self, rendered: Rendered) -> Tensor:
        prompt, length = len(rendered.source) - 1, len(rendered.source + rendered.target) - 1
        return torch.arange(length, device=self.device)[None] >= prompt

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        return logits_of(self.model.lm_head, hidden, targets)

    def bytes_of_source(self, tokens: int) -> int:
        heads, d = self._heads
        return 2 * DTYPES[self.precision].itemsize * len(self._layers) * heads * d * tokens

    def decoding(self, prefixes: Sequence[Prefix], rows: Sequence[Row], new_tokens: int) -> tuple[Decoding, Tensor]:
        first = torch.cat([prefixes[row.source]["last_token"] for row in rows]).to(self.device)
        return _CausalDecoding(self, prefixes, rows, new_tokens), first


class _CausalDecoding:
    """Rows over shared sources; see `Decoding`."""

    def __init__(self, backbone: CausalBackbone, prefixes: Sequence[Prefix], rows: Sequence[Row], new: int) -> None:
        keys, values, seen = _padded_source(prefixes, backbone.device)
        owners = [row.source for row in rows]
        self._backbone, self._lengths = backbone, seen.sum(1)[owners]
        self._source = SharedSource(keys, values, seen, owners, new)
        self._adapters = RowAdapters([row.adapter for row in rows], post_norm=False, device=backbone.device)

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        model = self._backbone.model.model
        with lora(model.layers, self._adapters.common):
            hidden = self._backbone._run(
                model.embed_tokens(tokens[:, None]),
                range(len(model.layers)),
                (self._lengths + self._source.grown)[:, None],
                self._source,
                self._adapters,
                shared_source=self._source,
            )
        return self._backbone.head(model.norm(hidden[:, 0]))

    def select(self, rows: Tensor) -> None:
        self._source.select(rows)
        self._lengths = self._lengths[rows]
        self._adapters = self._adapters.select(rows)


class _KeyValueCache:
    """Keys and values of one row, layer by layer; transformers' cache interface."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []
        self._dtype = dtype

    def update(self, keys: Tensor, values: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        keys, values = keys.to(self._dtype), values.to(self._dtype)
        self.keys.append(keys[0])
        self.values.append(values[0])
        return keys, values


Cache = _KeyValueCache | SharedSource


def _padded_source(prefixes: Sequence[Prefix], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Stored keys and values of all layers, (layers, batch, key-value heads, longest, d) each, and where a source has
    tokens: boolean (batch, longest).
    """
    parts = ("lower_", "")
    lengths = [prefix["keys"].shape[2] for prefix in prefixes]
    layers = [prefixes[0][f"{part}keys"].shape[0] for part in parts]
    _, heads, _, d = prefixes[0]["keys"].shape
    shape = (sum(layers), len(prefixes), heads, max(lengths), d)
    padded = []
    for name in ("keys", "values"):
        padded.append(torch.zeros(shape, dtype=prefixes[0]["keys"].dtype, device=device))
        for part, layer in zip(parts, torch.split(padded[-1], layers), strict=True):
            for i, prefix in enumerate(prefixes):
                layer[:, i, :, : lengths[i]] = prefix[part + name]
    seen = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return padded[0], padded[1], seen.to(device)


def _unadapted(_layer: int, hidden: Tensor) -> Tensor:
    return hidden
