"""Every number that experiments/ablations tells of its runs stands in a sentence that is made from committed files."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

import pytest
from conftest import ROOT
from told import ABLATIONS, prose, rows_of, untold, words
from told_of_runs import MEETINGS, OURS, Ahead, Studies, ahead_of

from pipeline.evaluation.scores import Scored

PAGE, RUNS, PAPER = ABLATIONS / "README.md", Studies(ABLATIONS), Studies(ROOT)
CLIENTS = "fedavg-local"  # AdaFedAvg's, before aggregation


def loss(study: str, ours: str, theirs: str) -> Ahead:
    return RUNS.ahead(study, ours, theirs, "loss")


def loss_of(ours: Sequence[Scored], theirs: Sequence[Scored]) -> Ahead:
    """The same of two runs that no study compares."""
    return ahead_of(ours, theirs, "loss", RUNS.params["sign_flips"])


def are_alike(study: str, *runs: str, metric: str = "loss") -> bool:
    """Whether no two of them can be told apart."""
    return not any(RUNS.ahead(study, *pair, metric).is_sure for pair in combinations(runs, 2))


def hangs_on(ours: str, theirs: str) -> list[str]:
    """The meetings without any one of which the two cannot be told apart in loss."""
    meetings = sorted({row.meeting for row in RUNS.scored[ours]})
    return [one for one in meetings if not RUNS.ahead_without(one, ours, theirs, "loss").is_sure]


def validation_loss(run: str) -> float:
    """Mean over clients, each at its best round."""
    return fmean(float(rounds[RUNS.best_round(run, c)]["validation_loss"]) for c, rounds in RUNS.histories[run].items())


def shares_distilled(run: str) -> list[float]:
    return [float(row["share_distilled"]) for rounds in RUNS.histories[run].values() for row in rounds.values()]


def on_the_whole() -> list[str]:
    tested = {run: {row.meeting for row in RUNS.scored[run]} for run in RUNS.kept}
    train = {
        name: RUNS.params["settings"][name]["sizes"]["laptop"]["counts"]["train"] for name in ("length_448", "small")
    }
    rates = RUNS.params["scales"]["laptop"]["learning_rates"]
    assert [run for run, own in RUNS.params["more_runs"].items() if "learning_rate" in own] == ["fedavg-lora"]

    (of_loss, sure_of_loss), (of_rouge, sure_of_rouge) = RUNS.comparisons("loss"), RUNS.comparisons("average")
    return [
        f"the official split's {len(tested[OURS])} meetings",
        f"`length` has {train['length_448']} training examples of each of two clients, and "
        f"{len(tested['length-448'])} test meetings; `uncached` has {train['small']} of one client, "
        f"and {len(tested['small'])}",
        f"{of_loss} in loss, of which {sure_of_loss} leave out 0, and {of_rouge} in average ROUGE, of which "
        f"{sure_of_rouge} do",
        f"{rates['server']} where the server's model is judged, {rates['local']} where a client starts from it, and "
        f"{rates['own']} where it starts from its own. Ditto has {rates['local']} for both",
    ]


def on_algorithms() -> list[str]:
    others, writing = ("fedavg", "fedavgm", "scaffold", "ditto"), ["fedavg", "ditto", OURS]
    assert RUNS.params["more_runs"]["fedavgm"]["server_momentum"] < 0.02, "next to none"
    assert are_alike("algorithms", *others[:3])
    signs = [RUNS.ahead_at(client, "scaffold", "fedavg", "loss") > 0 for client in MEETINGS]
    assert signs == [True, True, False], "better at Academic and Committee, and worse at Product"
    assert [run for run in RUNS.runs_of("algorithms") if RUNS.writes(run)] == writing
    assert are_alike("algorithms", *writing, metric="average")
    assert min(writing, key=lambda run: RUNS.mean_of(run, "average")) == OURS
    assert min(others, key=lambda run: loss("algorithms", OURS, run).value) == "ditto"
    assert all(loss("algorithms", OURS, run).low > 0 for run in others)
    personal, unaided = loss("algorithms", "ditto", "fedavg"), loss_of(RUNS.scored[CLIENTS], RUNS.scored["ditto"])
    assert not personal.is_sure
    steps = {run: RUNS.histories[run]["Product"][1]["steps"] for run in ("ditto", "fedavg")}
    assert int(steps["ditto"]) == 2 * int(steps["fedavg"]), "with as many steps again"
    return [
        f"It has {personal.told(' nats less than AdaFedAvg')}, which may be chance",
        f"lower than Ditto's by {loss('algorithms', OURS, 'ditto')}",
        f"are {loss('mechanism', OURS, CLIENTS).value:.4f} nats behind it, and {unaided.told(' ahead of Ditto')}",
    ]


def on_readings() -> list[str]:
    own = "fedselectkd-own"
    rates = RUNS.params["scales"]["laptop"]["learning_rates"]
    assert rates["own"] / rates["local"] == 8
    divergence = loss("readings", OURS, "fedselectkd-reverse")
    assert not divergence.is_sure
    assert are_alike("readings", "fedavg", own)
    at = {client: RUNS.ahead_at(client, "fedavg", own, "average") for client in MEETINGS}
    assert max(at, key=at.__getitem__) == "Academic"
    long = [RUNS.words_over_the_references(run, "Academic") for run in ("fedavg", own)]
    return [
        f"With its own start AdaFedSelectKD is {loss('readings', OURS, own).told(' nats')} worse, at eight times the "
        f"rate; at Product only {RUNS.ahead_at('Product', OURS, own, 'loss'):.4f}",
        f"AdaFedAvg is ahead of it by {RUNS.ahead('readings', 'fedavg', own, 'average')}",
        f"Most of that is Academic's, {at['Academic']:.2f}. AdaFedAvg writes {long[0]} of the references' words there, "
        f"and the other {long[1]}",
        f"changes the loss by {divergence}",
        f"If distillation begins with round 2, the loss is higher by {loss('readings', OURS, 'fedselectkd-from-2')}",
    ]


def on_optimizer_state_and_lora() -> list[str]:
    sent = {run: float(RUNS.histories[run]["Product"][1]["bytes_up"]) / 1e6 for run in ("fedavg-lora", "fedavg")}
    assert round(sent["fedavg"] / sent["fedavg-lora"], -1) == 100, "a hundredth of the weights"
    assert RUNS.params["lora_rank"] == 8
    assert RUNS.ended_by_the_cap("fedavg-lora")
    assert len(hangs_on("fedavg", "fedavg-keep")) == 7
    return [
        f"makes AdaFedAvg worse by {loss('readings', 'fedavg', 'fedavg-keep')}",
        f"is {loss('readings', 'fedavg', 'fedavg-lora').told(' nats')} worse than the bottleneck. "
        f"It sends {sent['fedavg-lora']:.1f} MB, the bottleneck {sent['fedavg']:.1f}",
    ]


def on_lambda() -> list[str]:
    weak, paper, half = (loss_of(RUNS.scored[run], RUNS.scored[CLIENTS]) for run in ("lambda-0.1", OURS, "lambda-0.5"))
    assert {RUNS.best_round("lambda-0.8", client) for client in MEETINGS} == {7, 8}
    assert RUNS.last_round("lambda-0.8") == 8
    validation = {run: validation_loss(run) for run in RUNS.runs_of("lambda")}
    assert min(validation, key=validation.__getitem__) == "lambda-0.5"
    return [
        f"λ = 0 is AdaFedAvg's clients, with {RUNS.mean_of(CLIENTS, 'loss'):.3f} nats. Over them 0.1 gains {weak}, the "
        f"paper's {RUNS.params['lambda']} gains {paper.told()}, and 0.5 gains {half.told()}",
        f"At 0.8 the loss is {loss('lambda', OURS, 'lambda-0.8').told(' nats')} higher than at {RUNS.params['lambda']}",
        f"Validation would choose 0.5, by {validation[OURS] - validation['lambda-0.5']:.4f} nats",
    ]


def on_what_the_store_rules_out() -> list[str]:
    assert are_alike("uncached", "small", "small-prompt")
    assert are_alike("uncached", "small", "small-n15")
    for run in RUNS.runs_of("uncached"):
        assert RUNS.best_round(run, "Product") == 2
        assert RUNS.histories[run]["Product"][1]["steps"] == "5", "ten steps in two rounds"
    return [
        f"dropout of {RUNS.params['more_runs']['small-dropout']['dropout']} is worse by "
        f"{loss('uncached', 'small', 'small-dropout')}",
        f"positions, too, have {loss('uncached', 'small', 'small-prompt').told(' nats more')}",
        f"in place of 6 have {loss('uncached', 'small-n15', 'small').told(' less')}: both may be chance",
    ]


def on_length() -> list[str]:
    short, middle, long = RUNS.runs_of("length")
    at = {client: RUNS.ahead_at(client, middle, short, "average") for client in ("Product", "Academic")}
    words = [RUNS.words_over_the_references(run, "Product") for run in (short, middle)]
    falls, writes_worse = loss("length", long, middle), RUNS.ahead("length", middle, long, "average")
    assert not falls.is_sure
    assert RUNS.ahead_at("Product", long, middle, "loss") < 0.1 * RUNS.ahead_at("Academic", long, middle, "loss")
    return [
        f"1,024 tokens are better than 448, by {RUNS.ahead('length', middle, short, 'average')} and "
        f"{loss('length', middle, short)}",
        f"it gains {at['Product']:.2f} there, where summaries grow from {words[0]} to {words[1]} of the references' "
        f"words, and {at['Academic']:.2f} at Academic",
        f"From 1,024 to 2,048 the loss falls by {falls}, nearly all at Academic, and average ROUGE by "
        f"{writes_worse.told()}: both may be chance",
        f"Validation prefers 2,048, by {validation_loss(middle) - validation_loss(long):.3f} nats",
    ]


def on_tokens() -> list[str]:
    assert are_alike("mechanism", OURS, "fedkd", "kd-scaled", "kd-random")
    surest, least = shares_distilled(OURS), shares_distilled("kd-inverse")
    nothing = loss("mechanism", "kd-inverse", CLIENTS)
    assert not nothing.is_sure
    return [
        f"is {loss('mechanism', OURS, CLIENTS).told(' nats')} ahead of AdaFedAvg's clients, which distil nothing. "
        f"It distils {min(surest):.0%} to {max(surest):.0%} of the tokens",
        f"least sure are {min(least):.0%} to {max(least):.0%}",
        f"worse than AdaFedSelectKD by {loss('mechanism', OURS, 'kd-inverse')}",
        f"cannot be told from distilling nothing, {nothing.told()}",
    ]


def on_teachers() -> list[str]:
    others, initial, own = (loss("mechanism", f"teacher-{name}", CLIENTS) for name in ("others", "initial", "own"))
    assert [one.is_sure for one in (others, initial, own)] == [True, False, False]
    assert hangs_on(OURS, "teacher-own") == ["education_13", "education_17", "education_4"]
    assert all(RUNS.ahead_at(client, OURS, "teacher-own", "loss") > 0 for client in MEETINGS)
    untrained = loss("mechanism", OURS, "teacher-initial")
    assert not untrained.is_sure
    assert validation_loss("teacher-initial") < validation_loss(OURS)
    at = {client: RUNS.ahead_at(client, OURS, "teacher-initial", "loss") for client in ("Academic", "Product")}
    return [
        f"gains those {loss('mechanism', OURS, CLIENTS).value:.4f} nats, and the mean of the other clients' adapters "
        f"{others.told()}",
        f"The untrained model gains {initial.told()}, and the client's own adapter of the round before {own.told()}: "
        "both may be chance",
        f"The server's adapter is {untrained.told(' nats')} ahead of the untrained model: ahead at Academic by "
        f"{at['Academic']:.4f}, and behind at Product by {-at['Product']:.4f}",
        f"also {loss('mechanism', OURS, 'teacher-own').told(' nats')} ahead of the client's own, at each client",
    ]


def on_clients_before_aggregation() -> list[str]:
    """Over the three clients of meetings; what distils is the root's."""
    clients = {setting: RUNS.examples(f"fedavg-{setting}-local") for setting in ("balanced", "extreme")}
    balanced, extreme = (loss_of(own, PAPER.examples(f"{OURS}-{setting}")) for setting, own in clients.items())
    kd = loss_of(PAPER.examples("fedkd-balanced"), clients["balanced"])
    assert not any(one.is_sure for one in (balanced, extreme, kd))
    assert PAPER.best_round("fedselectkd-extreme", "Academic") == 1
    mean = {setting: RUNS.mean_of(f"fedavg-{setting}-local", "loss") for setting in ("balanced", "extreme")}
    at = {
        client: RUNS.of_client("fedavg-balanced-local", client, "loss")
        - PAPER.of_client("fedselectkd-balanced", client, "loss")
        for client in MEETINGS
    }
    return [
        f"they have {mean['balanced']:.3f} nats, and it is {balanced.told(' nats behind them')}: ahead at Academic by "
        f"{at['Academic']:.4f}, and behind at Product by {-at['Product']:.4f}",
        f"AdaFedKD is {kd.told(' ahead of them there')}",
        f"they have {mean['extreme']:.3f} in the mean over the three, and AdaFedSelectKD is {extreme.told(' behind')}",
    ]


def test_every_number_of_the_page_is_told_by_committed_files() -> None:
    sentences = [
        *on_the_whole(),
        *on_algorithms(),
        *on_readings(),
        *on_optimizer_state_and_lora(),
        *on_lambda(),
        *on_what_the_store_rules_out(),
        *on_length(),
        *on_tokens(),
        *on_teachers(),
        *on_clients_before_aggregation(),
    ]
    told = PAGE.read_text(encoding="utf-8").split("## What tuning chose")[0]  # test_tuning_numbers.py has the rest
    assert untold(prose(told), sentences) == []


def test_the_table_is_that_of_the_committed_runs() -> None:
    assert rows_of(PAGE, "study | run") == RUNS.table({study: f"`{study}`" for study in RUNS.params["studies"]})


def test_every_run_was_made() -> None:
    assert set(RUNS.kept) == set(RUNS.params["more_runs"])


def test_what_of_the_laptops_table_was_made_again_is_told() -> None:
    again = set(RUNS.kept) & set(PAPER.params["runs"])
    assert again == set(PAPER.params["runs"]) - {"zeroshot", "centralized"}
    assert "Five of the six trainings were made again on another day" in words(ROOT / "docs" / "results.md")


@pytest.mark.parametrize("run", sorted(set(RUNS.kept) & set(PAPER.kept)))
def test_a_run_that_the_root_has_too_was_made_again_to_the_last_digit(run: str) -> None:
    assert RUNS.kept[run]["clients"] == PAPER.kept[run]["clients"]
    for here, there in zip(RUNS.kept[run]["examples"], PAPER.kept[run]["examples"], strict=True):
        assert here == {name: there[name] for name in here}
