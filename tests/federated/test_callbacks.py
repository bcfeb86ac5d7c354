"""What goes along with a training: when it ends, what is saved, who is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from federations import FEDAVG, SINGLE, begin, train

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


@pytest.mark.parametrize(("number", "over"), [(0, False), (9, False), (10, True), (11, True)])
def test_a_training_has_so_many_rounds(number: int, over: bool) -> None:
    assert Stopping(rounds=10, patience=3).is_over(after(number)) == over


@pytest.mark.parametrize(("stale", "over"), [(2, False), (3, True), (4, True)])
def test_patience_ends_a_training_in_which_nobody_improves(stale: int, over: bool) -> None:
    assert Stopping(rounds=10, patience=3).is_over(after(5, stale)) == over


@pytest.mark.parametrize(("joins", "over"), [({"B": 6}, False), ({"B": 5}, True), ({"B": 2, "C": 9}, False)])
def test_patience_waits_for_a_late_client(joins: Mapping[str, int], over: bool) -> None:
    """After round 5, of which none of the last four was better."""
    assert Stopping(rounds=10, patience=3, joins=joins).is_over(after(5, stale=4)) == over


def test_the_cap_waits_for_nobody() -> None:
    assert Stopping(rounds=5, patience=3, joins={"B": 9}).is_over(after(5))


def test_a_callback_does_nothing_by_itself() -> None:
    class Beside(Callback):
        pass

    assert not Beside().is_over(after(5))
    Beside().after_round(after(5))


@dataclass
class Noting(Callback):
    """Notes what it is told, and ends the training after a round."""

    name: str
    heard: list[tuple[str, int]] = field(default_factory=list)
    last: int = 99

    def is_over(self, progress: Progress) -> bool:
        return progress.round >= self.last

    def after_round(self, progress: Progress) -> None:
        self.heard.append((self.name, progress.round))


def test_each_is_told_of_every_round_in_its_order(clients: dict[str, LocalClientData]) -> None:
    heard: list[tuple[str, int]] = []
    train(SINGLE, clients, rounds=2, callbacks=[Noting("first", heard), Noting("second", heard)])
    assert heard == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


def test_any_of_them_ends_a_training(clients: dict[str, LocalClientData]) -> None:
    assert train(SINGLE, clients, rounds=9, callbacks=[Noting("one", last=2)]).progress.round == 2


def test_a_training_of_no_rounds_is_over_before_it_begins(clients: dict[str, LocalClientData]) -> None:
    noting = Noting("one")
    assert train(SINGLE, clients, rounds=0, callbacks=[noting]).progress.round == 0
    assert noting.heard == []


def test_every_round_has_its_checkpoint(tmp_path: Path) -> None:
    private = begin({"A": ClientState({"w": torch.zeros(1)})}, tmp_path)
    saving = Checkpointing("key", private)
    for number in (1, 2):
        private.states["A"] = ClientState({"w": torch.full((1,), float(number))})
        saving.after_round(after(number))
        loaded = load_progress(tmp_path, "key")
        assert loaded is not None
        assert loaded[0].round == number
        assert loaded[1].states["A"].adapter["w"].item() == number


def test_every_rounds_models_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    private = begin({"A": ClientState({"w": torch.zeros(1)})}, tmp_path)
    keeping = SavingRounds("key", private)
    for number in (1, 2):
        private.states["A"] = ClientState({"w": torch.full((1,), float(number))})
        keeping.after_round(after(number))
    kept = {
        (number, owner): read_adapter(layout.round_adapter("key", number, owner))["w"].item()
        for number in (1, 2)
        for owner in ("A", "server")
    }
    assert kept == {(1, "A"): 1, (2, "A"): 2, (1, "server"): 1, (2, "server"): 1}


def row(number: int, client: str, loss: float | None, local: float, server: float) -> Round:
    return Round(1, number, client, loss, local_validation_loss=local, server_validation_loss=server)


def test_a_round_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The last round's clients alone, with the losses of the model that the algorithm is judged by."""
    told: list[Sequence[Round]] = []
    history = [row(1, "A", 9.0, 9.0, 9.0), row(2, "A", 2.0, 1.5, 1.25), row(2, "B", None, 3.0, 2.5)]
    Reporting("train run", "server", told.append).after_round(after(2, history=history))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("train run: round 2: A train 2.000, validation 1.250; B was not drawn, validation 2.500")
    assert told == [history[1:]]


def test_who_logs_is_told_each_rounds_rows(clients: dict[str, LocalClientData]) -> None:
    told: list[Sequence[Round]] = []
    run = train(FEDAVG, clients, rounds=2, callbacks=[Reporting("t", "server", told.append)])
    assert [one for rows in told for one in rows] == list(run.progress.history)
    assert [len(rows) for rows in told] == [2, 2]
