"""bf16 against fp32 on the embedded backbone: what may differ, and how far it does -> reports/benchmarks/precision.md.

`python -m benchmarks.precision [--source 1024]`, after `make repro`, whose adapters it reads; about forty minutes. Only
training and validation examples are looked at. Losses and summaries are those of fixed adapters; trainings start from
one adapter, with the same batches.
"""

import argparse
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import torch

from benchmarks.__main__ import OUT, machine
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import examples_of
from pipeline.corpora.hash_order import hash_order
from pipeline.corpora.qmsum import DOMAINS
from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import Algorithm, ClientState
from pipeline.federated.algorithms import fedavg, fedselectkd
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Stopping
from pipeline.federated.head import through_head
from pipeline.federated.local import LocalClientData
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.objectives.cross_entropy import entropy
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.randomness import Randomness
from pipeline.federated.state import Private
from pipeline.model.adapter import Adapter, init_adapter, read_adapter
from pipeline.model.backbone import Backbone, Limits, Prefix, Row, targets_of
from pipeline.model.decoding_rule import DecodingRule
from pipeline.model.entry import Entry
from pipeline.model.generation import generate
from pipeline.model.loading import load_backbone
from pipeline.model.precision import Precision
from pipeline.model.presets import OFFLINE
from pipeline.tasks.rouge import rouge_of
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import write_json, write_text
from pipeline.workspace.progress import progress, say
from pipeline.workspace.quiet import silence

RUNS = ("fedavg-1", "single-1")
"""Whose adapters are fixed: the server's of one, the clients' own of the other."""
TARGET, BATCH, TAU, BOTTLENECK, SEED = 160, 32, 5.0, 1152, 1
STEPS, ALONE, TOGETHER, ROUNDS = 50, 80, 32, 6
"""Of one client's training and its examples; of each client's in the federated trainings, and their rounds."""
RULE = DecodingRule(max_tokens=128, no_repeat_ngram=3)
KNOBS = LocalTraining(learning_rate=6e-4, weight_decay=0.01, batch_size=16, local_epochs=1, clip_norm=1.0)


@dataclass
class Found:
    """What one precision gives: by run, client and example."""

    losses: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    sure: dict[str, list[float]] = field(default_factory=dict)
    texts: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    trained: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """One line of the table: a difference, bf16 less fp32, and how large it may be.

    Where it has an interval, that must hold 0, and `half` its width is what may be so large.
    """

    what: str
    difference: float
    allowed: float
    more: str = ""
    half: float | None = None

    @property
    def kept(self) -> bool:
        if self.half is None:
            return abs(self.difference) <= self.allowed
        return abs(self.difference) <= self.half <= self.allowed


def read(precision: Precision, validation: Mapping[str, list[Conversation]], limits: Limits) -> Found:
    """Losses, entropies and summaries of fixed adapters, then trainings, in one precision."""
    backbone = load_backbone(layout.backbone(OFFLINE), 6, torch.device("cpu"), precision)
    found = Found()
    kept: dict[str, list[Prefix]] = {client: [] for client in validation}
    with progress(f"precision {precision}: reading", sum(map(len, validation.values()))) as advance:
        for client, examples in validation.items():
            adapters = {run: read_adapter(layout.adapter(f"main/{run}", client)) for run in RUNS}
            for at in range(0, len(examples), BATCH):
                batch = examples[at : at + BATCH]
                parts = [backbone.encode(backbone.render(e, limits), for_generation=True) for e in batch]
                kept[client] += [prefix for prefix, _ in parts]
                _note(backbone, found, client, [prefix | extra for prefix, extra in parts], adapters)
                advance(len(batch))
    found.trained = _trainings(backbone, kept, limits)
    return found


def _note(
    backbone: Backbone, found: Found, client: str, prefixes: Sequence[Prefix], adapters: Mapping[str, Adapter]
) -> None:
    targets = targets_of(prefixes)
    for run, adapter in adapters.items():
        with torch.no_grad():
            hidden = backbone.target_hidden(prefixes, adapter)
        losses = through_head(backbone.head, hidden, targets).tolist()
        found.losses.setdefault(run, {}).setdefault(client, []).extend(losses)
        if run == RUNS[0]:
            entropies = through_head(backbone.head, hidden, targets, entropy)
            found.sure.setdefault(client, []).extend((entropies < TAU).float().tolist())
    pairs = [Row(place, adapter) for adapter in adapters.values() for place in range(len(prefixes))]
    texts = [backbone.text(tokens) for tokens in generate(backbone, prefixes, pairs, RULE)]
    for number, run in enumerate(adapters):
        own = texts[number * len(prefixes) : (number + 1) * len(prefixes)]
        found.texts.setdefault(run, {}).setdefault(client, []).extend(own)


def _trainings(backbone: Backbone, validation: Mapping[str, list[Prefix]], limits: Limits) -> dict[str, float]:
    """Validation losses after each training, in nats, meaned over the clients it has."""
    everything = examples_of(["qmsum"], load_task("pipeline.tasks.summarize").kind).values()
    own = {c: [e for e in everything if e.split == "train" and e.domain == c] for c in validation}
    last = list(validation)[-1]
    alone = _client(backbone, _drawn(own[last], ALONE), limits, STEPS * KNOBS.batch_size // ALONE)
    first = init_adapter(backbone.adapted_layers, backbone.width, BOTTLENECK, SEED)
    say(f"precision {backbone.precision}: {STEPS} steps of one client")
    trained = {"alone": _loss(backbone, validation[last], alone.fit(first, Randomness(SEED, last, 1)).adapter)}
    clients = {name: _client(backbone, _drawn(own[name], TOGETHER), limits, 1) for name in validation}
    select = fedselectkd.Hyperparameters.model_validate({"tau": TAU, "lambda": 0.2, "local_start": "server"})
    methods = {
        "AdaFedAvg-local": fedavg.build(fedavg.Hyperparameters()),
        "AdaFedSelectKD": fedselectkd.build(select),
    }
    for name, algorithm in methods.items():
        say(f"precision {backbone.precision}: {ROUNDS} rounds of {name}")
        adapters = _federated(algorithm, clients, first)
        losses = [_loss(backbone, validation[client], adapter) for client, adapter in adapters.items()]
        trained[name] = statistics.mean(losses)
    return trained


def _drawn(examples: Sequence[Conversation], count: int) -> list[Conversation]:
    known = {example.id: example for example in examples}
    return [known[i] for i in hash_order(list(known))[:count]]


def _client(backbone: Backbone, examples: Sequence[Conversation], limits: Limits, epochs: int) -> LocalClientData:
    rendered = [backbone.render(example, limits) for example in examples]
    prefixes = {str(i): backbone.encode(item, for_generation=False)[0] for i, item in enumerate(rendered)}
    entries = [Entry(str(i), str(i), len(item.target)) for i, item in enumerate(rendered)]
    knobs = LocalTraining(**(asdict(KNOBS) | {"local_epochs": epochs}))
    return LocalClientData(entries, [], backbone, lambda keys: [prefixes[key] for key in keys], knobs)


def _federated(algorithm: Algorithm, clients: Mapping[str, LocalClientData], first: Adapter) -> dict[str, Adapter]:
    """The clients' own adapters after the last round."""
    private = Private.begin(Blobs(), {client: ClientState(first) for client in clients})
    engine = InProcess(algorithm, clients, {}, private, seed=SEED)
    begun = initial_progress(algorithm, first, engine)
    run_rounds(algorithm, engine, begun, Participation(), [Stopping(ROUNDS, ROUNDS)], seed=SEED)
    return {name: state.adapter for name, state in private.states.items()}


def _loss(backbone: Backbone, prefixes: Sequence[Prefix], adapter: Adapter) -> float:
    losses: list[float] = []
    for at in range(0, len(prefixes), BATCH):
        with torch.no_grad():
            hidden = backbone.target_hidden(prefixes[at : at + BATCH], adapter)
        losses += through_head(backbone.head, hidden, targets_of(prefixes[at : at + BATCH])).tolist()
    return statistics.fmean(losses)


def compared(fp32: Found, bf16: Found, references: Mapping[str, list[str]]) -> list[Line]:
    """Every promise beside what was found."""
    lines = [
        Line(f"loss of {run}'s adapter, {client}, nats a token", _mean(bf16, fp32, run, client), 0.005)
        for run in RUNS
        for client in references
    ]
    lines.append(Line(f"validation loss after {STEPS} steps", bf16.trained["alone"] - fp32.trained["alone"], 0.01))
    gains = [found.trained["AdaFedSelectKD"] - found.trained["AdaFedAvg-local"] for found in (bf16, fp32)]
    of_both = f"{gains[0]:+.5f} in bf16, {gains[1]:+.5f} in fp32"
    lines.append(Line("AdaFedSelectKD - AdaFedAvg-local, validation loss", gains[0] - gains[1], 0.001, of_both))
    lines.append(_of_summaries(fp32, bf16, references))
    for client in references:
        shares = [100 * statistics.fmean(found.sure[client]) for found in (bf16, fp32)]
        of_both = f"{shares[0]:.2f} in bf16, {shares[1]:.2f} in fp32"
        lines.append(Line(f"share of tokens distilled, {client}, points", shares[0] - shares[1], 1.0, of_both))
    return lines


def _mean(bf16: Found, fp32: Found, run: str, client: str) -> float:
    return statistics.fmean(bf16.losses[run][client]) - statistics.fmean(fp32.losses[run][client])


def _of_summaries(fp32: Found, bf16: Found, references: Mapping[str, list[str]]) -> Line:
    """Average ROUGE, each example's difference meaned over the adapters; an interval of 1.96 standard errors."""
    differences: list[float] = []
    for client, wanted in references.items():
        pairs = [[_averages(wanted, found.texts[run][client]) for found in (bf16, fp32)] for run in RUNS]
        differences += [statistics.fmean(b[i] - f[i] for b, f in pairs) for i in range(len(wanted))]
    middle = statistics.fmean(differences)
    half = 1.96 * statistics.stdev(differences) / math.sqrt(len(differences))
    same = statistics.fmean(
        a == b for run in RUNS for c in references for a, b in zip(bf16.texts[run][c], fp32.texts[run][c], strict=True)
    )
    more = f"95% interval {middle - half:+.3f} … {middle + half:+.3f}; {same:.0%} of the summaries are the same"
    return Line("average ROUGE of validation summaries", middle, 0.3, more, half)


def _averages(references: Sequence[str], predictions: Sequence[str]) -> list[float]:
    return [row["average"] for row in rouge_of(references, predictions, use_stemmer=False)]


def markdown(lines: Sequence[Line]) -> str:
    head = ["| what | bf16 less fp32 | at most | kept | |", "|---|---|---|---|---|"]
    rows = [
        f"| {line.what} | {line.difference:+.5f} | {line.allowed:g} | "
        f"{'yes' if line.kept else '**no**'} | {line.more} |"
        for line in lines
    ]
    return "\n".join([*head, *rows]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=int, default=1024, help="source tokens")
    parser.add_argument("--examples", type=int, help="at most so many validation examples a client")
    arguments = parser.parse_args()
    silence()
    limits = Limits(arguments.source, TARGET)
    examples = examples_of(["qmsum"], load_task("pipeline.tasks.summarize").kind)
    everything = [example for example in examples.values() if example.split == "val"]
    validation = {c: [e for e in everything if e.domain == c][: arguments.examples] for c in DOMAINS}
    found: dict[Precision, Found] = {}
    for precision in ("fp32", "bf16"):
        found[precision] = read(precision, validation, limits)
        write_json(_kept(precision), asdict(found[precision]))
    references = {client: [example.target for example in examples] for client, examples in validation.items()}
    lines = compared(found["fp32"], found["bf16"], references)
    about = {"day": date.today().isoformat(), "machine": machine(), "source_tokens": arguments.source}
    write_json(OUT / "precision.json", {"about": about, "lines": [asdict(line) for line in lines]})
    write_text(OUT / "precision.md", markdown(lines))
    print(markdown(lines))


def _kept(precision: Precision) -> Path:
    return layout.work() / "precision" / f"{precision}.json"


if __name__ == "__main__":
    main()
