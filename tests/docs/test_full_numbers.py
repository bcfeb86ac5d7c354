"""What README and docs tell of the experiment on all of QMSum is what its committed files hold."""

from __future__ import annotations

import json

import yaml
from conftest import ROOT
from told import FULL, difference, read, rows_of, shown, span, words


def test_what_is_kept_of_full_scale_is_told() -> None:
    """How many runs of how many planned, and the mean of each that is kept at every seed."""
    planned = yaml.safe_load((FULL / "params.yaml").read_text(encoding="utf-8"))
    runs = {**planned["runs"], **planned["more_runs"]}
    count = sum(len(row.get("seeds", planned["seeds"])) for row in runs.values())
    kept = len([path for group in ("main", "more") for path in (FULL / "results" / group).glob("*.json")])
    told = " ".join((FULL / "README.md").read_text(encoding="utf-8").split("## What came out")[1].split())
    numbers = {3: "Three", 6: "Six", 9: "Nine"}
    assert told.startswith(f"{numbers.get(kept, kept)} of {count} runs are kept")
    assert f"{kept} of its {count} runs are kept" in words(ROOT / "docs" / "results.md")
    mean = {row["run"]: row for row in read(FULL / "reports" / "tables" / "main.csv") if row["client"] == "mean"}
    wanted = [[row["method"], shown(row, "average", 2), shown(row, "loss", 3)] for row in mean.values()]
    assert rows_of(FULL / "README.md", "method") == wanted


def test_what_is_told_of_the_gate_is_what_it_was_judged_by() -> None:
    claims = json.loads((FULL / "reports" / "claims.json").read_text(encoding="utf-8"))["claims"]
    rouge, loss = ({**one, **one["gain"]} for one in claims if one["number"] == 0)
    told, results, readme = words(FULL / "README.md"), words(ROOT / "docs" / "results.md"), words(ROOT / "README.md")
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
    mean = {row["run"]: row for row in read(FULL / "reports" / "tables" / "main.csv") if row["client"] == "mean"}
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
    audits = json.loads((FULL / "reports" / "claims.json").read_text(encoding="utf-8"))["audits"]
    found = {one["endpoint"]: one["at_a_converging_rate"].replace("+", "") for one in audits if one["claim"] == 0}
    told = words(FULL / "README.md")
    results = words(ROOT / "docs" / "results.md")
    (loss_word, loss), (rouge_word, rouge) = (found[name].split(": ") for name in ("loss", "average"))
    assert (
        f"gains {loss.replace(' (', ' nats (')}, *{loss_word}*, and {rouge.replace(' (', ' average ROUGE (')}" in told
    )
    assert f"*{rouge_word}*: less than half of the paper's" in told
    assert f"{loss.replace(' (', ' nats (')} and {rouge.replace(' (', ' average ROUGE (')}" in results
    assert f"*{loss_word}* in loss; *{rouge_word}* in ROUGE" in results
    best: dict[tuple[str, str], dict[str, float]] = {}
    for row in read(FULL / "reports" / "tables" / "history.csv"):
        own, loss_now = best.setdefault((row["run"], row["seed"]), {}), float(row["validation_loss"] or "inf")
        own[row["client"]] = min(loss_now, own.get(row["client"], loss_now))
    worse = [
        sum(best["centralized-slower", seed].values()) / 3 - sum(best["centralized", seed].values()) / 3
        for seed in ("11", "12", "13")
    ]
    assert f"worse by {worse[0]:.3f} nats in run A and by at most {max(worse[1:]):.3f} in runs B and C" in told


def test_what_is_told_of_runs_b_and_c_is_what_their_claims_were_judged_by() -> None:
    claims = json.loads((FULL / "reports" / "claims.json").read_text(encoding="utf-8"))["claims"]
    found = {(one["theirs"], one["metric"]): one for one in claims if one["number"] in (1, 2, 3, 4)}

    def gain(theirs: str, metric: str, digits: int, unit: str = "", sign: int = 1) -> str:
        own = found[theirs, metric]["gain"]
        return span({**own, "difference": own["value"]}, digits, sign, unit).replace("-", "−")

    told = words(FULL / "README.md")
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
    mean = {row["run"]: row for row in read(FULL / "reports" / "tables" / "main.csv") if row["client"] == "mean"}
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
    runs = [
        json.loads((FULL / "reports" / "metrics" / "main" / f"seed-{seed}.json").read_text(encoding="utf-8"))
        for seed in (12, 13)
    ]

    def gains(theirs: str, client: str) -> list[str]:
        losses = [[run[name][client]["loss"]["value"] for name in (theirs, "fedselectkd")] for run in runs]
        return [f"{abs(other - ours):.4f}" for other, ours in losses]

    told = words(FULL / "README.md")
    assert "ahead in both runs, by {} and {} nats".format(*gains("fedkd", "Academic")) in told
    assert (
        "better in loss than AdaFedSelectKD in both runs, by {} and {} nats".format(*gains("fedavg", "Product")) in told
    )
    assert (
        "gains {} nats at Committee in run B and loses {} there in run C".format(*gains("fedavg-local", "Committee"))
        in told
    )


def test_what_is_told_of_rows_without_a_claim_is_in_the_committed_table() -> None:

    def gain(against: str, metric: str, digits: int, unit: str, sign: int) -> str:
        return span(difference(metric, against, FULL / "reports"), digits, sign, unit).replace("-", "−")

    told = words(FULL / "README.md")
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
    for row in read(FULL / "reports" / "tables" / "tuning.csv"):
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
