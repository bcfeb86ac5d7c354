"""Callbacks: when a training ends, what is saved, and what is reported."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from federations import FEDAVG, SINGLE, begin
from halfway import Halfway, engine, one

from pipeline.engines.in_process import InProcess
from pipeline.federated.algorithm import ClientState, ServerState
from pipeline.federated.callbacks import Callback, Checkpointing, Reporting, SavingRounds, Stopping
from pipeline.federated.checkpoint import load_progress
from pipeline.federated.figures import Figures
from pipeline.federated.history import Round, metrics_by_row
from pipeline.federated.loop import Participation, initial_progress, run_rounds
from pipeline.federated.state import Progress
from pipeline.model.adapter import read_adapter
from pipeline.workspace import layout


def after(number: int, stale: int = 0, history: Sequence[Round] = ()) -> Progress:
    return Progress(number, ServerState({"w": torch.ones(1)}), stale=stale, history=tuple(history))


@pytest.mark.parametrize(("number", "stale", "over"), [(9, 0, False), (10, 0, True), (5, 2, False), (5, 3, True)])
def test_a_training_ends_after_ten_rounds_or_three_without_improvement(number: int, stale: int, over: bool) -> None:
    assert Stopping(rounds=10, patience=3).is_over(after(number, stale)) == over


@pytest.mark.parametrize(
    ("number", "joins", "over"), [(5, {"B": 5}, True), (5, {"B": 2, "C": 9}, False), (10, {"B": 12}, True)]
)
def test_patience_waits_for_clients_that_have_yet_to_join(number: int, joins: Mapping[str, int], over: bool) -> None:
    assert Stopping(rounds=10, patience=3, joins=joins).is_over(after(number, 4)) == over


def noting(name: str, calls: list[tuple[str, str, int]]) -> Callback:
    """A callback that notes its calls."""
    made = Callback()
    for what in ("begin", "after_round", "end"):
        setattr(made, what, lambda progress, what=what: calls.append((name, what, progress.round)))
    return made


@pytest.mark.parametrize("last", [0, 2])
def test_callbacks_are_called_in_their_order_until_one_ends_the_training(last: int) -> None:
    calls: list[tuple[str, str, int]] = []
    made = engine(FEDAVG, A=4.0)
    callbacks = [Callback(), noting("one", calls), Stopping(last, 9), noting("two", calls)]
    run_rounds(FEDAVG, made, initial_progress(FEDAVG, one(0.0), made), Participation(), callbacks, seed=1)
    whats = [("begin", 0), *(("after_round", number) for number in range(1, last + 1)), ("end", last)]
    assert calls == [(name, *what) for what in whats for name in ("one", "two")]


class Counting(Callback):
    """Adds the number of the round, and of its figures so far; and 1.5 to client A."""

    def figures(self, progress: Progress) -> Figures:
        return {"number": progress.round, "known": len(progress.last[0].figures), "A/own": 1.5}


def test_figures_of_callbacks_are_in_the_history_and_in_its_checkpoint(tmp_path: Path) -> None:
    """The second callback sees the three figures that the first one added; a row has the server's and its own."""
    private = begin({name: ClientState(one(0.0)) for name in "AB"}, tmp_path)
    clients = {"A": Halfway(4.0), "B": Halfway(8.0)}
    made = InProcess(SINGLE, clients, clients, private, seed=1)
    begun, calls = initial_progress(SINGLE, one(0.0), made), list[tuple[str, str, int]]()
    callbacks = [Checkpointing("key", private), Counting(), Stopping(2, 9), Counting()]
    progress = run_rounds(SINGLE, made, begun, Participation(), callbacks, seed=1)
    rows = {(row.round, row.client): row.figures for row in progress.history}
    assert rows[2, "A"] == {"server/number": 2.0, "server/known": 3.0, "own": 1.5}
    assert rows[2, "B"] == {"server/number": 2.0, "server/known": 3.0}
    loaded = load_progress(tmp_path, "key")
    assert loaded[0].history == progress.history
    run_rounds(SINGLE, made, loaded[0], Participation(), [Stopping(3, 9), noting("one", calls)], seed=1)
    assert calls == [("one", "begin", 2), ("one", "after_round", 3), ("one", "end", 3)]


def test_every_round_is_saved_as_a_checkpoint_and_as_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    private = begin({"A": ClientState({"w": torch.zeros(1)})}, tmp_path)
    for number in (1, 2):
        private.states["A"] = ClientState({"w": torch.full((1,), float(number))})
        for saving in (SavingRounds("key", private), Checkpointing("key", private)):
            saving.after_round(after(number))
        loaded = load_progress(tmp_path, "key")
        assert (loaded[0].round, loaded[1].states["A"].adapter["w"].item()) == (number, number)
    files = [layout.round_adapter("key", number, owner) for owner in ("A", "server") for number in (1, 2)]
    assert [read_adapter(file)["w"].item() for file in files] == [1, 2, 1, 1]


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


def test_metrics_have_the_name_of_their_client_and_the_servers_are_logged_once_a_round() -> None:
    norm = {"server/norm": 3.0}
    rows = [Round(1, 1, "A", 2.5, steps=4, figures={"tau": 5.0} | norm), Round(1, 1, "B", figures=norm)]
    of_a = {"A/train_loss": 2.5, "A/steps": 4.0, "A/tau": 5.0} | norm
    assert list(metrics_by_row(rows, ["train_loss", "steps"])) == [(1, of_a), (1, {"B/steps": 0.0})]
