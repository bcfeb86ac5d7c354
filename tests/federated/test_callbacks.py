"""Callbacks: when a training ends, what is saved, and what is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from federations import SINGLE, begin, train

from pipeline.federated.algorithm import ClientState, ServerState
from pipeline.federated.callbacks import Callback
from pipeline.federated.callbacks.checkpointing import Checkpointing
from pipeline.federated.callbacks.reporting import Reporting
from pipeline.federated.callbacks.saving_rounds import SavingRounds
from pipeline.federated.callbacks.stopping import Stopping
from pipeline.federated.checkpoint import load_progress
from pipeline.federated.history import Round
from pipeline.federated.local import LocalClientData
from pipeline.federated.state import Progress
from pipeline.model.adapter import read_adapter
from pipeline.workspace import layout


def after(number: int, stale: int = 0, history: Sequence[Round] = ()) -> Progress:
    return Progress(number, ServerState({"w": torch.ones(1)}), stale=stale, history=tuple(history))


@pytest.mark.parametrize(
    ("number", "stale", "joins", "over"),
    [
        (0, 0, {}, False),
        (9, 0, {}, False),
        (10, 0, {}, True),
        (11, 0, {}, True),
        (5, 2, {}, False),
        (5, 3, {}, True),
        (5, 4, {}, True),
        (5, 4, {"B": 6}, False),
        (5, 4, {"B": 5}, True),
        (5, 4, {"B": 2, "C": 9}, False),
        (10, 4, {"B": 12}, True),
    ],
)
def test_a_training_ends_after_10_rounds_or_3_without_improvement_if_all_have_joined(
    number: int, stale: int, joins: Mapping[str, int], over: bool
) -> None:
    assert Stopping(rounds=10, patience=3, joins=joins).is_over(after(number, stale)) == over


@dataclass
class Noting(Callback):
    """Notes the rounds, and ends the training after one."""

    name: str
    calls: list[tuple[str, int]] = field(default_factory=list)
    last: int = 99

    def is_over(self, progress: Progress) -> bool:
        return progress.round >= self.last

    def after_round(self, progress: Progress) -> None:
        self.calls.append((self.name, progress.round))


def test_callbacks_are_called_after_every_round_in_their_order(clients: dict[str, LocalClientData]) -> None:
    calls: list[tuple[str, int]] = []
    train(SINGLE, clients, rounds=2, callbacks=[Noting("first", calls), Noting("second", calls)])
    assert calls == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


@pytest.mark.parametrize("last", [0, 2])
def test_any_callback_ends_a_training_also_before_its_first_round(
    clients: dict[str, LocalClientData], last: int
) -> None:
    class Default(Callback):
        pass

    noting = Noting("one", last=last)
    assert train(SINGLE, clients, rounds=9, callbacks=[Default(), noting]).progress.round == len(noting.calls) == last


def test_every_round_is_saved_as_a_checkpoint_and_as_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    private = begin({"A": ClientState({"w": torch.zeros(1)})}, tmp_path)
    for number in (1, 2):
        private.states["A"] = ClientState({"w": torch.full((1,), float(number))})
        for saving in (SavingRounds("key", private), Checkpointing("key", private)):
            saving.after_round(after(number))
        loaded = load_progress(tmp_path, "key")
        assert loaded is not None
        assert (loaded[0].round, loaded[1].states["A"].adapter["w"].item()) == (number, number)
    models = {
        (number, owner): read_adapter(layout.round_adapter("key", number, owner))["w"].item()
        for number in (1, 2)
        for owner in ("A", "server")
    }
    assert models == {(1, "A"): 1, (2, "A"): 2, (1, "server"): 1, (2, "server"): 1}


def row(number: int, client: str, loss: float | None, local: float, server: float) -> Round:
    return Round(1, number, client, loss, local_validation_loss=local, server_validation_loss=server)


def test_a_round_is_reported_in_one_line_and_its_rows_are_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    """The last round's clients alone, with the losses of the model that the algorithm is evaluated by."""
    passed: list[Sequence[Round]] = []
    history = [row(1, "A", 9.0, 9.0, 9.0), row(2, "A", 2.0, 1.5, 1.25), row(2, "B", None, 3.0, 2.5)]
    Reporting("train run", "server", passed.append).after_round(after(2, history=history))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("train run: round 2: A train 2.000, validation 1.250; B was not selected, validation 2.500")
    assert passed == [history[1:]]
