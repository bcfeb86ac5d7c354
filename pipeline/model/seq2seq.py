"""Encoder-decoder models (BART, LED, LongT5) with a frozen prefix.

Adapters sit between decoder layers only, so the encoder's output is constant, and so is, under teacher forcing, the
output of the first adapted decoder layer before its adapter. Training runs the decoder
layers above it and nothing else.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from transformers import Cache, EncoderDecoderCache, PreTrainedConfig

from pipeline.errors import QuorumError
from pipeline.model.adapter import RowAdapters, adapting, attached
from pipeline.model.attention import NAME as GROUPED_ATTENTION
from pipeline.model.backbone import Backbone, Decoding, Prefix, Rendered, Row, in_groups_of_like_length, pad
from pipeline.model.frozen_linear import DTYPES, logits_of
from pipeline.model.lora import lora
from pipeline.model.shared_source import MASK, GrowingLayer, RowsBySource, SourceLayer, folded_queries, select_rows
from pipeline.workspace.record import Json

T5_SHAPED = ("t5", "longt5", "mt5")


class Seq2SeqBackbone(Backbone):
    """An encoder-decoder model behind the `Backbone` interface."""

    def _configure(self, config: PreTrainedConfig) -> None:
        if config._attn_implementation == "sdpa":
            config._attn_implementation = GROUPED_ATTENTION
        self._t5 = config.model_type in T5_SHAPED
        self.post_norm = not self._t5
        self.width = config.d_model
        self._decoder = self.model.get_decoder()
        self._layers = self._decoder.block if self._t5 else self._decoder.layers
        generation = self.model.generation_config
        self.start_token_forced = generation.forced_bos_token_id
        self.end_token_forced = generation.forced_eos_token_id
        self._start = config.decoder_start_token_id
        bias = getattr(self.model, "final_logits_bias", None)
        self._bias: Tensor | None = bias if bias is not None and bool(bias.any()) else None
        self.decoder_start: tuple[int, ...] = (self._start,)

    def _cross_attention(self) -> list[nn.Module]:
        """The modules in which decoder layers read the source."""
        return [layer.layer[1].EncDecAttention if self._t5 else layer.encoder_attn for layer in self._layers]

    def check_lengths(self, source_tokens: int, new_tokens: int) -> None:
        config = self.model.config
        both = getattr(config, "max_position_embeddings", None)
        for name, tokens, known in (
            ("source_tokens", source_tokens, getattr(config, "max_encoder_position_embeddings", both)),
            ("target_tokens or max_tokens", new_tokens, getattr(config, "max_decoder_position_embeddings", both)),
        ):
            if not self._t5 and known is not None and tokens > known:
                raise QuorumError(f"{name}: {tokens} is more than the {known} positions of {self.name}; lower it")

    def _template(self, query: str) -> tuple[list[int], list[int], str, list[int]]:
        """`query #SEP# speaker: utterance …`; #SEP# is the tokenizer's own separator, else its end token."""
        tokenizer = self.tokenizer
        separator = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        start = [tokenizer.bos_token_id] if tokenizer.bos_token_id is not None and not self._t5 else []
        return [*start, *self._ids(query), separator], [self.end_token], " ", start

    def _encoder_arguments(self, source: Tensor) -> dict[str, Tensor]:
        """LED attends globally from the query and the separator, as a query-focused summarizer should."""
        arguments = {"input_ids": source, "attention_mask": torch.ones_like(source)}
        if self.model.config.model_type == "led":
            separator = self.tokenizer.sep_token_id
            query = int((source[0] == separator).nonzero()[0]) if (source[0] == separator).any() else 0
            marks = torch.zeros_like(source)
            marks[:, : query + 1] = 1
            arguments["global_attention_mask"] = marks
        return arguments

    def _teacher_forced(self, rendered: Rendered) -> tuple[Tensor, Tensor]:
        """The encoder's states, (1, source, width), and the decoder's, (1, target, width)."""
        source = torch.tensor([rendered.source], device=self.model.device)
        states = self.model.get_encoder()(**self._encoder_arguments(source)).last_hidden_state
        # LED pads its source to a multiple of the attention window inside the encoder.
        states = states[:, : source.shape[1]]
        output = self._decoder(
            input_ids=torch.tensor([[self._start, *rendered.target[:-1]]], device=self.model.device),
            encoder_hidden_states=states,
            encoder_attention_mask=torch.ones_like(source),
            use_cache=False,
        )
        return states, output.last_hidden_state

    @torch.no_grad()
    def encode(self, rendered: Rendered, *, for_generation: bool) -> tuple[Prefix, Prefix]:
        caught: list[Tensor] = []

        def catch(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
            caught.append(output if isinstance(output, Tensor) else output[0])

        with self._layers[self.adapted_layers[0]].register_forward_hook(catch), self._products():
            states, _ = self._teacher_forced(rendered)
        targets = torch.tensor(rendered.target, dtype=torch.long)
        source = states[0].to(DTYPES[self.precision]).cpu()
        return {"targets": targets, "hidden": caught[0][0].cpu(), "source": source}, {}

    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        return in_groups_of_like_length(prefixes, lambda group: self._padded_hidden(group, adapter))

    def _padded_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        first = self.adapted_layers[0]
        adapt = adapting(adapter, post_norm=self.post_norm)
        hidden, real = pad([prefix["hidden"] for prefix in prefixes])
        source, seen = pad([prefix["source"] for prefix in prefixes])
        length = hidden.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=hidden.device).tril()[None, None]
        self_mask, cross_mask = _additive(causal, hidden.dtype), _additive(seen[:, None, None, :], hidden.dtype)
        extra: Json = {}
        if self._t5:
            # T5's first block makes the position bias that all blocks share, the causal mask already in it.
            bias = self._layers[0].layer[0].SelfAttention.compute_bias(length, length, hidden.device)
            extra["position_bias"] = bias + self_mask
            extra["encoder_decoder_position_bias"] = cross_mask
        hidden = adapt(first, hidden)
        with self._products(), lora(self._layers, adapter):
            for index in range(first + 1, len(self._layers)):
                output = self._layers[index](
                    hidden,
                    attention_mask=self_mask.expand(len(prefixes), -1, -1, -1),
                    encoder_hidden_states=source,
                    encoder_attention_mask=cross_mask.expand(-1, -1, length, -1),
                    use_cache=False,
                    **extra,
                )
                hidden = adapt(index, output if isinstance(output, Tensor) else output[0])
        packed = hidden[real]
        return self._decoder.final_layer_norm(packed) if self._t5 else packed

    def _full_pass(self, rendered: Rendered) -> Tensor:
        return self._teacher_forced(rendered)[1][0]

    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        if self._t5 and self.model.config.scale_decoder_outputs:
            hidden = hidden * self.width**-0.5
        logits = logits_of(self.model.lm_head, hidden, targets)
        return logits if self._bias is None else logits + self._bias

    def bytes_of_source(self, tokens: int) -> int:
        return int(2 * DTYPES[self.precision].itemsize * len(self._layers) * self.width * tokens)

    def decoding(self, prefixes: Sequence[Prefix], rows: Sequence[Row], new_tokens: int) -> tuple[Decoding, Tensor]:
        first = torch.full((len(rows),), self._start, device=self.device)
        return _Seq2SeqDecoding(self, prefixes, rows, new_tokens), first


class _Seq2SeqDecoding:
    """Rows over the model's own decoder, adapters on by hooks; see `Decoding`."""

    def __init__(self, backbone: Seq2SeqBackbone, prefixes: Sequence[Prefix], rows: Sequence[Row], new: int) -> None:
        self._backbone, device = backbone, backbone.device
        self._adapters = RowAdapters([row.adapter for row in rows], post_norm=backbone.post_norm, device=device)
        self._arrangement = RowsBySource([row.source for row in rows], len(prefixes), device)
        self._source, seen = (part.to(device) for part in pad([prefix["source"] for prefix in prefixes]))
        self._bias = _additive(seen[:, None, None], torch.float32)
        self._grown = [GrowingLayer(new) for _ in backbone._layers]
        self._cache = EncoderDecoderCache(Cache(layers=self._grown), Cache(layers=[SourceLayer() for _ in self._grown]))

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        backbone = self._backbone
        layers = backbone._layers
        attentions, mask = backbone._cross_attention(), "mask" if backbone._t5 else MASK
        folded = folded_queries(attentions, self._arrangement, self._bias, mask)
        with backbone._products(), attached(layers, self._adapters), lora(layers, self._adapters.common), folded:
            output = backbone._decoder(
                input_ids=tokens[:, None],
                encoder_hidden_states=self._source,
                past_key_values=self._cache,
                use_cache=True,
            )
        return backbone.head(output.last_hidden_state[:, 0])

    def select(self, rows: Tensor) -> None:
        select_rows(self._grown, rows)
        self._adapters = self._adapters.select(rows)
        self._arrangement, sources = self._arrangement.select(rows)
        if len(sources) < self._source.shape[0]:
            left = torch.tensor(sources, device=rows.device)
            self._cache.cross_attention_cache.batch_select_indices(left)
            self._source, self._bias = self._source[left], self._bias[left]


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A boolean mask as the additive one that decoder layers take."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, torch.finfo(dtype).min)
