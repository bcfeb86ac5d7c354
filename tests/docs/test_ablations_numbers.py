"""Every number that experiments/ablations tells of its runs stands in a sentence that is made from committed files."""

from __future__ import annotations

from itertools import combinations

import pytest
from conftest import ROOT
from told import ABLATIONS, prose, rows_of, untold
from told_of_runs import MEETINGS, OURS, Ahead, Studies, ahead_of

PAGE, RUNS, PAPER = ABLATIONS / "README.md", Studies(ABLATIONS), Studies(ROOT)
CLIENTS = "fedavg-local"  # AdaFedAvg's, before aggregation


def loss(study: str, ours: str, theirs: str) -> Ahead:
    return RUNS.ahead(study, ours, theirs, "loss")


def are_alike(study: str, *runs: str, metric: str = "loss") -> bool:
    """Whether no two of them can be told apart."""
    return not any(RUNS.ahead(study, *pair, metric).is_sure for pair in combinations(runs, 2))


def on_the_whole() -> list[str]:
    tested = {run: {row["meeting"] for row in RUNS.kept[run]["examples"]} for run in RUNS.kept}
    train = {
        name: RUNS.params["settings"][name]["sizes"]["laptop"]["counts"]["train"] for name in ("length_448", "small")
    }
    rates = RUNS.params["scales"]["laptop"]["learning_rates"]
    assert [run for run, own in RUNS.params["more_runs"].items() if "learning_rate" in own] == ["fedavg-lora"]
    assert len(RUNS.kept["small"]["examples"]) == 40, "40 test examples"
    return [
        f"the official split's {len(tested[OURS])} meetings",
        f"`length` has {train['length_448']} training examples of each of two clients, and "
        f"{len(tested['length-448'])} test meetings; `uncached` has {train['small']} of one client, "
        f"and {len(tested['small'])}",
        f"{sum(metric == 'loss' for _, metric, _ in RUNS.pairs)} in loss",
        f"{rates['server']} where the server's model is judged, {rates['local']} where a client starts from it, as "
        f"Ditto's does, and {rates['own']} where it starts from its own",
    ]


def on_algorithms() -> list[str]:
    others = ("fedavg", "fedavgm", "scaffold", "ditto")
    assert are_alike("algorithms", *others[:3])
    assert are_alike("algorithms", *filter(RUNS.writes, RUNS.runs_of("algorithms")), metric="average")
    assert min(others, key=lambda run: loss("algorithms", OURS, run).value) == "ditto"
    assert all(loss("algorithms", OURS, run).low > 0 for run in others)
    personal = loss("algorithms", "ditto", "fedavg")
    assert not personal.is_sure
    return [
        f"It has {personal.told(' nats less than AdaFedAvg')}, which may be chance",
        f"lower than Ditto's by {loss('algorithms', OURS, 'ditto')}",
    ]


def on_readings() -> list[str]:
    sent = {run: float(RUNS.histories[run]["Product"][1]["bytes_up"]) / 1e6 for run in ("fedavg-lora", "fedavg")}
    divergence = loss("readings", OURS, "fedselectkd-reverse")
    assert not divergence.is_sure
    return [
        f"With its own start AdaFedSelectKD is {loss('readings', OURS, 'fedselectkd-own').told(' nats')} worse",
        f"ahead of it by {RUNS.ahead('readings', 'fedavg', 'fedselectkd-own', 'average')}",
        f"changes the loss by {divergence}",
        f"If distillation begins with round 2, the loss is higher by {loss('readings', OURS, 'fedselectkd-from-2')}",
        f"makes AdaFedAvg worse, by {loss('readings', 'fedavg', 'fedavg-keep')}",
        f"LoRA is worse than the bottleneck by {loss('readings', 'fedavg', 'fedavg-lora')}. "
        f"It sends {sent['fedavg-lora']:.1f} MB, the bottleneck {sent['fedavg']:.1f}",
    ]


def on_lambda() -> list[str]:
    assert are_alike("lambda", OURS, "lambda-0.5")
    validation = {
        run: sum(
            float(RUNS.histories[run][client][RUNS.best_round(run, client)]["validation_loss"]) for client in MEETINGS
        )
        for run in RUNS.runs_of("lambda")
    }
    chosen = min(validation, key=validation.__getitem__).removeprefix("lambda-")
    weak, strong = (loss("lambda", OURS, f"lambda-{value}") for value in (0.1, 0.8))
    return [
        f"At {RUNS.params['lambda']} and 0.5 the loss cannot be told apart",
        f"At 0.1 it is higher than at {RUNS.params['lambda']} by {weak}, and at 0.8 by {strong.told()}",
        f"Validation would choose {chosen}; the paper has {RUNS.params['lambda']}",
    ]


def on_what_the_store_rules_out() -> list[str]:
    assert are_alike("uncached", "small", "small-prompt")
    assert are_alike("uncached", "small", "small-n15")
    return [
        f"Dropout of {RUNS.params['more_runs']['small-dropout']['dropout']} is worse by "
        f"{loss('uncached', 'small', 'small-dropout')}",
        f"told from adapters after it, {loss('uncached', 'small-prompt', 'small').told(' nats')}",
        f"Nor can 15 adapted layers be told from 6, {loss('uncached', 'small-n15', 'small').told()}",
    ]


def on_length() -> list[str]:
    def gained(metric: str, less: int, more: int) -> Ahead:
        return RUNS.ahead("length", f"length-{more}", f"length-{less}", metric)

    assert are_alike("length", "length-1024", "length-2048")
    assert are_alike("length", "length-1024", "length-2048", metric="average")
    by_client = {
        client: RUNS.of_client("length-1024", client, "average") - RUNS.of_client("length-448", client, "average")
        for client in ("Product", "Academic")
    }
    long = [RUNS.words_over_the_references(run, "Product") for run in ("length-448", "length-1024")]
    return [
        f"1,024 tokens are better than 448, by {gained('average', 448, 1024)} and {gained('loss', 448, 1024)}",
        f"it gains {by_client['Product']:.2f} there, where summaries grow from {long[0]} to {long[1]} of the "
        f"references' words, and {by_client['Academic']:.2f} at Academic",
        f"2,048 tokens cannot be told from 1,024: {gained('average', 1024, 2048)} and {gained('loss', 1024, 2048)}",
    ]


def on_tokens() -> list[str]:
    assert are_alike("mechanism", OURS, "fedkd", "kd-scaled", "kd-random")
    shares = [
        float(row["share_distilled"]) for rounds in RUNS.histories["kd-inverse"].values() for row in rounds.values()
    ]
    nothing = loss("mechanism", "kd-inverse", CLIENTS)
    assert not nothing.is_sure
    return [
        f"AdaFedSelectKD is {loss('mechanism', OURS, CLIENTS).told(' nats')} ahead of AdaFedAvg's clients",
        f"least sure are {min(shares):.0%} to {max(shares):.0%}",
        f"worse than AdaFedSelectKD by {loss('mechanism', OURS, 'kd-inverse')}",
        f"cannot be told from distilling nothing, {nothing.told()}",
    ]


def on_teachers() -> list[str]:
    others, initial, own = (loss("mechanism", f"teacher-{name}", CLIENTS) for name in ("others", "initial", "own"))
    assert [one.is_sure for one in (others, initial, own)] == [True, False, False]
    meetings = {row["meeting"] for row in RUNS.kept[OURS]["examples"]}
    hangs_on = sorted(
        meeting for meeting in meetings if not RUNS.ahead_without(meeting, OURS, "teacher-own", "loss").is_sure
    )
    assert hangs_on == ["education_13", "education_17", "education_4"]
    untrained = loss("mechanism", OURS, "teacher-initial")
    assert not untrained.is_sure
    return [
        f"gains the {loss('mechanism', OURS, CLIENTS).value:.4f} nats above, and the mean of the other clients' "
        f"adapters {others.told()}",
        f"The untrained model gains {initial.told()}, and the client's own adapter of the round before {own.told()}: "
        "both may be chance",
        f"The server's adapter is {untrained.told(' nats')} ahead of the untrained model",
        f"It is {loss('mechanism', OURS, 'teacher-own').told(' nats')} ahead of the client's own",
    ]


def behind_the_clients(setting: str) -> Ahead:
    """What the root's AdaFedSelectKD is behind AdaFedAvg's clients by, over the three clients of meetings."""
    clients, ours = RUNS.of_meetings(f"fedavg-{setting}-local"), PAPER.of_meetings(f"fedselectkd-{setting}")
    return ahead_of(clients, ours, "loss", PAPER.params["sign_flips"])


def on_clients_before_aggregation() -> list[str]:
    balanced, extreme = behind_the_clients("balanced"), behind_the_clients("extreme")
    assert not balanced.is_sure
    assert not extreme.is_sure
    mean = {setting: RUNS.mean_of(f"fedavg-{setting}-local", "loss") for setting in ("balanced", "extreme")}
    return [
        f"before aggregation have {mean['balanced']:.3f} nats, and the root's AdaFedSelectKD is "
        f"{balanced.told(' nats behind them')}",
        f"they have {mean['extreme']:.3f} in the mean over the three, and it is {extreme.told(' behind')}",
    ]


def test_every_number_of_the_page_is_told_by_committed_files() -> None:
    sentences = [
        *on_the_whole(),
        *on_algorithms(),
        *on_readings(),
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


@pytest.mark.parametrize("run", sorted(set(RUNS.kept) & set(PAPER.kept)))
def test_a_run_that_the_root_has_too_was_made_again_to_the_last_digit(run: str) -> None:
    assert RUNS.kept[run]["clients"] == PAPER.kept[run]["clients"]
    for here, there in zip(RUNS.kept[run]["examples"], PAPER.kept[run]["examples"], strict=True):
        assert here == {name: there[name] for name in here}
