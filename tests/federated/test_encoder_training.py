"""Training above a cut encoder: equality with plain transformers, every algorithm, and schedules by hand."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from conftest import TRAINING
from federations import FEDAVG, begin, build
from halfway import run
from torch import Tensor, nn
from transformers import BertConfig, BertModel, DistilBertConfig, DistilBertModel

from pipeline.clients.batches import batches
from pipeline.corpora.documents import Document
from pipeline.corpora.labelled import Labelled, Question
from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import ClientState, Sent
from pipeline.federated.algorithms import ALGORITHMS
from pipeline.federated.local import LocalClientData
from pipeline.federated.objectives.extraction import Extraction
from pipeline.federated.optimizer import LocalTraining, optimizer_of, schedule_of
from pipeline.federated.randomness import Randomness, batch_order
from pipeline.model.adapter import Adapter
from pipeline.model.backbone import Limits
from pipeline.model.encoder import Encoder
from pipeline.model.entry import Entry
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.tiny import tiny_encoder, tiny_wordpieces
from pipeline.tasks.answer import Answer
from pipeline.tasks.classify import Classify
from pipeline.tasks.encoded import EncoderWithHead, to_store
from pipeline.tasks.extract import TASK as EXTRACT

TASK = Classify()
TEXTS = [Labelled(f"e{i}", "train", "", "", f"{'ab'[i % 2] * (2 + i % 3)} {i}", "xy"[i % 2]) for i in range(12)]
CLASSES = TASK.classes(TEXTS)
SMALL = {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6, "num_attention_heads": 12}
MINILM = partial(BertModel, BertConfig(vocab_size=30522, **SMALL), add_pooling_layer=False)
DISTILBERT = partial(DistilBertModel, DistilBertConfig(vocab_size=30522))
PARAMETERS = [(MINILM, 11_918_592, 1_774_464, 155_540), (DISTILBERT, 23_835_648, 7_087_872, 605_972)]


def encoder(cut: str = "e,0-1") -> Encoder:
    return Encoder("tiny-bert", tiny_encoder("bert"), tiny_wordpieces(), FrozenPart.parse(cut), pool="mean")


def initial_of(made: Encoder) -> Adapter:
    return made.initial("layers", 0, 1) | TASK.initial(made, CLASSES, 1)


def client(
    made: Encoder, texts: Sequence[Any], scored: Sequence[Any] = (), task: Any = TASK, tokens: int = 1, **knobs: Any
) -> LocalClientData:
    """The longest text of a client has 60 wordpieces."""
    rendered = {text.id: task.render(made, text, CLASSES, Limits(60, 1))[0] for text in (*texts, *scored)}
    stored = [to_store(made, task, prefix) for prefix in made.encode(list(rendered.values()))]
    prefixes = dict(zip(rendered, stored, strict=True))
    train, val = ([Entry(text.id, text.id, tokens) for text in own] for own in (texts, scored))
    local = replace(TRAINING, **({"batch_size": 4} | knobs))
    return LocalClientData(train, val, EncoderWithHead(made, task), lambda keys: [prefixes[key] for key in keys], local)


class Plain(nn.Module):
    """The same network in transformers and torch alone; nothing is stored, everything is run."""

    def __init__(self, state: Adapter) -> None:
        super().__init__()
        self.bert: Any = tiny_encoder("bert").eval()
        self.dense, self.out = nn.Linear(32, 32), nn.Linear(32, 2)
        self.load_state_dict({name.removeprefix("head."): tensor for name, tensor in state.items()}, strict=False)
        self.bert.requires_grad_(False)
        self.bert.encoder.layer[2].requires_grad_(True)

    def forward(self, texts: Sequence[Labelled]) -> Tensor:
        read = tiny_wordpieces()([text.text for text in texts], padding=True, return_tensors="pt")
        hidden = self.bert(**read).last_hidden_state
        mask = read["attention_mask"][..., None].float()
        return self.out(self.dense((hidden * mask).sum(1) / mask.sum(1)).relu())  # type: ignore[no-any-return]


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_training_from_the_store_is_training_with_plain_transformers(optimizer: Any) -> None:
    """The same first weights, batches and order: the same mean loss and the same head after six steps, two epochs."""
    made, rng = encoder(), Randomness(3, "a", 1)
    start_ = initial_of(made)
    trained, trace, _ = client(made, TEXTS, optimizer=optimizer, local_epochs=2).fit(start_, rng)
    plain = Plain(start_)
    learned = [tensor for tensor in plain.parameters() if tensor.requires_grad]
    step: torch.optim.Optimizer = torch.optim.SGD(learned, lr=1e-2)
    if optimizer == "adamw":
        matrices, vectors = ([one for one in learned if (one.dim() > 1) == wide] for wide in (True, False))
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0}]
        step = torch.optim.AdamW(groups, lr=1e-2)
    losses = []
    for epoch in range(2):
        for chosen in batches(batch_order(rng, epoch, len(TEXTS)), 4):
            targets = torch.tensor([CLASSES.index(TEXTS[i].label) for i in chosen])
            loss = nn.functional.cross_entropy(plain([TEXTS[i] for i in chosen]), targets)
            step.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(learned, 1.0)
            step.step()
            losses.append(float(loss))
    assert (trace.loss, trace.steps) == (pytest.approx(sum(losses) / len(losses), abs=1e-4), 6)
    assert losses[-1] < losses[0]
    for name, tensor in (("dense", plain.dense.weight), ("out", plain.out.weight)):
        torch.testing.assert_close(trained[f"head.{name}.weight"], tensor.detach(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", sorted({*ALGORITHMS} - {"AdaFedHardKD", "Krum", "FedSum", "FedProto"}))
def test_every_algorithm_trains_an_encoder_unchanged(name: str) -> None:
    """Three rounds of two clients lower the loss of the evaluated model; Krum needs more clients."""
    knobs = {"mu": 0.01, "server_learning_rate": 0.5, "server_optimizer": "momentum", "tau": 0.3, "lambda": 0.2}
    knobs |= {"faulty": 0, "max_norm": 10.0, "buffer": 2}
    fields = importlib.import_module(ALGORITHMS[name]).Hyperparameters.model_fields
    known = {field.alias or key for key, field in fields.items()}
    algorithm = build(name, **{knob: value for knob, value in knobs.items() if knob in known})
    made = encoder()
    clients = {"a": client(made, TEXTS[:6], TEXTS[6:8]), "b": client(made, TEXTS[6:], TEXTS[:2])}
    trained = {"pooled": client(made, TEXTS)} if algorithm.pooled else clients
    initial = initial_of(made)
    private = begin({name: ClientState(initial) for name in trained})
    engine = InProcess(algorithm, trained, clients, private, seed=1)
    done = run(algorithm, engine, 3, initial=initial)
    first = sum(data.validation_loss(initial) for data in clients.values())
    assert sum(row.loss_of(algorithm.evaluates) for row in done.last) < first


def test_a_teacher_of_windows_is_computed_in_every_epoch() -> None:
    """States of a window are as wide as the longest window of its batch, so another batch cannot reuse them."""
    made, task = encoder(), Answer()
    contexts = [f"{'it was ' * i}ann" for i in range(8)]
    questions = [Question(f"q{i}", "train", "a", "g", "who?", c, (("ann", 7 * i),)) for i, c in enumerate(contexts)]
    data = client(made, questions, task=task, tokens=2, local_epochs=2)
    start_ = made.initial("layers", 0, 1) | task.initial(made, ("start", "end"), 1)
    algorithm = build("AdaFedKD", weight=0.2, local_start="server")
    _, update, trace = algorithm.client_update(Sent(start_), ClientState(start_), data, Randomness(1, "a", 1))
    assert (update.steps, trace.steps) == (4, 4)


def with_scoring_server(**knobs: Any) -> tuple[InProcess, Adapter]:
    """Clients with training texts alone; the server has the validation texts."""
    made = encoder()
    clients = {"a": client(made, TEXTS[:6], **knobs), "b": client(made, TEXTS[6:10], **knobs)}
    engine = InProcess(FEDAVG, clients, {"server": client(made, [], TEXTS)}, begin({}), seed=1)
    return engine, initial_of(made)


def test_stateless_clients_store_nothing_and_the_server_alone_is_scored() -> None:
    """One row a round: means over all steps, sums of bytes. Of three layers the last is sent, and the head."""
    engine, initial = with_scoring_server()
    done = run(FEDAVG, engine, 2, initial=initial)
    assert len(engine.private.states) == 0
    assert [(row.client, row.local_validation_loss, row.steps) for row in done.history] == [("server", None, 2)] * 2
    assert done.history[1].loss_of("server") < done.history[0].sent_validation_loss  # type: ignore[operator]
    assert done.history[0].bytes_up > 4 * sum(tensor.numel() for tensor in initial.values())
    assert engine.private.best["server"]["server"].round == 2
    parts = {".".join(name.split(".")[:2]) for name in done.server.adapter}
    assert parts == {"layers.2", "head.dense", "head.out"}


def test_a_step_on_all_data_is_the_mean_of_the_clients_steps() -> None:
    """One full-batch SGD step each, not clipped: weighted by examples, as the pooled step."""
    knobs = {"optimizer": "sgd", "batch_size": 100, "clip_norm": 1e9}
    engine, initial = with_scoring_server(**knobs)
    done = run(FEDAVG, engine, initial=initial)
    pooled = client(encoder(), TEXTS[:10], **knobs).fit(initial, Randomness(1, "p", 1)).adapter
    for name, tensor in done.server.adapter.items():
        torch.testing.assert_close(tensor, pooled[name], rtol=0, atol=1e-6)


def test_a_linear_schedule_grows_and_falls_within_a_round() -> None:
    """100 steps, 6 of them to warm up: 0, 1/2 at 3, 1 at 6, 1/2 at 53, and 0 after the last."""
    training = LocalTraining(1.0, 0.0, 4, 1, 1.0, optimizer="sgd", schedule="linear")
    optimizer = optimizer_of({"w": torch.zeros(1, requires_grad=True)}, training)
    schedule, rates = schedule_of(optimizer, training, 100), []
    for _ in range(101):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert [rates[i] for i in (0, 3, 6, 53, 100)] == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_trunk_rate_is_of_all_below_the_last_layer(optimizer: Any) -> None:
    """A first step of AdamW is as long as its rate, one of SGD its rate times the gradient of 1."""
    names = ("layers.2.weight", "head.dense.weight", "head.out.weight")
    tensors = {name: torch.zeros(1, 1, requires_grad=True) for name in names}
    step = optimizer_of(tensors, LocalTraining(0.5, 0.0, 4, 1, 1.0, optimizer=optimizer, trunk_rate=4.0))
    for tensor in tensors.values():
        tensor.grad = torch.ones(1, 1)
    step.step()
    assert [float(tensor) for tensor in tensors.values()] == pytest.approx([-2.0, -2.0, -0.5], rel=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_a_skipped_batch_moves_nothing(optimizer: Any) -> None:
    """The last batch of a training is skipped if it is normal; moments and weight decay would move its tensors."""
    made = encoder("e,0-2")
    texts = [Document(f"d{i}", "train", "", "", ("a b", "c d"), (1, 0), ("a b",)) for i in range(4)]
    learned = client(made, texts, task=EXTRACT, tokens=2, optimizer=optimizer, loss_over="examples")
    start_ = EXTRACT.initial(made, [], 1)
    trained, trace, _ = learned.fit(start_, Randomness(3, "a", 1), Extraction((1e9, 1e9)))
    assert trace.figures["share_skipped"] == 1
    assert all(torch.equal(tensor, start_[name]) for name, tensor in trained.items())


@pytest.mark.parametrize(("network", "embeddings", "layer", "head"), PARAMETERS, ids=["minilm", "distilbert"])
def test_what_trains_is_counted_as_fednlp_counts_it(network: Any, embeddings: int, layer: int, head: int) -> None:
    """The tensors above each cut of six layers, and a head of 20 classes."""
    with torch.device("meta"):
        model = network().to_empty(device="cpu")
    made = [Encoder("any", model, None, FrozenPart.parse(cut)) for cut in ("none", "e", "e,0", "e,0-5")]
    adapters = [own.initial("layers", 0, 1) for own in made]
    adapters.append(Classify().initial(made[0], tuple(f"c{i}" for i in range(20)), 1))
    counts = [sum(tensor.numel() for tensor in adapter.values()) for adapter in adapters]
    assert counts == [embeddings + 6 * layer, 6 * layer, 5 * layer, 0, head]
