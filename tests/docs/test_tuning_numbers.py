"""Rates and knobs are those that tuning chose, and what is told of its trials is what they found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from conftest import ROOT
from told import ABLATIONS, FULL, REPORTS, prose, read, untold, words

from pipeline.plan.texts import read_text_params


def losses_of(table: Path) -> dict[str, dict[float, float]]:
    """Run -> value of its knob -> validation loss, in nats a token."""
    found: dict[str, dict[float, float]] = {}
    for row in read(table):
        found.setdefault(row["run"], {})[float(row["knobs"].partition("=")[2])] = float(row["validation_loss"])
    return found


def widenings(losses: dict[str, dict[float, float]]) -> list[str]:
    """The family that liked the upper end of the grid, each time that the grid got one rate more."""
    grid = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["tune"]["rates"]
    found: list[str] = []
    while True:
        best = {family: min(grid, key=tried.__getitem__) for family, tried in losses.items()}
        liked = [family for family, rate in best.items() if rate == grid[-1]]
        if not liked:
            return found
        found += liked
        grid = [*grid, 2 * grid[-1]]


def test_what_is_said_of_the_laptops_rates_is_what_their_trials_found() -> None:
    losses: dict[str, dict[float, float]] = {}
    chosen: dict[str, str] = {}
    for row in read(REPORTS / "tables" / "tuning.csv"):
        name, _, value = row["knobs"].partition("=")
        if name == "learning_rate":
            losses.setdefault(row["chooses"], {})[float(value)] = float(row["validation_loss"])
            chosen |= {row["chooses"]: value} if row["chosen"] == "1" else {}
    told = words(ROOT / "docs" / "results.md")
    assert {len(tried) for tried in losses.values()} == {7}
    assert widenings(losses) == ["server", "own", "own"]
    assert "widened three times: AdaFedAvg's server model, and then AdaSingle twice, liked its end" in told
    assert (
        f"from seven rates ([tuning.csv](../reports/tables/tuning.csv)): {chosen['own']} for AdaSingle, "
        f"{chosen['local']} for AdaFedAvg's clients, {chosen['server']} for its server's model, "
        f"{chosen['pooled']} for AdaCentralized" in told
    )
    apart = {}
    for family, tried in losses.items():
        between = [loss for rate, loss in tried.items() if 0.0012 <= rate <= 0.0096]
        apart[family] = max(between) - min(between)
    assert f"AdaSingle's by {apart.pop('own'):.3f}" in told
    assert max(apart.values()) < 0.008
    assert "the losses of a family differ by less than 0.008 nats" in told


def test_what_is_said_of_knobs_at_the_laptops_scale_is_what_their_trials_found() -> None:
    table = REPORTS / "tables" / "tuning.csv"
    losses, ended = losses_of(table), {row["run"]: row["ended"] for row in read(table) if row["chosen"] == "1"}
    text = words(ROOT / "docs" / "results.md")
    fedavg, pulls, server_rates = min(losses["fedavg"].values()), losses["fedprox"], losses["fedopt"]
    weak = [loss for mu, loss in pulls.items() if mu <= 0.001]
    for told in (
        f"mu is {min(pulls, key=pulls.__getitem__)}. Between 0.00001 and 0.001 the losses differ by "
        f"{max(weak) - min(weak):.4f} nats, and the best is {fedavg - min(weak):.4f} below AdaFedAvg's",
        f"server rate is {min(server_rates, key=server_rates.__getitem__)}. All its trials are worse than AdaFedAvg, "
        f"by {min(server_rates.values()) - fedavg:.3f} nats or more",
    ):
        assert told in text
    assert ended["fedopt"] == "cap"


def test_the_versions_of_code_that_are_told_are_those_of_the_trials_files() -> None:
    versions: dict[tuple[Path, str], set[str]] = {}
    for folder in (REPORTS, FULL / "reports"):
        for path in folder.glob("tuning/*.json"):
            trial = json.loads(path.read_text(encoding="utf-8"))
            versions.setdefault((folder, trial["run"]), set()).add(trial["code"])
    assert max(len(own) for own in versions.values()) == 3
    told = "The trials of one method at one scale were made by at most three versions of that code"
    assert told in words(ROOT / "docs" / "results.md")


def test_what_is_said_of_full_scale_is_what_its_trials_found() -> None:
    """Differences of validation losses: each run at its best, and pooling at the first guess."""
    losses = losses_of(FULL / "reports" / "tables" / "tuning.csv")
    best = {run: min(tried.values()) for run, tried in losses.items()}
    pull = best["fedprox-local"]
    text = words(ROOT / "docs" / "results.md")
    for told in (
        f"pooling gains {losses['single'][0.0006] - losses['centralized'][0.0006]:.3f} nats over AdaSingle",
        f"at the best rates it gains {best['single'] - best['centralized']:.3f}",
        f"{best['centralized'] - pull:.3f} nats below AdaCentralized and {best['fedavg-local'] - pull:.3f} below",
        f"0.01 is already {losses['fedprox-local'][0.01] - pull:.3f} nats worse",
    ):
        assert told in text


@pytest.mark.parametrize(("folder", "scale"), [(ROOT, "laptop"), (FULL, "full")], ids=["laptop", "full"])
def test_learning_rates_are_those_that_tuning_chose(folder: Path, scale: str) -> None:
    table = folder / "reports" / "tables" / "tuning.csv"
    rates = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["scales"][scale]["learning_rates"]
    chosen = {row["chooses"]: row["knobs"] for row in read(table) if row["chosen"] == "1"}
    assert {family: chosen.pop(family) for family in rates} == {f: f"learning_rate={rate}" for f, rate in rates.items()}
    runs = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))["more_runs"]
    for run, knobs in chosen.items():
        name, _, value = knobs.partition("=")
        assert runs[run][name] == float(value), f"{run}: {knobs} was chosen"
    tried = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))["tune"]["trials"]
    assert set(tried) <= set(chosen)


def test_knobs_of_the_ablations_are_those_that_tuning_chose() -> None:
    runs = yaml.safe_load((ABLATIONS / "params.yaml").read_text(encoding="utf-8"))["more_runs"]
    chosen = [row for row in read(ABLATIONS / "reports" / "tables" / "tuning.csv") if row["chosen"] == "1"]
    assert {row["run"] for row in chosen} == {"fedavgm", "ditto", "fedavg-lora"}
    for row in chosen:
        name, _, value = row["knobs"].partition("=")
        assert runs[row["run"]][name] == float(value), f"{row['run']}: {row['knobs']} was chosen"


def test_what_is_said_of_the_ablations_knobs_is_what_their_trials_found() -> None:
    tables = ABLATIONS / "reports" / "tables"
    losses, cores = losses_of(tables / "tuning.csv"), losses_of(tables / "tuning_on_two_cores.csv")
    ended = {row["run"]: row["ended"] for row in read(tables / "tuning.csv") if row["chosen"] == "1"}
    momentum, mu, rate = losses["fedavgm"], losses["ditto"], losses["fedavg-lora"]
    (chosen, best), (_, second) = sorted(momentum.items(), key=lambda tried: tried[1])[:2]
    above = [loss for value, loss in sorted(momentum.items()) if value >= chosen]
    assert above == sorted(above), "above it the loss only grows"
    assert second - best < 0.0002
    assert len(momentum) == 4 + 3, "three smaller values were tried as well"
    apart = [abs(loss - losses[run][value]) for run, tried in cores.items() for value, loss in tried.items()]
    assert len(apart) == 6
    leads = [second - best for best, second, *_ in (sorted(tried.values()) for tried in losses.values())]
    assert max(leads) < max(apart), "no choice is sharp"
    plain = min(losses_of(REPORTS / "tables" / "tuning.csv")["fedavg"].values())
    sentences = [
        f"whose losses differ by at most {max(apart):.4f} nats",
        f"The momentum is {chosen}. Its loss is {best:.4f}, less than 0.0002 below the next one's",
        f"AdaFedAvg without momentum has {plain:.4f} at this rate",
        f"Above {chosen} the loss only grows, to {momentum[0.9]:.3f} at 0.9",
        f"mu is {min(mu, key=mu.__getitem__)}, whose loss is {min(mu.values()):.3f}, against {mu[0.001]:.3f} at 0.001 "
        f"and {mu[1.0]:.3f} at 1",
        f"rate is {min(rate, key=rate.__getitem__)}, with {min(rate.values()):.3f}; the losses of all four rates lie "
        "within 0.008",
    ]
    told = (ABLATIONS / "README.md").read_text(encoding="utf-8").split("## What tuning chose")[1]
    assert untold(prose(told), sentences) == []
    assert max(rate.values()) - min(rate.values()) < 0.008
    assert ended == {"fedavgm": "patience", "ditto": "cap", "fedavg-lora": "cap"}


def test_rates_and_knobs_of_labelled_texts_are_those_that_tuning_chose() -> None:
    folder = ROOT / "experiments" / "fednlp"
    params = read_text_params(folder / "params.yaml")
    chosen = [
        row
        for row in read(folder / "reports" / "tables" / "tuning.csv")
        if row["scale"] == params.scale and row["chosen"] == "1"
    ]
    assert chosen, "the table holds none of this scale"
    for row in chosen:
        data = params.datasets[row["dataset"]]
        if row["chooses"] == row["run"]:
            found = params.runs[row["run"]].learning_rate
        elif row["knob"] == "learning_rate":
            found = getattr(data.rates, row["chooses"])
        else:
            found = data.knobs[row["chooses"]][row["knob"]]
        assert found == float(row["value"]), f"{row['run']}: {row['knob']}={row['value']} was chosen"
