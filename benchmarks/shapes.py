"""Sizes of models, and what they cost: arithmetic of one example, bytes of its entry in the store."""

from dataclasses import dataclass

from pipeline.model.adapter import Adapter, init_adapter

TARGET = 80
"""Tokens of a summary."""


@dataclass(frozen=True)
class Shape:
    """A transformer's sizes: layers, n, inner width, width of keys, words; N adapted layers of inner width m.

    `matrices` counts those of the feed-forward part (3 where it is gated). `window` is how far encoder attention sees,
    None for everything; `block` is how many source tokens are summed up in one that all see. An encoder of 0 layers
    makes a causal model. `beside` are weights of an encoder layer that every source token meets besides; `extra` are
    all that stand in no formula of a block: learned positions, LED's projections for global attention.
    """

    encoder: int
    decoder: int
    width: int
    inner: int
    keys: int
    vocabulary: int
    adapted: int
    bottleneck: int
    longest: int
    matrices: int = 2
    window: int | None = None
    block: int | None = None
    beside: int = 0
    extra: int = 0

    @property
    def causal(self) -> bool:
        return self.encoder == 0

    @property
    def feed_forward(self) -> int:
        return self.matrices * self.width * self.inner

    @property
    def attention(self) -> int:
        """Weights of one attention block: queries, output, keys, values."""
        return 2 * self.width * self.width + 2 * self.width * self.keys

    @property
    def parameters(self) -> int:
        blocks = self.encoder * (self.attention + self.feed_forward)
        blocks += self.decoder * (self.attention * (1 if self.causal else 2) + self.feed_forward)
        return blocks + self.vocabulary * self.width + self.extra

    @property
    def adapter_parameters(self) -> int:
        return self.adapted * (2 * self.width * self.bottleneck + 2 * self.width)

    def span(self, source: int) -> int:
        """How many positions a source token attends to in the encoder."""
        return min(source, self.window or source) + (source // self.block if self.block else 0)

    def adapter(self) -> Adapter:
        return init_adapter(range(self.decoder - self.adapted, self.decoder), self.width, self.bottleneck, 0)


# LED's encoder has projections of its own for global attention, whose keys and values it computes of every token, and
# positions for 16,384 tokens.
LED_EXTRA = 1024 * (12 * 3 * 1024 + 16384 + 1024)
SHAPES = {
    "SmolLM2-135M": Shape(0, 30, 576, 1536, 192, 49152, 6, 1152, longest=8192, matrices=3),
    "BART-base": Shape(6, 6, 768, 3072, 768, 50265, 3, 1536, longest=1024),
    "BART-large": Shape(12, 12, 1024, 4096, 1024, 50265, 6, 2048, longest=1024),
    "LED-large": Shape(
        12,
        12,
        1024,
        4096,
        1024,
        50265,
        6,
        2048,
        longest=16384,
        window=1024,
        beside=2 * 1024**2,
        extra=LED_EXTRA,
    ),
    "LongT5-base": Shape(12, 12, 768, 2048, 768, 32128, 6, 1536, longest=16384, matrices=3, window=255, block=16),
}


def frozen_flops(s: Shape, source: int) -> float:
    """Encoding one example, once: the source through all layers, the target through those below the adapters."""
    if s.causal:
        below = s.decoder - s.adapted + 1
        return 2 * (s.attention + s.feed_forward) * (s.decoder * source + below * TARGET) + 2 * s.width * (
            s.decoder * source**2 + 2 * below * TARGET * source
        )
    reading = _reading_flops(s, source)
    below = s.decoder - s.adapted + 1
    return reading + below * decoder_flops(s, source) + below * 4 * s.width * s.keys * source


def _reading_flops(s: Shape, source: int) -> float:
    """The encoder over the source."""
    return s.encoder * source * (2 * (s.attention + s.feed_forward + s.beside) + 4 * s.width * s.span(source))


def decoder_flops(s: Shape, source: int) -> float:
    """One decoder layer over the target, the source's keys and values given."""
    weights = s.attention + s.feed_forward + (0 if s.causal else 2 * s.width * s.width)
    return TARGET * (2 * weights + 4 * s.width * (source + TARGET))


def step_flops(s: Shape, source: int) -> float:
    """AdaFedSelectKD on one stored example: student forward and backward, teacher forward; head thrice."""
    above = s.adapted - 1
    layers = 3 * above * decoder_flops(s, source)
    if not s.causal:
        layers += 2 * above * 4 * s.width * s.keys * source
    adapters = 4 * s.adapted * TARGET * 4 * s.width * s.bottleneck
    return layers + adapters + 3 * 2 * TARGET * s.width * s.vocabulary


def plain_flops(s: Shape, source: int) -> float:
    """The same step with nothing stored: everything twice, and back through the adapted layers.

    A lower bound for causal models, whose plain step goes back through all positions, not the target's alone.
    """
    above = s.adapted - 1
    whole: float
    if s.causal:
        whole = 2 * (s.attention + s.feed_forward) * s.decoder * (source + TARGET)
        whole += 2 * s.width * s.decoder * (source + TARGET) ** 2
    else:
        whole = _reading_flops(s, source)
        whole += s.decoder * (decoder_flops(s, source) + 4 * s.width * s.keys * source)
    whole += 2 * TARGET * s.width * s.vocabulary
    back = above * decoder_flops(s, source) + 2 * TARGET * s.width * s.vocabulary
    return 2 * whole + back + 4 * s.adapted * TARGET * 4 * s.width * s.bottleneck


def store_bytes(s: Shape, source: int) -> int:
    """An example's entry: what it holds of the source in bf16, of the target in fp32."""
    if s.causal:
        return 2 * 2 * (s.adapted - 1) * source * s.keys + 4 * TARGET * s.width
    return 2 * source * s.width + 4 * TARGET * s.width
