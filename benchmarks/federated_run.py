"""A whole federated run, AdaFedAvg with three clients and four rounds, against Flower's simulation with a plain client.

Both sides train the embedded backbone's adapters on the same random tokens with the same batches, optimizer and
weights, each in processes of its own, timed from start to end; how far the final adapters are apart stands beside. The
plain client is what Flower's own quickstart has, with transformers' model, its full forward and hooks for the adapters.
Quorum's time is taken with an empty prefix store and with a filled one.
"""

import functools
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from benchmarks import flower
from benchmarks.backbones import NO_EMBEDDED, embedded, has_embedded
from benchmarks.comparison import OURS, THEIRS, Row, interleaved
from benchmarks.plain_step import adapting_from
from pipeline.clients.batches import batches
from pipeline.engines.in_process import InProcess
from pipeline.errors import QuorumError
from pipeline.federated.algorithm import ClientState
from pipeline.federated.algorithms import fedavg
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Stopping
from pipeline.federated.local import LocalClientData
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.optimizer import BETAS, EPSILON, LocalTraining
from pipeline.federated.randomness import Randomness, batch_order
from pipeline.federated.state import Private
from pipeline.model.adapter import Adapter, attached, init_adapter, read_adapter, write_adapter
from pipeline.model.backbone import Rendered
from pipeline.model.entry import Entry
from pipeline.model.precision import Precision, resolve
from pipeline.model.presets import OFFLINE
from pipeline.model.store import PrefixStore
from pipeline.workspace import layout

CLIENTS, ROUNDS, EXAMPLES, SOURCE = ("first", "second", "third"), 4, 8, 448
TRAINING = LocalTraining(learning_rate=6e-4, weight_decay=0.01, batch_size=4, local_epochs=1, clip_norm=1.0)
SEED = 1
PRECISION = resolve("auto", "cpu")
"""Of Quorum's side: what a plan says on this machine."""
WHAT = f"a whole run, {len(CLIENTS)} clients, {ROUNDS} rounds, AdaFedAvg, {EXAMPLES} examples a client"
EXACT = "exact"
AGAINST = "Flower's simulation with a plain client"
SAME = 1e-4
"""Adapters whose entries differ by no more agree."""


def examples_of(client: str) -> list[Rendered]:
    """Sources of full length, targets of 20 to 140 tokens."""
    generator = torch.Generator().manual_seed(CLIENTS.index(client))

    def ids(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(5, 40_000, (count,), generator=generator).tolist())

    lengths = torch.randint(20, 140, (EXAMPLES,), generator=generator).tolist()
    return [Rendered(ids(SOURCE), ids(length), SOURCE, SOURCE) for length in lengths]


def initial(layers: range, width: int) -> Adapter:
    return init_adapter(layers, width, 2 * width, SEED)


def ours(folder: Path, precision: Precision = PRECISION) -> None:
    """The run as `pipeline train` makes it, without validation, of which the other side has none; `folder` holds the
    store and receives the server's adapter.
    """
    backbone = embedded().backbone(precision)
    store = PrefixStore(folder / "store")
    trained = {}
    for client in CLIENTS:
        entries = []
        for number, rendered in enumerate(examples_of(client)):
            key = f"{CLIENTS.index(client)}{number:063d}"
            if not store.has(key):
                store.put(key, backbone.encode(rendered, for_generation=False)[0])
            entries.append(Entry(key, key, len(rendered.target), SOURCE))
        trained[client] = LocalClientData(entries, [], backbone, store.training, TRAINING)
    algorithm = fedavg.build(fedavg.Hyperparameters())
    first = initial(backbone.adapted_layers, backbone.width)
    private = Private.begin(Blobs(folder / "states"), {client: ClientState(first) for client in CLIENTS})
    engine = InProcess(algorithm, trained, {}, private, seed=SEED)
    begun, ending = initial_progress(algorithm, first, engine), Stopping(ROUNDS, ROUNDS)
    progress = run_rounds(algorithm, engine, begun, Participation(), [ending], seed=SEED)
    write_adapter(folder / "server.safetensors", progress.server.adapter)


@functools.cache
def _plain_model() -> Any:
    return embedded().plain(torch.float32)


def train_plainly(adapter: Adapter, client: str, number: int) -> Adapter:
    """One client's round with nothing stored: full forward of source and target, adapters by hooks."""
    model, examples = _plain_model(), examples_of(client)
    student = {name: tensor.clone().requires_grad_() for name, tensor in sorted(adapter.items())}
    norms = [tensor for name, tensor in student.items() if ".norm." in name]
    matrices = [tensor for name, tensor in student.items() if ".norm." not in name]
    groups = [{"params": matrices, "weight_decay": TRAINING.weight_decay}, {"params": norms, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=TRAINING.learning_rate, betas=BETAS, eps=EPSILON)
    order = batch_order(Randomness(SEED, client, number), 0, len(examples))
    for batch in batches(order, TRAINING.batch_size):
        chosen = [examples[i] for i in batch]
        # Padding on the right changes nothing before it; the positions that count are picked below.
        inputs = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(item.source + item.target[:-1]) for item in chosen], batch_first=True
        )
        with attached(model.model.layers, adapting_from(SOURCE - 1, student)):
            logits = model(inputs, use_cache=False, logits_to_keep=inputs.shape[1] - SOURCE + 1).logits
        predicted = [row[: len(item.target)] for row, item in zip(logits, chosen, strict=True)]
        targets = torch.tensor([token for item in chosen for token in item.target])
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(torch.cat(predicted), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(student.values(), TRAINING.clip_norm)
        optimizer.step()
    return {name: tensor.detach() for name, tensor in student.items()}


def theirs(folder: Path) -> None:
    config = AutoConfig.from_pretrained(layout.backbone(OFFLINE))
    begun = initial(range(config.num_hidden_layers - 6, config.num_hidden_layers), config.hidden_size)
    flower.simulate(CLIENTS, ROUNDS, begun, EXAMPLES, train_plainly, folder / "server.safetensors")


def exact(folder: Path) -> None:
    """The same in fp32, in which the other side trains: by it the two are compared."""
    ours(folder, "fp32")


def _in_a_process(side: str, folder: Path) -> Adapter:
    adapter = folder / "server.safetensors"
    adapter.unlink(missing_ok=True)
    flower.in_a_process("benchmarks.federated_run", side, str(folder))
    if not adapter.is_file():  # Flower reports an error of its apps and goes on
        raise QuorumError(f"a whole run, {side}: ended without an adapter")
    return read_adapter(adapter)


def _apart(found: Adapter, final: Adapter) -> tuple[float, float]:
    """How far Quorum's final adapter is from Flower's: the largest entry, and the norm relative to all that changed.

    AdamW divides a gradient by its own size, so an entry whose gradient is all rounding moves by a whole step either
    way; in the norm such entries hardly count.
    """
    made = embedded()
    began = initial(made.layers(), made.config().hidden_size)
    differences = {name: found[name] - tensor for name, tensor in final.items()}
    largest = max(float(d.abs().max()) for d in differences.values())
    changed = sum(float((final[name] - began[name]).square().sum()) for name in final)
    return largest, (sum(float(d.square().sum()) for d in differences.values()) / changed) ** 0.5


def rows(repeats: int) -> list[Row]:
    plans = [(f"{WHAT}, from a filled store, {PRECISION}", 6.0), (f"{WHAT}, encoding included, {PRECISION}", 7.0)]
    apart = f"{WHAT}: the largest difference of the final adapters, both in fp32"
    missing = NO_EMBEDDED if not has_embedded() else None if flower.installed() else flower.MISSING
    if missing:
        return [Row(what, AGAINST, promised=promised, skipped=missing) for what, promised in [*plans, (apart, 1.0)]]
    with tempfile.TemporaryDirectory(prefix="quorum-bench-") as name:
        filled, empty, plain, same = (Path(name) / part for part in ("filled", "empty", "plain", "same"))
        for folder in (filled, empty, plain, same):
            folder.mkdir()

        def encoding() -> Adapter:
            shutil.rmtree(empty / "store", ignore_errors=True)
            return _in_a_process(OURS, empty)

        _in_a_process(OURS, filled)
        sides = {
            OURS: lambda: _in_a_process(OURS, filled),
            "encoding": encoding,
            THEIRS: lambda: _in_a_process(THEIRS, plain),
        }
        seconds, adapters = interleaved(sides, repeats, warm=False)
        compared = _in_a_process(EXACT, same)
    largest, relative = _apart(compared, adapters[THEIRS])
    if relative > 0.01:
        raise QuorumError(f"a whole run: the two sides trained different things: they are {relative:.1%} apart")
    faster = [
        Row(
            what,
            AGAINST,
            ratio=seconds[THEIRS].median / seconds[side].median,
            promised=promised,
            ours=seconds[side],
            theirs=seconds[THEIRS],
        )
        for (what, promised), side in zip(plans, (OURS, "encoding"), strict=True)
    ]
    details = {OURS: largest, THEIRS: SAME, "difference_relative_to_change": relative}
    # No difference at all would be better than any number of times.
    closer = SAME / max(largest, SAME / 1000)
    return [*faster, Row(apart, f"{AGAINST}; what counts as agreeing", closer, 1.0, unit="", details=details)]


if __name__ == "__main__":
    # Ray's workers find functions by their module's name, which here is `__main__`.
    from benchmarks import federated_run

    {OURS: federated_run.ours, EXACT: federated_run.exact, THEIRS: federated_run.theirs}[sys.argv[1]](Path(sys.argv[2]))
