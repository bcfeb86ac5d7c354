"""The tables of README and docs are those of committed files, and the rates and knobs are those that tuning chose."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import ROOT

from pipeline.plan.texts import read_text_params

REPORTS = ROOT / "reports"


def rows_of(page: Path, head: str) -> list[list[str]]:
    """The cells of the table under a heading row that begins with `head`."""
    lines = page.read_text(encoding="utf-8").splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"| {head}"))
    rows = []
    for line in lines[at + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def words(page: Path) -> str:
    """A page's text, its lines joined."""
    return " ".join(page.read_text(encoding="utf-8").split())


def shown(row: dict[str, str], metric: str, digits: int) -> str:
    value, low, high = (f"{float(row[name]):.{digits}f}" for name in (metric, f"{metric}_low", f"{metric}_high"))
    return f"{value} ({low} … {high})"


def test_the_readmes_main_table_is_the_committed_one() -> None:
    mean = [row for row in read(REPORTS / "tables" / "main.csv") if row["client"] == "mean"]
    wanted = [[row["method"], shown(row, "average", 2), shown(row, "loss", 3)] for row in mean]
    assert rows_of(ROOT / "README.md", "method") == wanted


def test_what_the_results_say_of_differences_is_in_the_committed_table() -> None:
    """Every number with a point in it, whatever its sign."""
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    told = text.split("## The laptop's table")[1].split("\n## ")[0]
    rows = [row for row in read(REPORTS / "tables" / "significance.csv") if row["client"] == "mean"]
    told_of = ("difference", "low", "high", "visible", "p_holm")
    values = [abs(float(row[name])) for row in rows for name in told_of if row[name]]
    known = {f"{value:.{digits}f}" for value in values for digits in (2, 3, 4)}
    stated = re.findall(r"\d+\.\d+", told)
    assert stated
    assert [number for number in stated if number not in known] == []


def difference(metric: str, against: str, reports: Path = REPORTS) -> dict[str, float]:
    """AdaFedSelectKD less another row of a table, mean over clients; of the laptop's, unless said."""
    for row in read(reports / "tables" / "significance.csv"):
        if (row["metric"], row["against"], row["client"]) == (metric, against, "mean"):
            return {name: float(row[name]) for name in ("difference", "low", "high", "visible", "p_holm") if row[name]}
    raise AssertionError(f"no difference to {against}")


def span(found: dict[str, float], digits: int, sign: int = 1, unit: str = "") -> str:
    ends = sorted(sign * found[end] for end in ("low", "high"))
    return f"{sign * found['difference']:.{digits}f}{unit} ({ends[0]:.{digits}f} … {ends[1]:.{digits}f})"


def test_what_the_readme_says_of_distillation_is_in_the_committed_table() -> None:
    text = words(ROOT / "README.md")
    assert f"{-difference('loss', 'fedavg-local')['difference']:.3f} nats below AdaFedAvg's clients" in text
    assert f"which distils everything, is {difference('loss', 'fedkd')['difference']:.3f} lower still" in text


def test_each_difference_that_the_results_tell_is_that_of_its_row() -> None:
    told = words(ROOT / "docs" / "results.md")
    nats = {run: difference("loss", run) for run in ("single", "fedavg", "fedavg-local", "fedkd", "centralized")}
    rouge = {run: difference("average", run) for run in ("zeroshot", "single", "fedavg", "fedavg-local")}
    for sentence in (
        f"below AdaSingle by {span(nats['single'], 3, -1, ' nats')}",
        f"below AdaFedAvg's model by {span(nats['fedavg'], 3, -1)}",
        f"clients before aggregation by {span(nats['fedavg-local'], 4, -1, ' nats')}",
        f"worse by {span(nats['fedkd'], 4, unit=' nats')}",
        f"Against AdaCentralized it is {-nats['centralized']['difference']:.4f} nats lower",
        f"untrained backbone by {span(rouge['zeroshot'], 2, unit=' average ROUGE')}",
        f"above AdaSingle by {span(rouge['single'], 2)}, which does not stand after Holm's correction",
        f"correction (p {rouge['single']['p_holm']:.3f})",
        f"Against AdaFedAvg this design would have seen a difference of {rouge['fedavg']['visible']:.2f}",
        f"against AdaFedAvg's clients one of {rouge['fedavg-local']['visible']:.2f}",
    ):
        assert sentence in told


def test_the_lengths_that_the_results_tell_are_those_of_trained_rows() -> None:
    told, lengths = words(ROOT / "docs" / "results.md"), {}
    for row in read(REPORTS / "tables" / "main.csv"):
        if row["best_round"]:
            lengths.setdefault(row["client"], []).append(float(row["length"]))
    ends = {client: f"{min(own):.0f} to {max(own):.0f}" for client, own in lengths.items()}
    assert f"{ends['Academic']} words at Academic, {ends['Product']} at Product" in told


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


@pytest.mark.parametrize("when", ["before", "now"])
def test_the_parts_of_make_repro_are_the_measured_ones(when: str) -> None:
    parts: dict[str, Any] = json.loads((REPORTS / "benchmarks" / "parts.json").read_text(encoding="utf-8"))[when]
    column = {"before": 1, "now": 2}[when]
    stated = {row[0]: row[column] for row in rows_of(ROOT / "docs" / "performance.md", "part")}
    wanted = {name: f"{minutes:.1f} min" for name, minutes in (parts["parts"] | {"all": parts["total"]}).items()}
    assert {name.split(",")[0]: minutes for name, minutes in stated.items()} == wanted


def test_what_messages_over_flower_cost_is_what_was_measured() -> None:
    measured = REPORTS / "benchmarks" / "messages.md"
    assert rows_of(ROOT / "docs" / "performance.md", "what | measured") == rows_of(measured, "what")


@pytest.mark.parametrize(
    ("folder", "scale"), [(ROOT, "laptop"), (ROOT / "experiments" / "full", "full")], ids=["laptop", "full"]
)
def test_learning_rates_are_those_that_tuning_chose(folder: Path, scale: str) -> None:
    """As soon as a table of it is committed."""
    table = folder / "reports" / "tables" / "tuning.csv"
    if not table.is_file():
        assert f"`{scale}` are not tuned yet" in (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
        return
    rates = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["scales"][scale]["learning_rates"]
    chosen = {row["chooses"]: row["knobs"] for row in read(table) if row["chosen"] == "1"}
    assert {family: chosen.pop(family) for family in rates} == {f: f"learning_rate={rate}" for f, rate in rates.items()}
    runs = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))["more_runs"]
    for run, knobs in chosen.items():
        name, _, value = knobs.partition("=")
        assert runs[run][name] == float(value), f"{run}: {knobs} was chosen"
    tried = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))["tune"]["trials"]
    told = words(ROOT / "docs" / "results.md") + words(ROOT / "experiments" / "full" / "README.md")
    guessed = {"laptop": "knobs of AdaFedProx and AdaFedOPT", "full": "learning rates of these sizes"}[scale]
    assert (f"{guessed} are first guesses" in told) == bool(set(tried) - set(chosen))


def test_rates_and_knobs_of_labelled_texts_are_those_that_tuning_chose() -> None:
    """As soon as a table of it is committed; until then the experiment's page says that they are first guesses."""
    folder = ROOT / "experiments" / "fednlp"
    table = folder / "reports" / "tables" / "tuning.csv"
    if not table.is_file():
        assert "first guesses" in (folder / "README.md").read_text(encoding="utf-8")
        return
    params = read_text_params(folder / "params.yaml")
    chosen = [row for row in read(table) if row["scale"] == params.scale and row["chosen"] == "1"]
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


@pytest.mark.parametrize(
    ("experiment", "tables", "fixed"),
    [("faults", "*.csv", "a norm of 1.0"), ("fednlp", "*.csv", ""), ("full", "main.csv", "")],
)
def test_what_came_out_of_an_experiment_is_in_its_committed_tables(experiment: str, tables: str, fixed: str) -> None:
    """Every number with a point in it, whatever its sign; what was fixed beforehand is none of them."""
    folder = ROOT / "experiments" / experiment
    told = (folder / "README.md").read_text(encoding="utf-8").split("## What came out")[1].replace(fixed, "")
    cells = [
        cell for path in (folder / "reports" / "tables").glob(tables) for row in read(path) for cell in row.values()
    ]
    claims = folder / "reports" / "claims.json"
    cells += [claims.read_text(encoding="utf-8")] if claims.is_file() else []
    tested = folder / "reports" / "tables" / "significance.csv"
    cells += [tested.read_text(encoding="utf-8")] if tested.is_file() else []
    values = [float(number) for cell in cells for number in re.findall(r"\d+(?:\.\d+)?", cell)]
    known = {f"{value:.{digits}f}" for value in values for digits in (0, 1, 2, 3, 4)}
    for path in (folder / "reports" / "metrics" / "main").glob("seed-*.json"):  # gains of single clients
        seed = json.loads(path.read_text(encoding="utf-8"))
        for client in ("Academic", "Committee", "Product"):
            losses = {run: own[client]["loss"]["value"] for run, own in seed.items() if client in own}
            known |= {f"{abs(losses[run] - losses['fedselectkd']):.4f}" for run in losses if "fedselectkd" in losses}
    stated = re.findall(r"\d+\.\d+", told)
    assert stated
    assert [number for number in stated if number not in known] == []


def test_what_is_kept_of_full_scale_is_told() -> None:
    """How many runs of how many planned, and the mean of each that is kept at every seed."""
    folder = ROOT / "experiments" / "full"
    planned = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    runs = {**planned["runs"], **planned["more_runs"]}
    count = sum(len(row.get("seeds", planned["seeds"])) for row in runs.values())
    kept = len([path for group in ("main", "more") for path in (folder / "results" / group).glob("*.json")])
    told = " ".join((folder / "README.md").read_text(encoding="utf-8").split("## What came out")[1].split())
    numbers = {3: "Three", 6: "Six", 9: "Nine"}
    assert told.startswith(f"{numbers.get(kept, kept)} of {count} runs are kept")
    assert f"{kept} of its {count} runs are kept" in words(ROOT / "docs" / "results.md")
    mean = {row["run"]: row for row in read(folder / "reports" / "tables" / "main.csv") if row["client"] == "mean"}
    wanted = [[row["method"], shown(row, "average", 2), shown(row, "loss", 3)] for row in mean.values()]
    assert rows_of(folder / "README.md", "method") == wanted


@pytest.mark.parametrize("folder", [ROOT, ROOT / "experiments" / "full"], ids=["laptop", "full"])
def test_every_round_of_every_committed_run_has_five_steps_or_more(folder: Path) -> None:
    """One step a round by a fresh AdamW is a shock, not training."""
    steps = [int(row["steps"]) for row in read(folder / "reports" / "tables" / "history.csv")]
    assert steps
    assert min(steps) >= 5


def test_what_is_told_of_the_gate_is_what_it_was_judged_by() -> None:
    folder = ROOT / "experiments" / "full"
    claims = json.loads((folder / "reports" / "claims.json").read_text(encoding="utf-8"))["claims"]
    rouge, loss = ({**one, **one["gain"]} for one in claims if one["number"] == 0)
    told, results, readme = words(folder / "README.md"), words(ROOT / "docs" / "results.md"), words(ROOT / "README.md")
    ends = {one["metric"]: f"{one['low']:.{n}f} … {one['high']:.{n}f}" for one, n in ((rouge, 2), (loss, 3))}
    minus = f"{rouge['value']:.2f}".replace("-", "−")
    for one in (rouge, loss):
        ends[one["metric"]] = ends[one["metric"]].replace("-", "−")
    assert f"pooling gains {loss['value']:.3f} nats a token ({ends['loss']}; p {loss['p']:.3f})" in told
    assert f"In average ROUGE it gains {minus} ({ends['average']}; p {rouge['p']:.3f})" in told
    assert f"a gain of {rouge['visible']:.2f} would have been seen" in told
    assert f"The paper's is {rouge['effect']:.2f}" in told
    assert {one["why"] for one in (rouge, loss)} == {"not converged: centralized"}
    assert all(gain > 0 for gain in loss["by_run"]), "it gains in each of the three runs"
    mean = {row["run"]: row for row in read(folder / "reports" / "tables" / "main.csv") if row["client"] == "mean"}
    runs = ("centralized-slower", "centralized", "single")
    slower, faster, alone = (f"{float(mean[run]['length']):.0f}" for run in runs)
    assert (
        f"{slower} words on average in runs B and C, where the faster one writes {faster} and AdaSingle {alone}" in told
    )
    assert f"On {loss['meetings']} meetings" in results
    assert f"gains {loss['value']:.3f} nats over each client's own ({ends['loss']})" in results
    assert f"and {minus} average ROUGE ({ends['average']})" in results
    assert f"pooled is {loss['value']:.3f} nats better than each client's own" in readme


def test_what_is_told_of_the_gate_at_a_converging_rate_is_the_audits() -> None:
    folder = ROOT / "experiments" / "full"
    audits = json.loads((folder / "reports" / "claims.json").read_text(encoding="utf-8"))["audits"]
    found = {one["endpoint"]: one["at_a_converging_rate"].replace("+", "") for one in audits if one["claim"] == 0}
    told = words(folder / "README.md")
    results = words(ROOT / "docs" / "results.md")
    (loss_word, loss), (rouge_word, rouge) = (found[name].split(": ") for name in ("loss", "average"))
    assert (
        f"gains {loss.replace(' (', ' nats (')}, *{loss_word}*, and {rouge.replace(' (', ' average ROUGE (')}" in told
    )
    assert f"*{rouge_word}*: less than half of the paper's" in told
    assert f"{loss.replace(' (', ' nats (')} and {rouge.replace(' (', ' average ROUGE (')}" in results
    assert f"*{loss_word}* in loss; *{rouge_word}* in ROUGE" in results
    best: dict[tuple[str, str], dict[str, float]] = {}
    for row in read(folder / "reports" / "tables" / "history.csv"):
        own, loss_now = best.setdefault((row["run"], row["seed"]), {}), float(row["validation_loss"] or "inf")
        own[row["client"]] = min(loss_now, own.get(row["client"], loss_now))
    worse = [
        sum(best["centralized-slower", seed].values()) / 3 - sum(best["centralized", seed].values()) / 3
        for seed in ("11", "12", "13")
    ]
    assert f"worse by {worse[0]:.3f} nats in run A and by at most {max(worse[1:]):.3f} in runs B and C" in told


def test_what_is_told_of_runs_b_and_c_is_what_their_claims_were_judged_by() -> None:
    folder = ROOT / "experiments" / "full"
    claims = json.loads((folder / "reports" / "claims.json").read_text(encoding="utf-8"))["claims"]
    found = {(one["theirs"], one["metric"]): one for one in claims if one["number"] in (1, 2, 3, 4)}

    def gain(theirs: str, metric: str, digits: int, unit: str = "", sign: int = 1) -> str:
        own = found[theirs, metric]["gain"]
        return span({**own, "difference": own["value"]}, digits, sign, unit).replace("-", "−")

    told = words(folder / "README.md")
    for sentence in (
        f"ahead of AdaFedAvg by {gain('fedavg', 'loss', 3, ' nats')}, of AdaSingle by {gain('single', 'loss', 3)}",
        f"clients before aggregation by {gain('fedavg-local', 'loss', 3)}",
        f"it is behind by {gain('fedkd', 'loss', 4, ' nats', -1)}",
        f"ahead of AdaFedAvg by {gain('fedavg', 'average', 2)}, which stands",
        f"ahead of AdaSingle by {gain('single', 'average', 2)}, of",
        f"of AdaFedAvg's clients by {gain('fedavg-local', 'average', 2)}, and of AdaFedKD by",
        f"and of AdaFedKD by {gain('fedkd', 'average', 2)}",
        f"on {found['fedavg', 'loss']['meetings']} meetings, with 95% intervals",
    ):
        assert sentence in told
    assert {one["why"] for one in found.values()} == {"2 of 3 runs"}
    rouge = {theirs: one["p_holm"] for (theirs, metric), one in found.items() if metric == "average"}
    assert f"which stands after Holm's correction (p {rouge.pop('fedavg'):.3f})" in told
    assert min(rouge.values()) > 0.05, "each of these may be chance"
    mean = {row["run"]: row for row in read(folder / "reports" / "tables" / "main.csv") if row["client"] == "mean"}
    personal = float(mean["fedavg"]["loss"]) - float(mean["fedavg-local"]["loss"])
    assert f"{personal:.3f} of the {found['fedavg', 'loss']['gain']['value']:.3f} are personalization" in told
    ours, theirs = (f"{float(mean[run]['length']):.0f}" for run in ("fedselectkd", "fedavg"))
    assert f"it writes {ours} words on average, AdaFedAvg {theirs}" in told
    assert float(mean["fedprox-local"]["loss"]) >= float(mean["fedavg-local"]["loss"]), "it is no better"
    signs = {place for place, one in found.items() if len({gain > 0 for gain in one["by_run"]}) > 1}
    assert signs == {("single", "average")}
    losses = [found[run, "loss"]["p_holm"] for run in ("fedavg", "single", "fedavg-local")]
    assert max(losses) <= 0.05, "by more than chance"


def test_what_is_told_of_single_clients_is_in_the_metrics_of_runs_b_and_c() -> None:
    folder = ROOT / "experiments" / "full"
    runs = [
        json.loads((folder / "reports" / "metrics" / "main" / f"seed-{seed}.json").read_text(encoding="utf-8"))
        for seed in (12, 13)
    ]

    def gains(theirs: str, client: str) -> list[str]:
        losses = [[run[name][client]["loss"]["value"] for name in (theirs, "fedselectkd")] for run in runs]
        return [f"{abs(other - ours):.4f}" for other, ours in losses]

    told = words(folder / "README.md")
    assert "ahead in both runs, by {} and {} nats".format(*gains("fedkd", "Academic")) in told
    assert (
        "better in loss than AdaFedSelectKD in both runs, by {} and {} nats".format(*gains("fedavg", "Product")) in told
    )
    assert (
        "gains {} nats at Committee in run B and loses {} there in run C".format(*gains("fedavg-local", "Committee"))
        in told
    )


def test_what_is_told_of_rows_without_a_claim_is_in_the_committed_table() -> None:
    folder = ROOT / "experiments" / "full"

    def gain(against: str, metric: str, digits: int, unit: str, sign: int) -> str:
        return span(difference(metric, against, folder / "reports"), digits, sign, unit).replace("-", "−")

    told = words(folder / "README.md")
    pull, pooled = "fedprox-local", "centralized-slower"
    for sentence in (
        f"ahead of it by {gain(pull, 'loss', 3, ' nats', -1)} and by {gain(pull, 'average', 2, ' average ROUGE', 1)}",
        f"ahead by {gain(pooled, 'loss', 3, ' nats', -1)}",
        f"and behind by {gain(pooled, 'average', 2, ' average ROUGE', -1)}",
    ):
        assert sentence in told


def test_what_is_said_of_full_scale_is_what_its_trials_found() -> None:
    """Differences of validation losses: each run at its best, and pooling at the first guess."""
    losses: dict[str, dict[float, float]] = {}
    for row in read(ROOT / "experiments" / "full" / "reports" / "tables" / "tuning.csv"):
        losses.setdefault(row["run"], {})[float(row["knobs"].partition("=")[2])] = float(row["validation_loss"])
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


def test_the_rounds_that_the_results_tell_are_those_of_the_histories() -> None:
    """Best rounds at the laptop's scale where the cap ended a run, and of the chosen trial of mu at full scale."""
    best: dict[str, set[str]] = {}
    for row in read(REPORTS / "tables" / "history.csv"):
        if row["best"] == "1":
            best.setdefault(row["run"], set()).add(row["round"])
    assert all(best[run] == {"5", "6"} for run in ("fedavg-local", "fedkd", "fedselectkd"))
    trials = read(ROOT / "experiments" / "full" / "reports" / "tables" / "tuning.csv")
    (chosen,) = (row for row in trials if row["run"] == "fedprox-local" and row["chosen"] == "1")
    assert (chosen["knobs"], sorted(chosen["best_rounds"].split("/"))) == ("mu=0.001", ["6", "7", "8"])
    told = words(ROOT / "docs" / "results.md")
    assert "ended AdaFedAvg-local, AdaFedKD and AdaFedSelectKD, whose best rounds are the fifth and sixth" in told
    assert "the one with 0.001 had its best rounds from the sixth to the eighth" in told


def test_one_meeting_of_six_has_five_times_the_difference_of_the_others() -> None:
    """What pooling gains in loss at Committee, a meeting at a time."""
    loss: dict[str, dict[str, float]] = {}
    for run in ("single", "centralized"):
        found = json.loads((REPORTS / "scores" / "main" / f"{run}-1.json").read_text(encoding="utf-8"))
        rows = [row for row in found["examples"] if row["client"] == "Committee"]
        for meeting in {row["meeting"] for row in rows}:
            own = [row for row in rows if row["meeting"] == meeting]
            loss.setdefault(meeting, {})[run] = sum(r["loss_sum"] for r in own) / sum(r["tokens"] for r in own)
    gains = {meeting: own["single"] - own["centralized"] for meeting, own in loss.items()}
    worst = gains.pop("education_17")
    assert round(worst / max(gains.values())) == 5
    assert "one meeting of six, education_17 of Committee, has five times" in words(ROOT / "docs" / "results.md")
