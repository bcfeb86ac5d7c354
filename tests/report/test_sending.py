"""Bytes against quality: who reaches AdaFedAvg's best loss with how much, from numbers worked by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from made_results import figures, results_of, round_of

from pipeline.federated.history import Round
from pipeline.report.page import Canvas
from pipeline.report.sending import _sent_until_best, bytes_sent


def test_bytes_count_until_the_last_clients_best_round() -> None:
    """Two clients send 1 MB each in each of three rounds; their best rounds are 1 and 2: 4 MB."""
    rows = [
        round_of(number, client, 3.0, bytes_up=1_000_000, best=number == best)
        for client, best in (("A", 1), ("B", 2))
        for number in (1, 2, 3)
    ]
    assert _sent_until_best(rows) == pytest.approx(4.0)
    again = [round_of(1, "A", 3.0, 2, bytes_up=2_000_000, best=True)]
    assert _sent_until_best(rows + again) == pytest.approx(3.0), "the mean over seeds"


def losses(*by_round: float, megabytes: int = 1) -> list[Round]:
    """One client that sends so much a round; its last round is its best."""
    return [
        round_of(n, "A", loss, bytes_up=megabytes * 1_000_000, best=n == len(by_round))
        for n, loss in enumerate(by_round, 1)
    ]


def rows_of(table: str) -> list[list[str]]:
    return [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr><td>.*?</tr>", table)]


def test_who_reaches_the_best_loss_of_averaging_with_how_much(tmp_path: Path) -> None:
    """It comes to 2.0 with 2 MB; kd comes there with 1 MB, slow never. A whole model is ten times an adapter."""
    histories = {"avg": losses(3.0, 2.0), "kd": losses(1.9, 1.8), "slow": losses(3.0, 2.5)}
    histories["alone"] = [round_of(1, "A", 1.0, best=True)]
    both = {"mean": figures(average=20.0, loss=2.2)}
    metrics = {"avg": both, "kd": both, "slow": {"mean": figures(loss=2.4)}, "alone": both}
    names = {name: name.upper() for name in histories}
    results = results_of(histories=histories, metrics=metrics)
    figure, table = bytes_sent(
        Canvas(tmp_path), results, [*histories, "gone"], names, dict.fromkeys(histories, "#000000"), 10_000_000
    )
    assert figure.count("<img ") == 1
    assert rows_of(table) == [
        ["AVG", "2", "20", "2", "2.200", "20.00"],
        ["KD", "1", "10", "2", "2.200", "20.00"],
        ["SLOW", "not reached", "not reached", "2", "2.400", "–"],
    ]


def test_without_averaging_there_is_nothing_to_reach(tmp_path: Path) -> None:
    results = results_of(histories={"kd": losses(1.0)}, metrics={"kd": {"mean": figures(loss=1.0)}})
    assert bytes_sent(Canvas(tmp_path), results, ["avg", "kd"], {}, {}, 10) == []
