"""Every number that README and docs tell of all of QMSum stands in a sentence that is made from committed files."""

from __future__ import annotations

import json
import re
from statistics import fmean

import attacks_on_full
import yaml
from conftest import ROOT
from told import FULL, difference, prose, read, rows_of, shown, span, untold, words
from told_of_full import (
    PARTS,
    REPORTS,
    ahead,
    ahead_anew,
    best_losses,
    by_run,
    claims,
    cut,
    ends,
    enough,
    gain,
    holm,
    in_one_run,
    in_words,
    length,
    losses,
    made_anew,
    means,
    minus,
    more,
    of_run_a,
    of_the_controls,
    of_the_paper,
    otherwise,
    over,
    rates,
    share_read,
    shares_distilled,
    stricter_tau,
    under_the_table,
    value,
    words_written,
    worse_teachers,
)

from pipeline.evaluation.claims import word_of
from pipeline.evaluation.intervals import Interval
from pipeline.runs.audits import KNOBS

README, RESULTS = ROOT / "README.md", ROOT / "docs" / "results.md"


def test_what_is_kept_of_full_scale_is_told() -> None:
    """How many runs of how many planned, and the mean of each that is kept at every seed."""
    planned = yaml.safe_load((FULL / "params.yaml").read_text(encoding="utf-8"))
    runs = {**planned["runs"], **planned["more_runs"]}
    count = sum(len(row.get("seeds", planned["seeds"])) for row in runs.values())
    kept = len([path for group in ("main", "more") for path in (FULL / "results" / group).glob("*.json")])
    audits = len(list((FULL / "results" / "audits").glob("*.json")))
    assert audits == len(KNOBS) == 5
    assert f"{kept} of {count} runs are kept, and all five audits of run A" in words(FULL / "README.md")
    assert f"{kept} of its {count} runs are kept" in words(RESULTS)
    wanted = [
        [row["method"], shown(row, "average", 2), words_written(run), shown(row, "loss", 3)]
        for run, row in means().items()
    ]
    assert rows_of(FULL / "README.md", "method") == wanted
    beside = ("fedprox-local", "fedselectkd-q88", "kd-random", "teacher-initial")
    assert rows_of(README, "method") == [row for row, run in zip(wanted, means(), strict=True) if run not in beside]


def test_the_times_of_trainings_are_those_kept_with_the_results() -> None:
    """AdaFedAvg's clients and its server's model have one rate here, so that they are one training."""
    minutes: dict[str, list[float]] = {}
    for path in sorted((FULL / "results").glob("*/*.json")):
        if seconds := json.loads(path.read_text(encoding="utf-8")).get("training_seconds"):
            minutes.setdefault(path.stem.rpartition("-")[2], []).append(seconds / 60)
    assert rates()["local"] == rates()["server"]
    trainings = {path.stem for path in (FULL / "results").glob("m*/*.json")}
    trainings = {one for one in trainings if not one.startswith(("zeroshot", "fedavg-local"))}
    hours = sum(fmean(own) / 60 * sum(one.endswith(seed) for one in trainings) for seed, own in minutes.items())
    spans = " / ".join(f"{min(own):.0f} to {max(own):.0f} min" for _, own in sorted(minutes.items()))
    told = words(ROOT / "docs" / "performance.md")
    assert f"in run A / B / C | {spans} |" in told
    assert f"is {len(trainings)} trainings" in told
    assert f"{sum(map(len, minutes.values()))} of them were timed" in told
    assert f"all trainings take {hours:.1f} hours" in told


def test_by_the_rules_all_claims_are_undecided_as_the_readme_says() -> None:
    assert {one["word"] for one in claims().values()} == {"undecided"}
    assert "So all claims are undecided." in words(README)


def test_the_readme_tells_what_the_rules_would_say_with_a_pooled_training_that_converges() -> None:
    texts = {number: one["text"] for (number, _), one in claims().items()}
    wanted = [
        [
            f"{number}. {texts[number]}",
            *(claims("converging").get((number, metric), {"word": ""})["word"] for metric in ("average", "loss")),
        ]
        for number in sorted(texts)
    ]
    assert rows_of(README, "claim") == wanted


def over_the_pull() -> str:
    """What AdaFedSelectKD gains over AdaFedProx-local."""
    of_loss = over("fedprox-local", "loss", 3, " nats", -1)
    return f"ahead of it by {of_loss} and by {over('fedprox-local', 'average', 2, ' average ROUGE', 1)}"


def test_every_number_of_the_readme_of_full_is_told_by_its_files() -> None:
    both = best_losses()
    worse = [both["centralized-slower", seed] - both["centralized", seed] for seed in ("11", "12", "13")]
    slower = "centralized-slower"
    p = {number: claims()[number, "average"]["p_holm"] for number in (2, 3, 4)}
    assert min(p.values()) > 0.05, "each of these may be chance"
    assert losses()["fedprox-local"] >= losses()["fedavg-local"], "it is no better"
    least, most = min(shares_distilled()), max(shares_distilled())
    sentences = [
        *under_the_table(),
        of_the_controls(),
        f"pooling gains {value(0, 'loss', 3)} nats a token ({ends(0, 'loss', 3)}; p {holm(0, 'loss')})",
        f"ROUGE it gains {value(0, 'average', 2)} ({ends(0, 'average', 2)}; p {holm(0, 'average')})",
        f"where a gain of {claims()[0, 'average']['visible']:.2f} would have been seen in four cases of five",
        f"The paper's is {claims()[0, 'average']['effect']:.2f}",
        f"worse by {worse[0]:.3f} nats in run A, and within {max(map(abs, worse[1:])):.3f} in runs B and C",
        f"pooling gains {gain(0, 'loss', 3, ' nats', about='converging')}, *supported*, and "
        f"{gain(0, 'average', 2, ' average ROUGE', about='converging')}, *supported, smaller*",
        f"{length(slower)} words on average, the faster one {length('centralized')}, and AdaSingle {length('single')}",
        f"ahead of AdaFedAvg by {gain(1, 'loss', 3, ' nats')}, of AdaSingle by {gain(3, 'loss', 3)}",
        f"clients before aggregation by {gain(2, 'loss', 4)}",
        f"{ahead('fedavg-local', 'fedavg', 3)} of the {value(1, 'loss', 3)} are personalization",
        f"a gain of half of {claims()[4, 'loss']['effect']:.3f}",
        f"it is behind by {gain(4, 'loss', 4, ' nats', -1)}",
        f"it distils {least:.2f} to {most:.2f} of a client's tokens",
        f"ahead of AdaFedAvg by {gain(1, 'average', 2)}, in all three runs: *supported*, with p {holm(1, 'average')}",
        f"{length('fedselectkd')} words on average where AdaFedAvg writes {length('fedavg')}",
        f"ahead of AdaSingle by {gain(3, 'average', 2)}",
        f"clients by {gain(2, 'average', 2)}, and of AdaFedKD by {gain(4, 'average', 2)}",
        over_the_pull(),
        f"ahead by {over(slower, 'loss', 3, ' nats', -1)}, and behind by "
        f"{over(slower, 'average', 2, ' average ROUGE', -1)}",
        f"the loss is lower by {gain(6, 'loss', 4, ' nats', -1)}. By run the server's adapter gains "
        "{} (A), {} (B) and {} nats (C)".format(*by_run(6, "loss", 4)),
        f"half of the effect is {claims()[6, 'loss']['effect'] / 2:.4f}",
        f"words drawn at random the loss is lower by {gain(5, 'loss', 4, ' nats', -1)}",
        f"gains {ahead('fedselectkd', 'fedavg', 4, 'Academic')} nats at Academic and "
        f"{ahead('fedselectkd', 'fedavg', 4, 'Committee')} at Committee, and loses "
        f"{ahead('fedselectkd', 'fedavg', 4, 'Product')} at Product",
        f"clients lose {ahead('fedavg-local', 'fedavg', 4, 'Product')}",
        f"by {in_one_run(3, 'Committee', 11)} and {in_one_run(1, 'Committee', 11)} nats",
        f"With `{stricter_tau()}`, which spares more words, the loss is higher by "
        f"{over('fedselectkd-q88', 'loss', 4, ' nats', -1)}, and the average ROUGE lower by "
        f"{over('fedselectkd-q88', 'average', 2, '', 1)}",
        f"own start AdaFedSelectKD has {of_run_a('fedselectkd-own', ' average ROUGE and', ' nats')}, and AdaFedKD "
        f"{of_run_a('fedkd-own')}",
        f"AdaSingle, which has the same start, has {of_run_a('single')}; AdaFedSelectKD with the server's has "
        f"{of_run_a('fedselectkd')}",
        f"the own start's AdaFedSelectKD has {made_anew('fedselectkd-own')} average ROUGE, AdaFedKD "
        f"{made_anew('fedkd-own')}, and AdaSingle {made_anew('single')}",
    ]
    told = prose((FULL / "README.md").read_text(encoding="utf-8").split("## What came out")[1])
    assert untold(told, sentences) == []


def gains_of_pooling_on_validation() -> dict[str, float]:
    """Learning rate that both were tried at -> nats."""
    losses: dict[str, dict[str, float]] = {"single": {}, "centralized": {}}
    for row in read(REPORTS / "tables" / "tuning.csv"):
        if row["run"] in losses:
            losses[row["run"]][row["knobs"]] = float(row["validation_loss"])
    return {rate.partition("=")[2]: own - losses["centralized"][rate] for rate, own in losses["single"].items()}


def test_every_number_of_the_results_of_full_is_told_by_its_files() -> None:
    worse = worse_teachers()
    assert f"rounds up to its best, {len(worse)} in all. In every one of them the server's adapter is worse" in words(
        RESULTS
    )
    least, most = min(shares_distilled()), max(shares_distilled())
    assert {round(100 * (1 - share)) for share in shares_distilled("fedselectkd-q88")} == {12}, "12 of a hundred"
    room = gains_of_pooling_on_validation()
    assert len(room) == 4
    assert min(room.values()) > 0
    spread = {
        (n, metric): otherwise(n, metric, "runs_as_sample") for n in (0, 1, 2, 3) for metric in ("average", "loss")
    }
    errors = [claims()[number, "average"]["gain"]["standard_error"] for number in (1, 2, 3, 4)]
    assert max(errors) <= 0.20
    sentences = [
        *attacks_on_full.of_the_results(),
        f"claims 1 to 4 are {min(errors):.2f} to {max(errors):.2f} average ROUGE; at most 0.20 was asked",
        f"that tuning tried, by {min(room.values()):.3f} to {max(room.values()):.3f} nats",
        f"The {room['0.0012']:.3f} is at 0.0012, the rate of AdaSingle and of the slower pooled row",
        f"pooled gains {value(0, 'loss', 3)} nats over each client's own ({ends(0, 'loss', 3)}), and "
        f"{value(0, 'average', 2)} average ROUGE ({ends(0, 'average', 2)})",
        f"There pooling gains {gain(0, 'loss', 3, ' nats', about='converging')} and "
        f"{gain(0, 'average', 2, ' average ROUGE', about='converging')}",
        f"better than AdaFedAvg, by {gain(1, 'average', 2, ' average ROUGE')} and {gain(1, 'loss', 3, ' nats')}",
        f"better than AdaSingle, by {gain(3, 'loss', 3, ' nats')}, and than AdaFedAvg's clients before aggregation, by "
        f"{gain(2, 'loss', 4, ' nats')}",
        f"{ahead('fedavg-local', 'fedavg', 3)} of the {value(1, 'loss', 3)} nats over AdaFedAvg are personalization",
        f"gains {ahead('fedselectkd', 'fedavg', 3, 'Academic')} nats there and "
        f"{ahead('fedselectkd', 'fedavg', 3, 'Committee')} at Committee",
        f"it loses {ahead('fedselectkd', 'fedavg', 3, 'Product')}: personalization costs Product "
        f"{ahead('fedavg-local', 'fedavg', 3, 'Product')}, and the distillation term brings back "
        f"{ahead('fedselectkd', 'fedavg-local', 3, 'Product')}",
        f"as points: AdaFedSelectKD has {of_run_a('fedselectkd-own', ' average ROUGE and', ' nats')}, AdaFedKD "
        f"{of_run_a('fedkd-own')}, AdaSingle {of_run_a('single')}",
        f"it has {made_anew('fedselectkd-own')} average ROUGE, AdaFedKD {made_anew('fedkd-own')}, and AdaSingle "
        f"{made_anew('single')}",
        f"ahead of AdaSingle, by {ahead_anew('fedselectkd-own', 'single', 'average', 2)} and "
        f"{ahead_anew('fedselectkd-own', 'single', 'loss', 3, ' nats')}",
        f"The paper's tables have {of_the_paper('AdaFedSelectKD', 'AdaFedAvg')}, of ROUGE-1, 2 and L "
        "{}, {} and {}".format(*(of_the_paper("AdaFedSelectKD", "AdaFedAvg", [one]) for one in PARTS)),
        f"it is {of_the_paper('AdaFedAvg', 'AdaSingle')} average ROUGE above AdaSingle",
        f"half the paper's, {claims()[3, 'average']['effect'] / 2:.2f}, is out of reach",
        f"it is {gain(7, 'average', 2).replace(' (', ' ahead (')}",
        f"ahead of AdaFedAvg by {otherwise(1, 'average', 'untouched_runs')}",
        f"its gain is {otherwise(2, 'average', 'untouched_runs')}, and over AdaSingle "
        f"{otherwise(3, 'average', 'untouched_runs')}",
        f"with the same effect, {claims()[2, 'average']['effect']:.2f}",
        "at a level of 0.05 / 3",
        f"moves ROUGE by {more('average', 'centralized-slower', 'centralized')}",
        "AdaSingle is at {own} and all rows with a server start at {local}".format(**rates()),
        f"lower by {gain(6, 'loss', 4, ' nats', -1)}",
        f"for half of the effect is {claims()[6, 'loss']['effect'] / 2:.4f}",
        f"run A's at Committee, {in_one_run(6, 'Committee', 11, 3)} nats",
        f"adapter is {in_words(otherwise(6, 'loss', 'untouched_runs'))}",
        f"clients are {ahead('teacher-initial', 'fedavg-local', 3)} nats better than AdaFedAvg-local",
        f"by {min(worse):.2f} to {max(worse):.2f} nats",
        f"as many at random the loss is lower by {gain(5, 'loss', 4, ' nats', -1)}",
        f"The row with `{stricter_tau()}` spares the 12 of a hundred",
        f"AdaFedSelectKD at tau 5 has {over('fedselectkd-q88', 'loss', 4, ' nats less', -1)}",
        f"{-claims()[4, 'loss']['gain']['value']:.4f} nats behind AdaFedKD ({ends(4, 'loss', 4, -1)})",
        f"at Product by {ahead('fedselectkd', 'fedkd', 4, 'Product')}, at Committee by "
        f"{ahead('fedselectkd', 'fedkd', 4, 'Committee')}",
        f"{100 * (1 - most):.0f} to {100 * (1 - least):.0f} of a hundred",
        f"ahead of AdaFedAvg's clients by {gain(2, 'average', 2)}, of AdaSingle by {gain(3, 'average', 2)}, and of "
        f"AdaFedKD by {gain(4, 'average', 2)}",
        f"p is {holm(2, 'average')}, {holm(3, 'average')} and {holm(4, 'average')}",
        f"AdaFedSelectKD is {-claims('converging')[7, 'average']['gain']['value']:.2f} behind "
        f"({over('centralized-slower', 'average', 2, '', -1).partition('(')[2]}",
        f"{enough(2)} meetings like these would show the one over AdaFedAvg's clients in four cases of five, "
        f"{enough(3)} the one over AdaSingle, and {enough(4)} the one over AdaFedKD",
        f"that of the distillation term ({spread[2, 'loss']})",
        f"({spread[1, 'loss']} and {spread[3, 'loss']})",
        f"gain of pooling in ROUGE ({spread[0, 'average']})",
        f"is worse than AdaFedKD in loss ({otherwise(4, 'loss', 'runs_as_sample')})",
    ]
    told = RESULTS.read_text(encoding="utf-8").split("## All of QMSum")[1].split("\n## ")[0]
    assert untold(prose(told), sentences) == []


def test_what_is_told_of_other_looks_at_the_verdicts_is_what_they_found() -> None:
    """At a rate that converges: words with series as one, and without the meetings that tuning has seen."""
    rows = [row for row in read(REPORTS / "tables" / "robustness.csv") if row["of"] == "converging"]
    changed = {
        column: {(row["claim"], row["endpoint"]): row[column] for row in rows if row[column] != row["word"]}
        for column in ("series_as_clusters", "icsi_series_too", "without_meetings_tuned_on")
    }
    assert changed == {
        "series_as_clusters": {},
        "icsi_series_too": {("2", "average"): "excluded", ("3", "average"): "excluded", ("6", "loss"): "undecided"},
        "without_meetings_tuned_on": {
            ("1", "average"): "undecided",
            ("3", "average"): "excluded",
            ("6", "loss"): "undecided",
        },
    }
    kept = {(row["claim"], row["endpoint"]): row["leave_one_meeting_out"].partition(" times")[0] for row in rows}
    assert {place: one for place, one in kept.items() if one and one != "232 of 232"} == {
        ("3", "loss"): "230 of 232",
        ("6", "loss"): "231 of 232",
    }
    assert "claim 3 in loss, where 2 of 232 meetings change it, and claim 6, where one does" in words(RESULTS)
    spreads = {row["claim"]: row["runs_as_sample"] for row in rows if row["endpoint"] == "loss"}
    stands = {claim for claim, spread in spreads.items() if spread and not spread.startswith("−")}
    assert stands == {"0", "2"}, "of AdaFedSelectKD the distillation term's"
    gains = {number: claims()[number, "loss"]["by_run"].values() for number in (1, 2, 3, 4)}
    assert all(own > 0 for number in (1, 2, 3) for own in gains[number]), "each in all three runs"
    assert all(own < 0 for own in gains[4]), "behind in all three runs"
    alone = [row["untouched_runs"] for row in rows if row["endpoint"] == "loss" and row["claim"] in "0123"]
    assert all(own.startswith("+") and "(+" in own for own in alone), "in loss they say the same"
    _, low, high = re.findall(r"[−\d.]+", otherwise(4, "loss", "untouched_runs"))
    assert low.startswith("−"), "as does claim 4: excluded"
    assert float(high.replace("−", "-")) < claims()[4, "loss"]["effect"] / 2, "as does claim 4: excluded"
    assert {one["why"] for (number, _), one in claims().items() if number == 0} == {"not converged: centralized"}


def test_every_number_of_the_readme_is_told_by_the_files_of_full() -> None:
    rouge = {run: of_run_a(run).partition(" and")[0] for run in ("fedselectkd", "fedselectkd-own", "single")}
    on_the_laptop = span(difference("average", "fedavg"), 2, -1, " average ROUGE below AdaFedAvg")
    of_a, *of_others = claims()[3, "average"]["by_run"].values()
    assert of_a > max(of_others), "it gains most over AdaSingle in run A"
    assert f"{min(shares_distilled()):.0%} to {max(shares_distilled()):.0%} of the tokens" in words(README)
    sentences = [
        *attacks_on_full.of_the_readme(),
        *under_the_table(),
        f"the pooled model gains {value(0, 'loss', 3)} nats and {value(0, 'average', 2)} average ROUGE",
        f"better than AdaFedAvg, by {gain(1, 'average', 2, ' average ROUGE')}; the paper's gain is "
        f"{of_the_paper('AdaFedSelectKD', 'AdaFedAvg')}",
        f"AdaFedSelectKD has {rouge['fedselectkd']} average ROUGE by the reading that is judged and "
        f"{rouge['fedselectkd-own']} by the other, and AdaSingle {rouge['single']}",
        f"they have {made_anew('fedselectkd')}, {made_anew('fedselectkd-own')} and {made_anew('single')}",
        f"gain in loss over AdaFedAvg, {ahead('fedavg-local', 'fedavg', 3)} of {value(1, 'loss', 3)} nats, is "
        "personalization",
        f"AdaFedSelectKD is {minus(on_the_laptop)}",
    ]
    told = README.read_text(encoding="utf-8").split("## What came out")[1].split("\n## ")[0]
    assert untold(prose(told), sentences) == []


def test_what_differs_from_the_paper_is_told_with_the_numbers_of_files() -> None:
    tried = [
        float(row["knobs"].partition("learning_rate=")[2] or "nan") for row in read(REPORTS / "tables" / "tuning.csv")
    ]
    tried = [rate for rate in tried if rate == rate]
    least, most = min(shares_distilled()), max(shares_distilled())
    sentences = [
        f"{share_read()}. {cut()['cut']} of {cut()['examples']:,} examples are cut",
        f"at full scale between {min(tried)} and {max(tried)}; the paper has 0.0002",
        f"here {100 * least:.0f} to {100 * most:.0f} of a hundred tokens",
    ]
    told = RESULTS.read_text(encoding="utf-8").split("## What differs from the paper")[1].split("\n## ")[0]
    assert untold(prose(told), sentences) == []
    judged = RESULTS.read_text(encoding="utf-8").split("## How claims are judged")[1].split("\n## ")[0]
    assert f"AdaFedSelectKD is {of_the_paper('AdaCentralized', 'AdaFedSelectKD')} below AdaCentralized" in prose(judged)


def test_the_control_that_pulls_without_a_teacher_is_told_with_its_outcome() -> None:
    assert over_the_pull() in words(RESULTS)


def test_without_the_rule_on_convergence_the_gate_had_two_words() -> None:
    """By the tuned pooled row: the same judgement of its gains, as if it had converged."""
    found = {}
    for metric in ("average", "loss"):
        one = claims()[0, metric]
        interval = Interval(one["gain"]["value"], one["gain"]["low"], one["gain"]["high"])
        found[metric] = word_of(interval, one["effect"], one["p_holm"])
    assert found == {"average": "excluded", "loss": "supported"}
    assert all(own > 0 for own in claims()[0, "loss"]["by_run"].values())
    assert "the gate would be *supported* in loss and *excluded* in ROUGE" in words(RESULTS)
