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
from pipeline.model.adapter import apply_adapter, attached
from pipeline.model.attention import NAME as GROUPED_ATTENTION
from pipeline.model.backbone import Decoding, Limits, Prefix, Rendered, in_groups_of_like_length, pad

_CONTENT = "\N{OBJECT REPLACEMENT CHARACTER}"


class CausalBackbone:
    """A causal model behind the `Backbone` interface."""

    family: str = "causal"
    post_norm: bool = False
    start_token_forced: int | None = None
    decoder_start: tuple[int, ...] = ()

    def __init__(self, name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, adapted: int) -> None:
        self.name = name
        self.model: Any = model.eval().requires_grad_(False)
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
        self, hidden: Tensor, layers: range, positions: Tensor, mask: Tensor, cache: Any, adapter: Mapping[str, Tensor]
    ) -> Tensor:
        rope = self.model.model.rotary_emb(hidden, position_ids=positions)
        for index in layers:
            hidden = self._layers[index](
                hidden, attention_mask=mask, position_embeddings=rope, past_key_values=cache, use_cache=True
            )
            hidden = apply_adapter(adapter, index, hidden, post_norm=False)
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
            _causal_mask(length, 0, device),
            cache,
            {},
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
            {},
        )
        prefix = {
            "targets": torch.tensor(rendered.target),
            "hidden": hidden[0].cpu(),
            # (layers, length, key-value heads, d): length second, so that a batch can be padded along it.
            "keys": _stacked(keys[first + 1 :], length, self._layers[0]),
            "values": _stacked(values[first + 1 :], length, self._layers[0]),
        }
        if not for_generation:
            return prefix, {}
        lower = {
            "last_token": torch.tensor(rendered.source[-1:]),
            "keys": _stacked(keys[: first + 1], length, self._layers[0]),
            "values": _stacked(values[: first + 1], length, self._layers[0]),
        }
        return prefix, lower

    def merge(self, prefix: Prefix, extra: Prefix) -> Prefix:
        layers = {name: torch.cat([extra[name], prefix[name]]) for name in ("keys", "values")}
        return {**prefix, **layers, "last_token": extra["last_token"]}

    # -- adapted part -------------------------------------------------------------------------------------------------

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        return in_groups_of_like_length(prefixes, lambda group: self._padded_hidden(group, adapter))

    def _padded_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        first = self.adapted_layers[0]
        hidden, real = pad([prefix["hidden"] for prefix in prefixes])
        cache, source = _source_cache(prefixes, range(first + 1, len(self._layers)))
        lengths = source.sum(1)
        steps = torch.arange(hidden.shape[1], device=hidden.device)
        seen = (steps[None, :] <= steps[:, None]).expand(len(prefixes), -1, -1)
        mask = torch.cat([source[:, None, :].expand(-1, hidden.shape[1], -1), seen], dim=2)[:, None]
        hidden = apply_adapter(adapter, first, hidden, post_norm=False)
        hidden = self._run(hidden, range(first + 1, len(self._layers)), lengths[:, None] + steps, mask, cache, adapter)
        normed: Tensor = self.model.model.norm(hidden[real])
        return normed

    def reference_hidden(self, rendered: Sequence[Rendered], adapter: Mapping[str, Tensor]) -> Tensor:
        hidden = []
        for item in rendered:
            ids = torch.tensor([item.source + item.target[:-1]], device=self.model.device)
            start = len(item.source) - 1
            where = torch.arange(ids.shape[1], device=ids.device)[None] >= start
            with attached(self._layers, adapter, post_norm=False, where=where):
                hidden.append(self.model.model(ids, use_cache=False).last_hidden_state[0, start:])
        return torch.cat(hidden)

    def head(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.model.lm_head(hidden)
        return logits.float()

    def decoding(
        self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor], *, beams: int, new_tokens: int
    ) -> tuple[Decoding, Tensor]:
        cache, source = _source_cache(prefixes, range(len(self._layers)), new_tokens, beams)
        state = _CausalDecoding(self, dict(adapter), cache, source.repeat_interleave(beams, 0))
        first = torch.cat([prefix["last_token"] for prefix in prefixes]).long()
        return state, first.to(source.device).repeat_interleave(beams)


class _CausalDecoding:
    """Rows over one growing cache; see `Decoding`."""

    def __init__(
        self, backbone: CausalBackbone, adapter: dict[str, Tensor], cache: _SourceCache, source: Tensor
    ) -> None:
        self._backbone, self._adapter, self._cache, self._source = backbone, adapter, cache, source
        self._lengths = source.sum(1)
        self._done = 0

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        model = self._backbone.model.model
        grown = self._source.new_ones(tokens.shape[0], self._done + 1)
        mask = torch.cat([self._source, grown], dim=1)[:, None, None, :]
        positions = (self._lengths + self._done)[:, None]
        layers = range(len(model.layers))
        hidden = self._backbone._run(
            model.embed_tokens(tokens[:, None]), layers, positions, mask, self._cache, self._adapter
        )
        self._done += 1
        self._cache.grown = self._done
        return self._backbone.head(model.norm(hidden[:, 0]))

    def select(self, rows: Tensor) -> None:
        self._cache.select(rows)
        self._source, self._lengths = self._source[rows], self._lengths[rows]


class _SourceCache:
    """Keys and values of padded sources, with room for `new_tokens` more; transformers' cache interface.

    With no room, `update` joins source and target without keeping the target: teacher forcing.
    Buffers: (rows, key-value heads, longest source + room, d), one pair a layer.
    """

    def __init__(self, layers: range, keys: Tensor, values: Tensor, source: int) -> None:
        self._source = source
        self._room = keys.shape[-2] - source
        self.grown = 0
        self._keys = {index: keys[i] for i, index in enumerate(layers)}
        self._values = {index: values[i] for i, index in enumerate(layers)}

    def update(self, keys: Tensor, values: Tensor, layer: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        if not self._room:
            return torch.cat([self._keys[layer], keys], 2), torch.cat([self._values[layer], values], 2)
        start = self._source + self.grown
        end = start + keys.shape[2]
        self._keys[layer][:, :, start:end] = keys
        self._values[layer][:, :, start:end] = values
        return self._keys[layer][:, :, :end], self._values[layer][:, :, :end]

    def select(self, rows: Tensor) -> None:
        for buffers in (self._keys, self._values):
            for layer, buffer in buffers.items():
                if rows.shape[0] == buffer.shape[0]:
                    # Beams of one example share their source: only what has grown is re-ordered.
                    grown = slice(self._source, self._source + self.grown)
                    buffer[:, :, grown] = buffer[rows, :, grown]
                else:
                    buffers[layer] = buffer[rows]


def _source_cache(
    prefixes: Sequence[Prefix], layers: range, new_tokens: int = 0, beams: int = 1
) -> tuple[_SourceCache, Tensor]:
    """Stored keys and values of a batch as one padded cache, and the mask of what is source: (batch, longest)."""
    lengths = [prefix["keys"].shape[1] for prefix in prefixes]
    longest = max(lengths)
    _, _, heads, width = prefixes[0]["keys"].shape
    shape = (len(layers), len(prefixes) * beams, heads, longest + new_tokens, width)
    keys, values = prefixes[0]["keys"].new_zeros(shape), prefixes[0]["keys"].new_zeros(shape)
    for i, (prefix, length) in enumerate(zip(prefixes, lengths, strict=True)):
        rows = slice(i * beams, (i + 1) * beams)
        # (layers, length, heads, d) -> (layers, 1, heads, length, d)
        keys[:, rows, :, :length] = prefix["keys"].transpose(1, 2)[:, None]
        values[:, rows, :, :length] = prefix["values"].transpose(1, 2)[:, None]
    real = torch.arange(longest, device=keys.device)[None] < torch.tensor(lengths, device=keys.device)[:, None]
    return _SourceCache(layers, keys, values, longest), real


def _stacked(tensors: Sequence[Tensor], length: int, layer: Any) -> Tensor:
    """Per-layer (heads, ≥ length, d) -> (layers, length, heads, d), on the CPU; of no layer, an empty one."""
    if not tensors:
        attention = layer.self_attn
        heads = attention.k_proj.out_features // attention.head_dim
        return torch.zeros(0, length, heads, attention.head_dim)
    return torch.stack([tensor[:, :length] for tensor in tensors]).transpose(1, 2).contiguous().cpu()


def _causal_mask(queries: int, past: int, device: torch.device) -> Tensor:
    """(1, 1, queries, past + queries): each position sees the past and itself."""
    return torch.ones(queries, past + queries, dtype=torch.bool, device=device).tril(past)[None, None]
