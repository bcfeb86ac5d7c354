"""A federated run of an extractor, FedAvg on three clients, against Flower's simulation with plain transformers.

Both sides pick sentences from the same made-up documents with MiniLM frozen below the same two layers, SGD, the same
batches and start. The other side runs MiniLM in every step, all units of a batch at once. Ours reads the units' stored
vectors. Each side runs twice, with one round and with more: the difference is the time of client-rounds alone.
"""

import functools
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks import flower
from benchmarks.comparison import OURS, THEIRS, Row, interleaved, spread
from pipeline.clients.batches import batches
from pipeline.engines.in_process import InProcess
from pipeline.errors import QuorumError
from pipeline.federated.algorithms import fedavg
from pipeline.federated.blobs import Blobs
from pipeline.federated.callbacks import Stopping
from pipeline.federated.local import LocalClientData
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.optimizer import LocalTraining
from pipeline.federated.randomness import Randomness, batch_order
from pipeline.federated.state import Private
from pipeline.model.adapter import Adapter, read_adapter, write_adapter
from pipeline.model.backbone import Rendered
from pipeline.model.encoder_loading import load_encoder
from pipeline.model.entry import Entry
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.obtain import obtain
from pipeline.model.presets import OFFLINE_ENCODER
from pipeline.model.store import PrefixStore
from pipeline.tasks.encoded import EncoderWithHead
from pipeline.tasks.extract import TASK
from pipeline.tasks.extractor import initial_extractor, unit_logits, unit_states

CLIENTS, ROUNDS, DOCUMENTS, UNITS, TOKENS, SEED = ("first", "second", "third"), 5, 96, 7, 28, 1
EPOCHS, BATCH, RATE, WIDTH = 2, 32, 0.005, 384
LOCAL = LocalTraining(
    learning_rate=RATE,
    weight_decay=0.0,
    batch_size=BATCH,
    local_epochs=EPOCHS,
    clip_norm=1e6,
    optimizer="sgd",
    loss_over="examples",
)
WHAT = f"a client-round of an extractor, {DOCUMENTS} documents of {UNITS} sentences, {EPOCHS} epochs"


def documents_of(client: str) -> list[tuple[list[list[int]], list[int]]]:
    """A client's documents: units of token ids, with [CLS] and [SEP], and their labels; one unit is in an extract."""
    generator = torch.Generator().manual_seed(CLIENTS.index(client))
    ids = torch.randint(2000, 30_000, (DOCUMENTS, UNITS, TOKENS), generator=generator)
    ids[..., 0], ids[..., -1] = 101, 102
    places = torch.randint(UNITS, (DOCUMENTS,), generator=generator)
    labels = torch.nn.functional.one_hot(places, UNITS)
    return list(zip(ids.tolist(), labels.tolist(), strict=True))


def ours(folder: Path, rounds: int) -> None:
    """The run from the store, which it fills if it is empty."""
    encoder = load_encoder(folder.parent / "backbone", FrozenPart.parse("e,0-5"), torch.device("cpu"))
    store = PrefixStore(folder.parent / "store", torch.device("cpu"), cache_bytes=1_000_000_000)
    trained = {}
    for client in CLIENTS:
        entries = []
        for number, (units, labels) in enumerate(documents_of(client)):
            key = f"{CLIENTS.index(client)}{number:063d}"
            if not store.has(key):
                ids, places = tuple(token for unit in units for token in unit), tuple(range(0, UNITS * TOKENS, TOKENS))
                whole = next(
                    iter(encoder.encode([Rendered(ids, tuple(labels), len(ids), len(ids), places, apart=True)]))
                )
                store.put(key, TASK.head_input(encoder, whole))
            entries.append(Entry(key, key, UNITS, UNITS * TOKENS))
        trained[client] = LocalClientData(entries, [], EncoderWithHead(encoder, TASK), store.training, LOCAL)
    algorithm = fedavg.build(fedavg.Hyperparameters())
    engine = InProcess(algorithm, trained, {}, Private.begin(Blobs(folder / "states"), {}), seed=SEED)
    begun = initial_progress(algorithm, initial_extractor(WIDTH, SEED), engine)
    progress = run_rounds(algorithm, engine, begun, Participation(), [Stopping(rounds, rounds)], seed=SEED)
    write_adapter(folder / "server.safetensors", progress.server.adapter)


@functools.cache
def _plain_model(folder: Path) -> Any:
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder, torch_dtype=torch.float32).eval()


def train_plainly(adapter: Adapter, client: str, number: int, backbone: Path) -> Adapter:
    """One client's round with nothing stored: MiniLM's full forward of a batch's units in every step."""
    model, documents = _plain_model(backbone), documents_of(client)
    student = {name: tensor.clone().requires_grad_() for name, tensor in sorted(adapter.items())}
    optimizer = torch.optim.SGD(student.values(), lr=RATE)
    for epoch in range(EPOCHS):
        for chosen in batches(batch_order(Randomness(SEED, client, number), epoch, DOCUMENTS), BATCH):
            ids = torch.tensor([unit for i in chosen for unit in documents[i][0]])
            with torch.no_grad():
                vectors = model(input_ids=ids).last_hidden_state.mean(1)
            logits = unit_logits(unit_states(vectors.split(UNITS), student), student)
            labels = torch.tensor([label for i in chosen for label in documents[i][1]])
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum") / len(chosen)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return {name: tensor.detach() for name, tensor in student.items()}


def theirs(folder: Path, rounds: int) -> None:
    train = functools.partial(train_plainly, backbone=folder.parent / "backbone")
    begun = initial_extractor(WIDTH, SEED)
    flower.simulate(CLIENTS, rounds, begun, DOCUMENTS, train, folder / "server.safetensors")


def _in_a_process(side: str, folder: Path, rounds: int) -> Adapter:
    folder.mkdir(exist_ok=True)
    (folder / "server.safetensors").unlink(missing_ok=True)
    flower.in_a_process("benchmarks.extraction_run", side, str(folder), str(rounds))
    if not (folder / "server.safetensors").is_file():  # Flower reports an error of its apps and goes on
        raise QuorumError(f"{WHAT}, {side}: ended without a model")
    return read_adapter(folder / "server.safetensors")


def rows(repeats: int) -> list[Row]:
    """The time of a client-round on either side: (all rounds - one round) / client-rounds between."""
    against = "plain transformers under Flower's simulation"
    if not flower.installed():
        return [Row(WHAT, against, promised=3.0, skipped=flower.MISSING)]
    with tempfile.TemporaryDirectory(prefix="quorum-bench-") as name:
        obtain(OFFLINE_ENCODER, Path(name) / "backbone", Path(name))
        _in_a_process(OURS, Path(name) / OURS, 1)  # fills the store
        sides = {
            f"{side} {rounds}": functools.partial(_in_a_process, side, Path(name) / side, rounds)
            for side in (OURS, THEIRS)
            for rounds in (1, ROUNDS)
        }
        seconds, models = interleaved(sides, repeats, warm=False)
    ours_, theirs_ = (models[f"{side} {ROUNDS}"] for side in (OURS, THEIRS))
    apart = max(float((ours_[tensor] - theirs_[tensor]).abs().max()) for tensor in ours_)
    if apart > 1e-3:
        raise QuorumError(f"{WHAT}: the two sides trained different things: they are {apart:.1e} apart")
    between = (ROUNDS - 1) * len(CLIENTS)
    each = {
        side: (seconds[f"{side} {ROUNDS}"].median - seconds[f"{side} 1"].median) / between for side in (OURS, THEIRS)
    }
    whole = {side: seconds[f"{side} {ROUNDS}"].median for side in (OURS, THEIRS)}
    details = {"largest_difference": apart, **{f"whole_run_{side}": time for side, time in whole.items()}}
    ours_, theirs_ = (spread([each[side]]) for side in (OURS, THEIRS))
    return [Row(WHAT, against, each[THEIRS] / each[OURS], 3.0, ours_, theirs_, details=details)]


if __name__ == "__main__":
    # Ray's workers find functions by their module's name, which here is `__main__`.
    from benchmarks import extraction_run

    {OURS: extraction_run.ours, THEIRS: extraction_run.theirs}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
