"""A frozen language model with room for adapters: the interface, and what both families have in common.

Both families (`causal`, `seq2seq`) do the same five things: render an example as token ids, encode its frozen part, run
the adapted top from the stored part, run the complete model without the store (the reference for the stored one), and
decode.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from pipeline.corpora.conversation import Conversation
from pipeline.errors import QuorumError
from pipeline.model.adapter import Adapter, adapting, attached
from pipeline.model.frozen_linear import freeze_linear_layers
from pipeline.model.lora import lora, projections
from pipeline.model.precision import Precision, Products, products_in

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel
    from transformers import PreTrainedTokenizerBase as Tokenizer

GROUP = 4
"""Examples that are padded to one length: enough for full speed on a CPU, few enough for little padding."""


class Head(Protocol):
    """The frozen layer above the hidden states."""

    def __call__(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        """Logits in fp32: (items, width) -> (items, classes).

        `targets`: (items,). A head in bf16 then takes each target's logit from its row's, which softmax does not see
        and which keeps the digits that count.
        """


Prefix = dict[str, Tensor]
"""The stored tensors of one example: `targets` (T,), and those that the family computes once."""


@dataclass(frozen=True)
class Limits:
    """The numbers of tokens that a backbone reads, and is trained to write, at most."""

    source_tokens: int
    target_tokens: int


@dataclass(frozen=True)
class Rendered:
    """An example as token ids.

    `source` is all that the model reads, template and query included; `target` is y_1 … y_T, the end token last
    unless truncation removed it. `transcript_tokens` counts the transcript before truncation, `transcript_read` after.
    For an encoder `target` has classes. `places`: the tokens of `source` that are classified, where not the text as a
    whole is; `words`: the number of the word that each of these begins. `apart`: whether a place begins another text,
    which is encoded alone.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    transcript_tokens: int
    transcript_read: int
    places: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    apart: bool = False


@dataclass(frozen=True)
class Row:
    """A sequence to decode: the number of the prefix that it reads, and its adapter."""

    source: int
    adapter: Adapter


class Decoding(Protocol):
    """The state of one batch of rows that grow token by token."""

    def step(self, tokens: Tensor) -> Tensor:
        """Read one token a row, (rows,); the next token's logits (rows, vocabulary) in fp32."""

    def select(self, rows: Tensor) -> None:
        """Drop or re-order rows: row i becomes what row `rows[i]` was."""


class Backbone(ABC):
    """A frozen model, its tokenizer, and its decoder layers, of which the top ones are adapted.

    `model`: transformers' own, in fp32. `adapted`: how many decoder layers are adapted.
    """

    width: int
    post_norm: bool = False
    start_token_forced: int | None = None
    end_token_forced: int | None = None
    """Tokens that the model's own generation puts first and, where a text is still open, last."""
    decoder_start: tuple[int, ...] = ()
    _layers: Any  # the decoder layers, from below

    def __init__(
        self, name: str, model: PreTrainedModel, tokenizer: Tokenizer, adapted: int, precision: Precision = "fp32"
    ) -> None:
        self.name, self.tokenizer, self.precision = name, tokenizer, precision
        self.model = model.eval().requires_grad_(False)
        freeze_linear_layers(self.model, precision)
        self.device = torch.device(model.device)
        self.vocabulary: int = model.config.vocab_size
        self.end_token: int = tokenizer.eos_token_id
        self._configure(model.config)
        self.adapted_layers = range(len(self._layers) - adapted, len(self._layers))

    @abstractmethod
    def _configure(self, config: PreTrainedConfig) -> None:
        """Set what depends on the family, `width` and `_layers` among it."""

    @abstractmethod
    def check_lengths(self, source_tokens: int, new_tokens: int) -> None:
        """Check that the model has positions for so many tokens, read and written. Raises QuorumError if it has not."""

    def render(self, example: Conversation, limits: Limits) -> Rendered:
        """Token ids of an example; truncation takes the end of the transcript, never the query.

        Raises QuorumError if the query leaves no room for a transcript.
        """
        before, after, between, start = self._template(example.query)
        room = limits.source_tokens - len(before) - len(after)
        if room < 1:
            raise QuorumError(
                f"example {example.id}: its query and the template take {len(before) + len(after)} tokens, "
                f"source_tokens is {limits.source_tokens}; raise source_tokens"
            )
        transcript = self._ids(between.join(f"{turn.speaker}: {turn.text}" for turn in example.turns))
        read = transcript[:room]
        target = [*start, *self._ids(example.target), self.end_token][: limits.target_tokens]
        return Rendered((*before, *read, *after), tuple(target), len(transcript), len(read))

    @abstractmethod
    def _template(self, query: str) -> tuple[list[int], list[int], str, list[int]]:
        """The ids before and after a transcript, the text between its turns, and the ids with which a target begins."""

    def _ids(self, text: str) -> list[int]:
        """Token ids of a text; a transcript that spells a special token does not get one."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    def text(self, tokens: Sequence[int]) -> str:
        """Tokens -> words, special tokens left out."""
        text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
        return text.strip()

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """Each token's surface text, empty for special tokens: joined, they are the text."""
        return pieces_of(self.tokenizer, tokens)

    @abstractmethod
    def encode(self, rendered: Rendered, *, for_generation: bool) -> tuple[Prefix, Prefix]:
        """One example's frozen tensors, on the CPU: (those that a loss needs, the further ones that decoding needs)."""

    def lora_shapes(self) -> dict[str, tuple[int, int]]:
        """The projections that LoRA changes; the store ends with the first adapted layer, so LoRA acts above it."""
        return projections(self._layers, self.adapted_layers[1:])

    @abstractmethod
    def target_hidden(self, prefixes: Sequence[Prefix], adapter: Mapping[str, Tensor]) -> Tensor:
        """The final hidden states that predict the targets, examples one after the other: (Σ T_i, width)."""

    def reference_hidden(
        self, rendered: Sequence[Rendered], adapter: Mapping[str, Tensor], everywhere: bool = False, dropped: float = 0
    ) -> Tensor:
        """The same without the store: a full pass of the model's own forward, with adapters as hooks.

        Args:
            everywhere: adapt a causal model's prompt too, which the store rules out.
            dropped: the share of an adapter's inner width that is dropped in training.
        """
        hidden = []
        for item in rendered:
            where = None if everywhere else self._predicting(item)
            adapt = adapting(adapter, post_norm=self.post_norm, where=where, dropped=dropped)
            with self._products(), attached(self._layers, adapt), lora(self._layers, adapter, where):
                hidden.append(self._full_pass(item))
        return torch.cat(hidden)

    @abstractmethod
    def _full_pass(self, rendered: Rendered) -> Tensor:
        """The final hidden states that predict one example's target, by the model's own forward: (T, width)."""

    def _predicting(self, _rendered: Rendered) -> Tensor | None:
        """The decoder's positions whose output predicts a target, boolean (1, length); None: all."""
        return None

    @abstractmethod
    def head(self, hidden: Tensor, targets: Tensor | None = None, /) -> Tensor:
        """Logits of the vocabulary; see `Head`."""

    @abstractmethod
    def bytes_of_source(self, tokens: int) -> int:
        """Bytes of memory that decoding needs for a source of so many tokens, however many rows read it."""

    @abstractmethod
    def decoding(self, prefixes: Sequence[Prefix], rows: Sequence[Row], new_tokens: int) -> tuple[Decoding, Tensor]:
        """Start decoding up to `new_tokens` from both parts of `encode`: (state, first tokens to read, one a row)."""

    def _products(self) -> Products:
        """A context in which products are taken in the model's precision."""
        return products_in(self.precision, self.device)


def pieces_of(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[str]:
    """See `Backbone.pieces`."""
    special, texts = set(tokenizer.all_special_ids), []
    for token, piece in zip(tokens, tokenizer.convert_ids_to_tokens(list(tokens)), strict=True):
        if token in special:
            texts.append("")
        elif piece.startswith("\u2581"):
            # SentencePiece marks a word's start by U+2581; decoding a lone piece would drop that space.
            texts.append(piece.replace("\u2581", " "))
        else:
            texts.append(tokenizer.decode([token]))
    return texts


def without_gaps(active: Sequence[int]) -> list[int]:
    """Ascending places in use -> the same without gaps: the last ones fill the places of unused ones."""
    ending = [place for place in active if place >= len(active)]
    staying = set(active)
    return [place if place in staying else ending.pop() for place in range(len(active))]


def pad(rows: Sequence[Tensor], value: float = 0.0) -> tuple[Tensor, Tensor]:
    """Stack tensors of different first length: (batch, longest, ...) and the boolean mask (batch, longest)."""
    padded = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value)
    lengths = torch.tensor([row.shape[0] for row in rows], device=padded.device)
    mask = torch.arange(padded.shape[1], device=padded.device)[None, :] < lengths[:, None]
    return padded, mask


def in_groups_of_like_length(prefixes: Sequence[Prefix], run: Callable[[Sequence[Prefix]], Tensor]) -> Tensor:
    """`run` on small groups of examples with like numbers of targets: results (Σ T_i, width) in the examples' order.

    Summaries vary tenfold in length; one padded batch would be half padding.
    """
    order = sorted(range(len(prefixes)), key=lambda i: prefixes[i]["targets"].shape[0])
    parts: dict[int, Tensor] = {}
    for start in range(0, len(order), GROUP):
        group = order[start : start + GROUP]
        lengths = [prefixes[i]["targets"].shape[0] for i in group]
        parts |= dict(zip(group, torch.split(run([prefixes[i] for i in group]), lengths), strict=True))
    return torch.cat([parts[i] for i in range(len(prefixes))])


def targets_of(prefixes: Sequence[Prefix]) -> Tensor:
    """All targets of a batch, in the order of `target_hidden`: (Σ T_i,)."""
    return torch.cat([prefix["targets"] for prefix in prefixes]).long()
