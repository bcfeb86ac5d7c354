"""What Quorum costs at other sizes than a laptop's -> benchmarks/SCALE.md.

`python -m benchmarks.scale` computes every table from the shapes below by the formulas below; where a time is given,
it is arithmetic over the speed that `make bench` measured (reports/benchmarks/results.json). Bytes on the wire are
those of files that are really packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jinja2 import StrictUndefined, Template

from pipeline.federated.wire import full_model_bytes
from pipeline.files import read_json, write_text
from pipeline.layout import REPORTS
from pipeline.model.adapter import Adapter, init_adapter, pack

PAGE = Path(__file__).with_name("SCALE.md")
TEMPLATE = Path(__file__).with_name("SCALE.md.j2")
TARGET, EXAMPLES = 80, 100
"""Tokens of a summary, and examples of a client, in all tables."""


@dataclass(frozen=True)
class Shape:
    """A transformer's sizes: layers, n, inner width, width of keys, words; N adapted layers of inner width m.

    `matrices` counts those of the feed-forward part (3 where it is gated); `window` is how far encoder attention sees,
    None for everything; an encoder of 0 layers makes a causal model; `extra` are weights that do no work here: learned
    positions, LED's projections for global attention.
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


# LED's encoder projects queries, keys and values of its global tokens apart, and has positions for 16,384 tokens.
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
        extra=LED_EXTRA,
    ),
    "LongT5-base": Shape(12, 12, 768, 2048, 768, 32128, 6, 1536, longest=16384, matrices=3, window=255),
}


def frozen_flops(s: Shape, source: int) -> float:
    """Encoding one example, once: the source through all layers, the target through those below the adapters."""
    span = min(source, s.window or source)
    if s.causal:
        below = s.decoder - s.adapted + 1
        return 2 * (s.attention + s.feed_forward) * (s.decoder * source + below * TARGET) + 2 * s.width * (
            s.decoder * source**2 + 2 * below * TARGET * source
        )
    reading = s.encoder * source * (2 * (s.attention + s.feed_forward) + 4 * s.width * span)
    below = s.decoder - s.adapted + 1
    return reading + below * _decoder_flops(s, source) + below * 4 * s.width * s.keys * source


def _decoder_flops(s: Shape, source: int) -> float:
    """One decoder layer over the target, the source's keys and values given."""
    weights = s.attention + s.feed_forward + (0 if s.causal else 2 * s.width * s.width)
    return TARGET * (2 * weights + 4 * s.width * (source + TARGET))


def step_flops(s: Shape, source: int) -> float:
    """AdaFedSelectKD on one stored example: student forward and backward, teacher forward; head thrice."""
    above = s.adapted - 1
    layers = 3 * above * _decoder_flops(s, source)
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
        span = min(source, s.window or source)
        whole = s.encoder * source * (2 * (s.attention + s.feed_forward) + 4 * s.width * span)
        whole += s.decoder * (_decoder_flops(s, source) + 4 * s.width * s.keys * source)
    whole += 2 * TARGET * s.width * s.vocabulary
    back = above * _decoder_flops(s, source) + 2 * TARGET * s.width * s.vocabulary
    return 2 * whole + back + 4 * s.adapted * TARGET * 4 * s.width * s.bottleneck


def store_bytes(s: Shape, source: int) -> int:
    """An example's entry for training, in fp32."""
    if s.causal:
        return 4 * (2 * (s.adapted - 1) * source * s.keys + TARGET * s.width)
    return 4 * (source + TARGET) * s.width


@dataclass(frozen=True)
class Speed:
    """What `make bench` measured here; None where it has not run."""

    flops: float | None
    client_round: float | None


def measured() -> Speed:
    path = REPORTS / "benchmarks" / "results.json"
    results: dict[str, Any] = read_json(path) if path.is_file() else {}
    flops = [r["details"].get("gigaflops_a_second") for r in results.get("arithmetic", {}).get("rows", ())]
    loop = [r["details"].get("real_adapter") for r in results.get("loop_overhead", {}).get("rows", ())]
    return Speed(flops[0] * 1e9 if flops and flops[0] else None, loop[0] if loop and loop[0] else None)


# -- tables -----------------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(r)} |" for r in rows)])


def size(count: float) -> str:
    for unit, name in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.3g} "


def duration(seconds: float) -> str:
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e6:.3g} µs"


def by_length() -> str:
    rows = []
    for name, s in SHAPES.items():
        for source in (512, 1024, 4096, 16384):
            if source <= s.longest:
                step, plain = step_flops(s, source), plain_flops(s, source)
                rows.append(
                    (
                        name,
                        f"{source:,}",
                        f"{size(frozen_flops(s, source))}FLOP",
                        f"{size(step)}FLOP",
                        f"{size(plain)}FLOP",
                        f"{plain / step:.1f}",
                        f"{size(store_bytes(s, source))}B",
                    )
                )
    head = ("model", "source tokens", "encoding, once", "step from the store", "step without", "ratio", "store")
    return table(head, rows)


def by_clients(speed: Speed) -> str:
    s = SHAPES["SmolLM2-135M"]
    rows = []
    for clients, share in ((3, 1.0), (100, 1.0), (1_000, 1.0), (1_000, 0.1), (10_000, 1.0), (10_000, 0.01)):
        asked = round(clients * share)
        work = asked * EXAMPLES * step_flops(s, 448)
        wire = 2 * asked * 4 * s.adapter_parameters
        held = (clients + 2 * asked) * 4 * s.adapter_parameters
        rows.append(
            (
                f"{clients:,}",
                f"{share:.0%}",
                f"{size(work)}FLOP",
                duration(work / speed.flops) if speed.flops else "not measured",
                duration(asked * speed.client_round) if speed.client_round else "not measured",
                f"{size(wire)}B",
                f"{size(held)}B",
            )
        )
    return table(
        ("clients", "asked a round", "arithmetic", "on this machine", "the loop's own", "on the wire", "held at once"),
        rows,
    )


WIRES: dict[str, Callable[[Adapter], Adapter]] = {
    "fp32": lambda adapter: adapter,
    "fp16": lambda adapter: {name: tensor.half() for name, tensor in adapter.items()},
    "int8": lambda adapter: _int8(adapter),
    "top 1%": lambda adapter: _top(adapter, 0.01),
}


def _int8(adapter: Adapter) -> Adapter:
    """Symmetric, one scale a tensor."""
    scales = {name: tensor.abs().max().clamp(min=1e-12) / 127 for name, tensor in adapter.items()}
    coded = {name: (tensor / scales[name]).round().to(torch.int8) for name, tensor in adapter.items()}
    return coded | {f"{name}.scale": scale.reshape(1) for name, scale in scales.items()}


def _top(adapter: Adapter, share: float) -> Adapter:
    """The largest entries of each tensor and where they are."""
    found: Adapter = {}
    for name, tensor in adapter.items():
        _, places = tensor.flatten().abs().topk(max(1, int(share * tensor.numel())))
        found[f"{name}.values"] = tensor.flatten()[places]
        found[f"{name}.places"] = places.to(torch.int32)
    return found


def on_the_wire() -> str:
    rows = []
    for name, s in SHAPES.items():
        adapter = init_adapter(range(s.decoder - s.adapted, s.decoder), s.width, s.bottleneck, 0)
        full = full_model_bytes(s.parameters)
        sent = [len(pack(code(adapter))) for code in WIRES.values()]
        rows.append((name, f"{size(full)}B", *(f"{size(count)}B ({count / full:.2%})" for count in sent)))
    return table(("model", "the whole model, fp32", *(f"adapter, {wire}" for wire in WIRES)), rows)


QMSUM_TRAIN, ROUNDS, GPU_FLOPS = 1095, 10, 0.4 * 19.5e12
"""QMSum's training examples; the paper's rounds at most; an A100 in fp32, as Quorum runs, at an assumed 40%."""

ALL_SPLITS = (1095 + 237 + 244) / 1095
"""Training, validation and test examples for one training example."""

PAPER = {
    "Tables III, IV, VI: five methods, three seeds": (("BART-large", "BART-base", "LED-large"), 5 * 3),
    "Table V: FedOPT, FedProx, FedNova, three seeds": (("BART-large",), 3 * 3),
    "Fig. 4: five values of τ, one seed": (("BART-large",), 5),
    "Figs. 6 and 7: three methods, three draws, 55% of the data": (("BART-large",), 2 * 3 * 3 * 0.55),
    "Figs. 8 and 10, Table VII: nine trainings, three seeds": (("BART-large",), 9 * 3),
    "Fig. 9: three methods, three seeds, 16,384 tokens": (("LongT5-base",), 3 * 3),
}
"""Experiment -> (backbones, trainings of ten rounds over QMSum). Counts where the text has none are ours."""


def whole_paper(speed: Speed) -> str:
    rows = []
    for name, (models, trainings) in PAPER.items():
        work = 0.0
        for model in models:
            s = SHAPES[model]
            source = 16384 if "16,384" in name else 1024
            work += ALL_SPLITS * QMSUM_TRAIN * frozen_flops(s, source)
            work += trainings * ROUNDS * QMSUM_TRAIN * step_flops(s, source)
        laptop = duration(work / speed.flops) if speed.flops else "not measured"
        rows.append((name, f"{size(work)}FLOP", laptop, duration(work / GPU_FLOPS)))
    return table(("experiment", "encoding and training", "two cores as measured", "one A100 at 40%, computed"), rows)


def mapping(speed: Speed) -> str:
    rows = []
    for name, s in SHAPES.items():
        source = min(s.longest, 16384 if "T5" in name or "LED" in name else 1024)
        entry = store_bytes(s, source)
        cpu = entry / (step_flops(s, source) / speed.flops) if speed.flops else None
        gpu = entry / (step_flops(s, source) / GPU_FLOPS)
        rows.append(
            (
                name,
                f"{source:,}",
                f"{size(entry * QMSUM_TRAIN * ALL_SPLITS)}B",
                f"{size(cpu)}B/s" if cpu else "not measured",
                f"{size(gpu)}B/s",
            )
        )
    return table(
        ("model", "source tokens", "store of QMSum", "read while training here", "read by an A100 at 40%"), rows
    )


def page(speed: Speed) -> str:
    """The template with its tables."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"), undefined=StrictUndefined, keep_trailing_newline=True)
    text: str = template.render(
        speed=f"{size(speed.flops)}FLOP/s in a training step" if speed.flops else "not measured yet",
        target=TARGET,
        examples=EXAMPLES,
        by_length=by_length(),
        by_clients=by_clients(speed),
        on_the_wire=on_the_wire(),
        mapping=mapping(speed),
        whole_paper=whole_paper(speed),
    )
    return text


def main() -> None:
    write_text(PAGE, page(measured()))
    print(f"{PAGE.name}: written")


if __name__ == "__main__":
    main()
