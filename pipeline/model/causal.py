"""Llama-shaped causal language models with a frozen prefix.

The source, a chat prompt with the transcript first and the query last, runs through the frozen model without adapters.
Adapters act on the positions whose output predicts a target: the last prompt token and y_1 … y_{T−1}. So all that
training needs of an example is constant: the source's keys and values in the layers above the first adapted one, and
for the target positions the output of the first adapted layer before its adapter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from pipeline.corpora.example import Example
from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapt, RowAdapters, adapting, attached
from pipeline.model.attention import NAME as GROUPED_ATTENTION
from pipeline.model.backbone import Decoding, Limits, Prefix, Rendered, Row, in_groups_of_like_length, pad
from pipeline.model.lora import lora, projections
from pipeline.model.packed_linear import pack_linear_layers
from pipeline.model.shared_source import SharedSource

_CONTENT = "\N{OBJECT REPLACEMENT CHARACTER}"


class CausalBackbone:
    """A causal model behind the `Backbone` interface."""

    post_norm: bool = False
    start_token_forced: int | None = None
    end_token_forced: int | None = None
    decoder_start: tuple[int, ...] = ()

    def __init__(self, name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, adapted: int) -> None:
        self.name = name
        self.model: Any = model.eval().requires_grad_(False)
        pack_linear_layers(self.model)
        self.tokenizer: Any = tokenizer
        model.config._attn_implementation = GROUPED_ATTENTION
        self.device = torch.device(model.device)
        self.width = model.config.hidden_size
        self.vocabulary = model.config.vocab_size
        depth = model.config.num_hidden_layers
        self.adapted_layers = range(depth - adapted, depth)
        self.end_token = tokenizer.eos_token_id
        self._before, self._after = self._template()

    @property
    def _layers(self) -> Any:
        return self.model.model.layers

    # -- text ---------------------------------------------------------------------------------------------------------

    def _template(self) -> tuple[list[int], str]:
        """The chat prompt around the user's content: (ids before it, text after it)."""
        if self.tokenizer.chat_template is None:
            return [], "\n"
        messages = [{"role": "user", "content": _CONTENT}]
        prompt = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        before, after = prompt.split(_CONTENT)
        return self.tokenizer(before, add_special_tokens=False)["input_ids"], after

    def _ids(self, text: str) -> list[int]:
        # A transcript that spells a special token must not become one.
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    def check_lengths(self, source_tokens: int, new_tokens: int) -> None:
        known = self.model.config.max_position_embeddings
        if source_tokens + new_tokens > known:
            raise QuorumError(
                f"source_tokens: {source_tokens} and {new_tokens} new ones are more than the {known} positions of "
                f"{self.name}; lower source_tokens, target_tokens or max_tokens"
            )

    def render(self, example: Example, limits: Limits) -> Rendered:
        transcript = self._ids("\n".join(f"{turn.speaker}: {turn.text}" for turn in example.turns))
        tail = self._ids(f"\n\n{example.query}") + self.tokenizer(self._after, add_special_tokens=False)["input_ids"]
        room = limits.source_tokens - len(self._before) - len(tail)
        if room < 1:
            raise QuorumError(
                f"example {example.id}: its query and the prompt template take {len(self._before) + len(tail)} tokens, "
                f"source_tokens is {limits.source_tokens}; raise source_tokens"
            )
        kept = transcript[:room]
        target = [*self._ids(example.target), self.end_token][: limits.target_tokens]
        return Rendered((*self._before, *kept, *tail), tuple(target), len(transcript), len(kept))

    def text(self, tokens: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text.strip()

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        special = set(self.tokenizer.all_special_ids)
        return ["" if token in special else self.tokenizer.decode([token]) for token in tokens]

    # -- frozen part --------------------------------------------------------------------------------------------------

    def _run(
        self,
        hidden: Tensor,
        layers: range,
        positions: Tensor,
        mask: Tensor | None,
        cache: Any,
        adapt: Adapt,
        **attention: Any,
    ) -> Tensor:
        """Some of the layers, one after the other; no mask: each position sees those before it and itself."""
        rope = self.model.model.rotary_emb(hidden, position_ids=positions)
        for index in layers:
            hidden = self._layers[index](
                hidden, attention_mask=mask, position_embeddings=rope, past_key_values=cache, **attention
            )
            hidden = adapt(index, hidden)
        return hidden

    @torch.no_grad()
    def encode(self, rendered: Rendered, *, for_generation: bool) -> tuple[Prefix, Prefix]:
        first = self.adapted_layers[0]
        embed = self.model.model.embed_tokens
        device = embed.weight.device
        source = torch.tensor([rendered.source[:-1]], device=device)
        length = source.shape[1]
        cache = DynamicCache()
        self._run(
            embed(source),
            range(len(self._layers)),
            torch.arange(length, device=device)[None],
            None,
            cache,
            _unadapted,
        )
        # Taken now: the target's pass below appends to the lower layers' caches.
        keys = [layer.keys[0] for layer in cache.layers]
        values = [layer.values[0] for layer in cache.layers]
        inputs = torch.tensor([(rendered.source[-1], *rendered.target[:-1])], device=device)
        hidden = self._run(
            embed(inputs),
            range(first + 1),
            torch.arange(length, length + inputs.shape[1], device=device)[None],
            _causal_mask(inputs.shape[1], length, device),
            cache,
            _unadapted,
        )
        prefix = {
            "targets": torch.tensor(rendered.target),
            "hidden": hidden[0].cpu(),
            # (layers, key-value heads, length, d), as attention reads them.
            "keys": _stacked(keys[first + 1 :], length, self._layers[0]),
            "values": _stacked(values[first + 1 :], length, self._layers[0]),
        }
        if not for_generation:
            return prefix, {}
        lower = {
            "last_token": torch.tensor(rendered.source[-1:]),
            "lower_keys": _stacked(keys[: first + 1], length, self._layers[0]),
            "lower_values": _stacked(values[: first + 1], length, self._layers[0]),
        }
        return prefix, lower

    # -- adapted part -------------------------------------------------------------------------------------------------

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        return in_groups_of_like_length(prefixes, lambda group: self._padded_hidden(group, adapter))

    def lora_shapes(self) -> dict[str, tuple[int, int]]:
        return projections(self._layers, self.adapted_layers[1:])

    def _padded_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        first = self.adapted_layers[0]
        adapt = adapting(adapter, post_norm=False)
        hidden, real = pad([prefix["hidden"] for prefix in prefixes])
        above = range(first + 1, len(self._layers))
        keys, values, source = _padded_source(prefixes, hidden.device)
        lengths = source.sum(1)
        steps = torch.arange(hidden.shape[1], device=hidden.device)
        seen = (steps[None, :] <= steps[:, None]).expand(len(prefixes), -1, -1)
        mask = torch.cat([source[:, None, :].expand(-1, hidden.shape[1], -1), seen], dim=2)[:, None]
        cache = _TeacherForcing(above, keys, values)
        with lora(self._layers, adapter):
            hidden = self._run(adapt(first, hidden), above, lengths[:, None] + steps, mask, cache, adapt)
        normed: Tensor = self.model.model.norm(hidden[real])
        return normed

    def reference_hidden(
        self,
        rendered: Sequence[Rendered],
        adapter: Mapping[str, Tensor],
        *,
        everywhere: bool = False,
        dropped: float = 0.0,
    ) -> Tensor:
        hidden = []
        for item in rendered:
            ids = torch.tensor([item.source + item.target[:-1]], device=self.model.device)
            start = len(item.source) - 1
            where = None if everywhere else torch.arange(ids.shape[1], device=ids.device)[None] >= start
            adapt = adapting(adapter, post_norm=False, where=where, dropped=dropped)
            with attached(self._layers, adapt), lora(self._layers, adapter, where):
                hidden.append(self.model.model(ids, use_cache=False).last_hidden_state[0, start:])
        return torch.cat(hidden)

    def head(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.model.lm_head(hidden)
        return logits.float()

    def bytes_of_source(self, tokens: int) -> int:
        return int(8 * len(self._layers) * self._layers[0].self_attn.k_proj.out_features * tokens)

    def decoding(self, prefixes: Sequence[Prefix], rows: Sequence[Row], new_tokens: int) -> tuple[Decoding, Tensor]:
        owners = [row.source for row in rows]
        first = torch.cat([prefix["last_token"] for prefix in prefixes]).to(self.device)
        keys, values, seen = _padded_source(prefixes, self.device, ("lower_", ""))
        source = SharedSource(keys, values, seen, owners, new_tokens)
        adapters = RowAdapters([row.adapter for row in rows], post_norm=False, device=self.device)
        return _CausalDecoding(self, source, seen.sum(1)[owners], adapters), first[owners]


class _CausalDecoding:
    """Rows over shared sources; see `Decoding`."""

    def __init__(self, backbone: CausalBackbone, source: SharedSource, lengths: Tensor, adapters: RowAdapters) -> None:
        self._backbone, self._source, self._lengths, self._adapters = backbone, source, lengths, adapters

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        model = self._backbone.model.model
        with lora(model.layers, self._adapters.common):
            hidden = self._backbone._run(
                model.embed_tokens(tokens[:, None]),
                range(len(model.layers)),
                (self._lengths + self._source.grown)[:, None],
                None,
                self._source,
                self._adapters,
                shared_source=self._source,
            )
        return self._backbone.head(model.norm(hidden[:, 0]))

    def select(self, rows: Tensor) -> None:
        self._source.select(rows)
        self._lengths = self._lengths[rows]
        self._adapters = self._adapters.select(rows)


class _TeacherForcing:
    """A batch's padded sources, joined with the target a layer at a time; transformers' cache interface."""

    def __init__(self, layers: range, keys: Tensor, values: Tensor) -> None:
        self._first, self._keys, self._values = layers.start, keys, values

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        place = layer - self._first
        return torch.cat([self._keys[place], keys], 2), torch.cat([self._values[place], values], 2)


def _padded_source(
    prefixes: Sequence[Prefix], device: torch.device, parts: Sequence[str] = ("",)
) -> tuple[Tensor, Tensor, Tensor]:
    """Stored keys and values, (layers, batch, key-value heads, longest, d) each, and what is source: (batch, longest).

    Args:
        parts: what the names of the stored layers begin with, lower layers first.
    """
    lengths = [prefix["keys"].shape[2] for prefix in prefixes]
    layers = [prefixes[0][f"{part}keys"].shape[0] for part in parts]
    _, heads, _, d = prefixes[0]["keys"].shape
    shape = (sum(layers), len(prefixes), heads, max(lengths), d)
    padded = {name: torch.zeros(shape, device=device) for name in ("keys", "values")}
    for i, prefix in enumerate(prefixes):
        for name, buffer in padded.items():
            for part, layer in zip(parts, torch.split(buffer, layers), strict=True):
                layer[:, i, :, : lengths[i]] = prefix[part + name]
    seen = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return padded["keys"], padded["values"], seen.to(device)


def _stacked(tensors: Sequence[Tensor], length: int, layer: Any) -> Tensor:
    """Per-layer (heads, ≥ length, d) -> (layers, heads, length, d), on the CPU; of no layer, an empty one."""
    if not tensors:
        attention = layer.self_attn
        heads = attention.k_proj.out_features // attention.head_dim
        return torch.zeros(0, heads, length, attention.head_dim)
    return torch.stack([tensor[:, :length] for tensor in tensors]).contiguous().cpu()


def _unadapted(_layer: int, hidden: Tensor) -> Tensor:
    return hidden


def _causal_mask(queries: int, past: int, device: torch.device) -> Tensor:
    """(1, 1, queries, past + queries): each position sees the past and itself."""
    return torch.ones(queries, past + queries, dtype=torch.bool, device=device).tril(past)[None, None]
