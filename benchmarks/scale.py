"""What Quorum costs at other sizes than a laptop's: reports/benchmarks/scale.json and, from it, benchmarks/SCALE.md.

`python -m benchmarks.scale` computes every table by the shapes and formulas of `shapes.py`. Times are arithmetic over
the speed that `make bench` measured (reports/benchmarks/results.json). Bytes on the wire are those of packed files.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.shapes import (
    SHAPES,
    TARGET,
    frozen_flops,
    plain_flops,
    step_flops,
    store_bytes,
)
from pipeline.federated.client_store import IN_MEMORY
from pipeline.model.adapter import Adapter, pack
from pipeline.report import documents
from pipeline.workspace.files import read_json, write_json
from pipeline.workspace.layout import REPORTS

NOT_MEASURED = "not measured"
Table = list[dict[str, str]]
"""Rows by the names of their columns."""
TEMPLATE = Path(__file__).with_name("SCALE.md.j2")
KEPT = 8
"""Adapters of one client in memory: its own, the one before it, and three of each of two best rounds."""
EXAMPLES = 100
"""Of a client, in all tables."""


@dataclass(frozen=True)
class Speed:
    """What `make bench` measured here; None where it has not run."""

    flops: float | None
    client_round: float | None


def measured() -> Speed:
    path = REPORTS / "benchmarks" / "results.json"
    results: dict[str, Any] = read_json(path) if path.is_file() else {}
    details = {name: value for rows in results.values() for row in rows for name, value in row["details"].items()}
    flops = details.get("gigaflops_a_second")
    return Speed(flops * 1e9 if flops else None, details.get("real_adapter"))


# -- tables -----------------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows of cells, by the names of their columns."""
    return [dict(zip(head, cells, strict=True)) for cells in rows]


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


def by_length() -> Table:
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


def by_clients(speed: Speed) -> Table:
    s = SHAPES["SmolLM2-135M"]
    rows = []
    for clients, share in ((3, 1.0), (100, 1.0), (1_000, 1.0), (1_000, 0.1), (10_000, 1.0), (10_000, 0.01)):
        asked = round(clients * share)
        work = asked * EXAMPLES * step_flops(s, 448)
        wire = 2 * asked * 4 * s.adapter_parameters
        held = (KEPT * min(clients, IN_MEMORY) + 2) * 4 * s.adapter_parameters
        rows.append(
            (
                f"{clients:,}",
                f"{share:.0%}",
                f"{size(work)}FLOP",
                duration(work / speed.flops) if speed.flops else NOT_MEASURED,
                duration(asked * speed.client_round) if speed.client_round else NOT_MEASURED,
                f"{size(wire)}B",
                f"{size(held)}B",
            )
        )
    return table(
        ("clients", "drawn a round", "arithmetic", "on this machine", "the loop's own", "on the wire", "in memory"),
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


def on_the_wire() -> Table:
    rows = []
    for name, s in SHAPES.items():
        adapter = s.adapter()
        full = 4 * s.parameters
        sent = [len(pack(code(adapter))) for code in WIRES.values()]
        rows.append((name, f"{size(full)}B", *(f"{size(count)}B ({count / full:.2%})" for count in sent)))
    return table(("model", "the whole model, fp32", *(f"adapter, {wire}" for wire in WIRES)), rows)


QMSUM_TRAIN, ROUNDS, GPU_FLOPS = 1095, 10, 0.4 * 19.5e12
"""QMSum's training examples; the paper's rounds at most; an A100 in fp32, at an assumed 40%."""

QMSUM = 1095 + 237 + 244
"""All of its examples."""

PAPER = {
    "Tables III, IV, VI: five methods, three seeds": (("BART-large", "BART-base", "LED-large"), 5 * 3),
    "Table V: FedOPT, FedProx, FedNova, three seeds": (("BART-large",), 3 * 3),
    "Fig. 4: five values of τ, one seed": (("BART-large",), 5),
    "Figs. 6 and 7: three methods, three draws, 55% of the data": (("BART-large",), 2 * 3 * 3 * 0.55),
    "Figs. 8 and 10, Table VII: nine trainings, three seeds": (("BART-large",), 9 * 3),
    "Fig. 9: three methods, three seeds, 16,384 tokens": (("LongT5-base",), 3 * 3),
}
"""Experiment -> (backbones, trainings of ten rounds over QMSum). Counts where the text has none are ours."""


def whole_paper(speed: Speed) -> Table:
    rows: list[tuple[str, float]] = []
    encoded: set[tuple[str, int]] = set()
    for name, (models, trainings) in PAPER.items():
        work = 0.0
        for model in models:
            s = SHAPES[model]
            source = 16384 if "16,384" in name else 1024
            if (model, source) not in encoded:
                work += QMSUM * frozen_flops(s, source)
            encoded.add((model, source))
            work += trainings * ROUNDS * QMSUM_TRAIN * step_flops(s, source)
        rows.append((name, work))
    rows.append(("all of it", sum(work for _, work in rows)))
    cells = [
        (
            name,
            f"{size(work)}FLOP",
            duration(work / speed.flops) if speed.flops else NOT_MEASURED,
            duration(work / GPU_FLOPS),
        )
        for name, work in rows
    ]
    return table(
        ("experiment", "encoding and training", "two cores at the speed above", "one A100 at 40%, computed"), cells
    )


def mapping(speed: Speed) -> Table:
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
                f"{size(entry * QMSUM)}B",
                f"{size(cpu)}B/s" if cpu else NOT_MEASURED,
                f"{size(gpu)}B/s",
            )
        )
    return table(
        ("model", "source tokens", "store of QMSum", "read while training here", "read by an A100 at 40%"), rows
    )


def tables(speed: Speed) -> dict[str, Any]:
    """What the template of SCALE.md names."""
    return {
        "speed": f"{size(speed.flops)}FLOP/s in a training step" if speed.flops else "not measured yet",
        "target_tokens": TARGET,
        "examples": EXAMPLES,
        "clients_in_memory": IN_MEMORY,
        "by_length": by_length(),
        "by_clients": by_clients(speed),
        "on_the_wire": on_the_wire(),
        "mapping": mapping(speed),
        "paper": whole_paper(speed),
    }


def main() -> None:
    """Write the tables, and the page from them."""
    write_json(REPORTS / "benchmarks" / "scale.json", tables(measured()))
    documents.run(TEMPLATE)


if __name__ == "__main__":
    main()
