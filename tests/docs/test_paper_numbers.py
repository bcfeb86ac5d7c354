"""Every number that docs/paper.md tells in words stands in a sentence that is made from committed files."""

from __future__ import annotations

import json
from itertools import combinations
from statistics import fmean

from conftest import ROOT
from told import FULL, REPORTS, prose, read, untold
from told_of_runs import MEETINGS, METRICS, OURS, Studies

PAGE, SCALES, PAPER = ROOT / "docs" / "paper.md", ("laptop", "full"), Studies(ROOT)


def on_the_whole() -> list[str]:
    rates = PAPER.params["scales"]["laptop"]["learning_rates"]
    (of_loss, sure_of_loss), (of_rouge, sure_of_rouge) = PAPER.comparisons("loss"), PAPER.comparisons("average")
    return [
        f"{of_loss} in loss, of which {sure_of_loss} leave out 0, and {of_rouge} in average ROUGE, of which "
        f"{sure_of_rouge} do",
        f"{len(list((REPORTS / 'scores' / 'more').glob('*.json')))} runs beside",
        f"It is {rates['server']} where the server's model is judged, {rates['local']} where a client starts from it, "
        f"and {rates['own']} where a client starts from its own",
    ]


def on_thresholds() -> list[str]:
    pairs = list(combinations(PAPER.runs_of("tau"), 2))
    assert not any(PAPER.ahead("tau", *pair, "average").is_sure for pair in pairs), "no two can be told apart"
    assert min(PAPER.runs_of("tau"), key=lambda run: PAPER.mean_of(run, "average")) == OURS, "5 has the lowest ROUGE"
    losses = [PAPER.mean_of(run, "loss") for run in PAPER.runs_of("tau")]
    assert losses == sorted(losses, reverse=True), "falls from 2 to 6"
    shares = PAPER.distilled("tau-6")
    return [
        f"from 2 to 6, by {PAPER.ahead('tau', 'tau-6', 'tau-2', 'loss')} in all",
        f"At 6 {min(shares):.0%} to {max(shares):.0%} of the tokens are distilled",
    ]


def on_algorithms() -> list[str]:
    others = ("fedavg", "fedopt", "fedprox", "fednova")
    assert [run for run in others if PAPER.ahead("algorithms", OURS, run, "average").is_sure] == ["fedopt"]
    assert not any(
        PAPER.ahead("algorithms", "fedavg", run, m).is_sure for run in ("fedprox", "fednova") for m in METRICS
    )
    assert (
        PAPER.best_round("fedopt", "Product")
        == PAPER.best_round("fedopt", "Committee")
        == PAPER.last_round("fedopt")
        == 8
    )
    assert all(PAPER.ahead("algorithms", OURS, run, "loss").low > 0 for run in others)
    least = min(PAPER.ahead("algorithms", OURS, run, "loss").value for run in others)
    worse = [PAPER.ahead("algorithms", "fedavg", "fedopt", metric) for metric in METRICS]
    return [
        f"AdaFedOPT is worse than AdaFedAvg, by {worse[0]} and {worse[1]}",
        f"AdaFedSelectKD's loss is lower than that of each, by {least:.4f} nats or more",
        f"it is ahead by {PAPER.ahead('algorithms', OURS, 'fedavg-local', 'loss')}",
    ]


def on_clients_that_are_alike() -> list[str]:
    alike = ("First", "Second", "Third")
    server = PAPER.mean_of("fedselectkd-iid", "server_loss", alike)
    assert f"{server:.3f}" == f"{PAPER.mean_of('fedavg-iid', 'loss', alike):.3f}", "as AdaFedAvg's"
    assert not any(PAPER.ahead("iid", *pair, "average").is_sure for pair in combinations(PAPER.runs_of("iid"), 2))
    lower = [PAPER.ahead("iid", run, "fedselectkd-iid", "loss") for run in ("fedavg-iid", "fedkd-iid")]
    of_kd = [PAPER.ahead("noniid", "fedselectkd-balanced", "fedkd-balanced", metric) for metric in METRICS]
    assert [one.is_sure for one in of_kd] == [False, True]
    assert not any(
        PAPER.ahead("noniid", "fedselectkd-balanced", "fedavg-balanced", metric).is_sure for metric in METRICS
    )
    for run in PAPER.runs_of("noniid"):
        assert max(MEETINGS, key=lambda client: PAPER.of_client(run, client, "average")) == "Committee"
    behind = PAPER.ahead("noniid", "fedkd-balanced", "fedselectkd-balanced", "loss")
    long = [PAPER.words_over_the_references(run, "Product") for run in ("fedkd-balanced", "fedselectkd-balanced")]
    return [
        f"AdaFedAvg's is {lower[0]} lower, and AdaFedKD's {lower[1].told()}",
        f"The server's model of AdaFedSelectKD's training has {server:.3f} nats, as AdaFedAvg's has; AdaFedAvg's "
        f"clients before aggregation have {PAPER.mean_of('fedavg-iid', 'local_loss', alike):.3f}",
        f"AdaFedSelectKD is {of_kd[0]} ahead of AdaFedKD, which may be chance",
        f"AdaFedKD writes {long[0]} of the references' words at Product, AdaFedSelectKD {long[1]}",
        f"In loss it is behind AdaFedKD by {behind}",
    ]


def on_samsum() -> list[str]:
    lost = {run: PAPER.ahead("extreme", run, f"{run}-extreme", "average") for run in ("fedavg", "fedkd", OURS)}
    assert all(PAPER.ahead("extreme", run, f"{run}-extreme", metric).low > 0 for run in lost for metric in METRICS)
    assert {PAPER.best_round("fedavg-extreme", client) for client in MEETINGS} == {1}
    examples = {
        row["domain"]: int(row.get("pairs") or row["paper_pairs"])
        for name in ("qmsum", "samsum")
        for row in read(REPORTS / "tables" / f"data_{name}.csv")
        if row["split"] == "train"
    }
    weight = examples["SAMSum"] / sum(examples.values())
    before = examples["Product"] / sum(examples[client] for client in MEETINGS)
    taken = PAPER.params["settings"]["extreme"]["sizes"]["laptop"]["only"]["SAMSum"]["train_fraction"]
    there = [PAPER.ahead("extreme", "fedselectkd-extreme", "fedavg-extreme", metric) for metric in METRICS]
    assert not PAPER.ahead("extreme", "single", "fedselectkd-extreme", "loss").is_sure
    first = {run: PAPER.of_client(run, "Academic", "loss") for run in ("fedselectkd-extreme", "fedselectkd-pre")}
    assert len(set(first.values())) == 1, "one model under two names"
    equal = {run: PAPER.ahead("extreme", run, f"{run}-uniform", "loss") for run in ("fedavg", OURS)}
    change = {
        client: PAPER.of_client("fedavg-uniform", client, "loss") - PAPER.of_client("fedavg", client, "loss")
        for client in MEETINGS
    }
    return [
        f"It trains on {taken * examples['SAMSum']:.0f} of its {examples['SAMSum']:,} dialogues here, "
        f"and weighs as all of them do: {weight:.0%}",
        f"Product's weight falls from {before:.0%} to {1 / len(examples):.0%}",
        f"AdaFedAvg loses {lost['fedavg']}, AdaFedKD {lost['fedkd'].told()} and AdaFedSelectKD {lost[OURS].told()}",
        f"it is {PAPER.ahead('extreme', 'fedavg-extreme', 'zeroshot-extreme', 'average')} above the untrained model",
        f"AdaFedSelectKD is ahead of AdaFedAvg there, by {there[0]} and {there[1]}",
        f"AdaSingle, which hears of no other client, is ahead of AdaFedSelectKD there, "
        f"by {PAPER.ahead('extreme', 'single', 'fedselectkd-extreme', 'average')}",
        f"have {PAPER.mean_of('fedavg-extreme', 'local_loss'):.3f} nats, and AdaFedSelectKD's "
        f"{PAPER.mean_of('fedselectkd-extreme', 'loss'):.3f}",
        f"higher than without SAMSum, by {equal['fedavg']} for AdaFedAvg and {equal[OURS].told()} for AdaFedSelectKD",
        f"With AdaFedAvg Product loses {change['Product']:.3f}, and Academic and Committee gain "
        f"{-change['Academic']:.3f} and {-change['Committee']:.3f}",
    ]


def on_a_domain_that_joins_later() -> list[str]:
    later = "fedselectkd-post"
    assert min(PAPER.histories[later]["SAMSum"]) == 9
    assert {PAPER.best_round(later, client) for client in MEETINGS} == {5, 6}
    assert (PAPER.ahead("addition", "fedselectkd-longer", later, "loss").value) == 0, "the same models"
    assert {PAPER.best_round("fedselectkd-longer", client) for client in MEETINGS} == {5, 6}, (
        "no better in three rounds more"
    )
    both = [
        {(row["client"], row["id"]): row for row in PAPER.kept[run]["examples"]}
        for run in ("fedselectkd-longer", later)
    ]
    other = [name for name in both[0] if both[0][name]["average"] != both[1][name]["average"]]
    moved = abs(
        PAPER.of_client(later, "Academic", "average") - PAPER.of_client("fedselectkd-longer", "Academic", "average")
    )
    from_the_start = [PAPER.ahead("addition", "fedselectkd-longer", "fedselectkd-pre", metric) for metric in METRICS]
    samsum = [PAPER.of_client(run, "SAMSum", "average") for run in (later, "fedselectkd-pre")]
    return [
        f"From the start it costs {from_the_start[0]} and {from_the_start[1]}",
        f"SAMSum itself has {samsum[0]:.2f} average ROUGE if it comes later, and {samsum[1]:.2f} from the start",
        f"{len(other)} of {len(both[0])} summaries have another score, "
        f"and Academic's average ROUGE moves by {moved:.2f}",
    ]


def on_long_meetings() -> list[str]:
    length = {name: float(read(REPORTS / "tables" / f"data_{name}.csv")[-1]["words"]) for name in ("ami", "icsi")}
    tested = [read(REPORTS / "tables" / f"data_{name}.csv")[-1]["pairs"] for name in ("ami", "icsi")]
    ours, fedavg = "fedselectkd-long", "fedavg-long"
    assert not any(PAPER.ahead("long", ours, fedavg, metric).is_sure for metric in METRICS)
    assert {PAPER.best_round(run, "AMI") for run in (ours, fedavg, "fedkd-long")} == {PAPER.last_round(ours)} == {8}
    apart = {
        client: PAPER.of_client(fedavg, client, "loss") - PAPER.of_client(ours, client, "loss")
        for client in ("AMI", "ICSI")
    }
    long = {(run, client): PAPER.words_over_the_references(run, client) for run in (ours, fedavg) for client in apart}
    return [
        f"of {length['ami']:,.0f} words (AMI) and {length['icsi']:,.0f} (ICSI)",
        f"On {tested[0]} and {tested[1]} test meetings",
        f"from AdaFedAvg, {PAPER.ahead('long', ours, fedavg, 'average')}",
        f"AdaFedAvg's loss is {-apart['AMI']:.3f} nats lower at AMI, and {apart['ICSI']:.3f} higher at ICSI",
        f"It writes {long[fedavg, 'AMI']} and {long[fedavg, 'ICSI']} of the references' words there, AdaFedSelectKD "
        f"{long[ours, 'AMI']} and {long[ours, 'ICSI']}",
        f"{PAPER.ahead('long', ours, 'zeroshot-long', 'average')} above the untrained model",
    ]


def on_sampling() -> list[str]:
    for run in ("fedavg", "fedkd", OURS):
        assert not any(PAPER.ahead("sampling", run, f"{run}-sampled", metric).is_sure for metric in METRICS)
    for run in ("fedavg", OURS):
        assert not PAPER.ahead("sampling", f"{run}-fewer", f"{run}-sampled", "loss").is_sure
    assert PAPER.ahead("sampling", "fedavg", "fedavg-fewer", "loss").value == 0, "the model of the whole run"
    trained = {
        run: sum(row["steps"] != "0" for rounds in PAPER.histories[run].values() for row in rounds.values())
        for run in ("fedavg-fewer", "fedselectkd-fewer", "fedavg-sampled", "fedselectkd-sampled")
    }
    assert list(trained.values()) == [15, 15, 16, 16]
    stays = PAPER.ahead("sampling", "fedselectkd-sampled", "fedavg-sampled", "loss")
    return [f"AdaFedSelectKD stays ahead of AdaFedAvg, by {stays}"]


def on_words() -> list[str]:
    rows = read(REPORTS / "tables" / "word_shares.csv")
    share = {(row["client"], row["share"]): float(row["value"]) for row in rows}
    nouns = {row["client"]: row for row in read(REPORTS / "tables" / "pos_kd.csv") if row["pos"] == "NOUN"}

    def three(values: list[float]) -> str:
        first, second, third = (f"{value:.0%}" for value in values)
        return f"{first}, {second} and {third}"

    def of_all(name: str) -> str:
        return three([share[client, name] for client in MEETINGS])

    shares = [three(PAPER.distilled(run)) for run in ("fedhardkd", "tau-2")]
    hard = {run: PAPER.ahead("hard", run, "fedhardkd", "loss") for run in (OURS, "fedavg-local", "tau-2")}
    return [
        f"{of_all('distilled')} of the words are distilled at Academic, Committee and Product",
        f"are {of_all('content_given_distilled')} of the distilled words, and {of_all('content')} of all words",
        f"Of nouns {three([float(nouns[client]['distilled_given_pos']) for client in MEETINGS])} are distilled",
        f"are {of_all('closed_given_not_distilled')} of the words that are not distilled",
        f"AdaFedHardKD is behind AdaFedSelectKD by {hard[OURS]}",
        f"behind AdaFedAvg's clients, which distil nothing, by {hard['fedavg-local']} and "
        f"{PAPER.ahead('hard', 'fedavg-local', 'fedhardkd', 'average')}",
        f"behind τ = 2, by {hard['tau-2']}. At their best rounds the two distil {shares[0]} of the tokens, and "
        f"{shares[1]}, at Academic, Committee and Product",
    ]


def on_readings() -> list[str]:
    assert not any(
        PAPER.ahead("readings", OURS, run, "average").is_sure for run in PAPER.runs_of("readings") if run != OURS
    )
    served = [PAPER.ahead("readings", run, f"{run}-own", "loss") for run in (OURS, "fedkd")]
    own = [PAPER.ahead("readings", f"{run}-own", "single", "loss") for run in (OURS, "fedkd")]
    without = PAPER.ahead_without("education_17", "fedselectkd-own", "fedkd-own", "loss")
    assert not without.is_sure
    times = [of["own"] / of["local"] for of in (PAPER.params["scales"][scale]["learning_rates"] for scale in SCALES)]
    assert times == [8, 0.5], "eightfold at the laptop's scale, twofold at full scale"
    full = {
        run: fmean(json.loads(path.read_text(encoding="utf-8"))["scores"]["clients"][c]["best_loss"] for c in MEETINGS)
        for run, path in (
            ("server", FULL / "results" / "main" / "fedselectkd-11.json"),
            ("own", FULL / "results" / "more" / "fedselectkd-own-11.json"),
        )
    }
    return [
        f"AdaFedSelectKD's loss is {served[0]} lower with the server's start, and AdaFedKD's {served[1].told()}",
        f"With its own start AdaFedSelectKD is {own[0]} below AdaSingle, and AdaFedKD {own[1].told()}",
        f"It is ahead of AdaFedKD by {PAPER.ahead('readings', 'fedselectkd-own', 'fedkd-own', 'loss')}",
        f"Without one meeting, education_17, that is {without.told()}",
        f"AdaFedSelectKD has {full['server']:.3f} nats with the server's start and {full['own']:.3f} with its own",
    ]


def on_bytes() -> list[str]:
    """What all clients send both ways until their mean validation loss is AdaFedAvg's best."""

    def path(run: str) -> list[tuple[float, float]]:
        clients, sent, found = PAPER.histories[run], 0.0, []
        for number in range(1, 1 + PAPER.last_round(run)):
            rows = [rounds[number] for rounds in clients.values()]
            sent += sum(float(row["bytes_down"]) + float(row["bytes_up"]) for row in rows) / 1e6
            found.append((sent, fmean(float(row["validation_loss"]) for row in rows)))
        return found

    goal = min(loss for _, loss in path("fedavg"))
    until = {
        run: next((f"{sent:.0f}", number) for number, (sent, loss) in enumerate(path(run), 1) if loss <= goal)
        for run in ("fedavg", "fedavg-local", "fedkd", OURS)
    }
    assert until["fedavg-local"] == until["fedkd"] == until[OURS]
    assert (until[OURS][1], until["fedavg"][1]) == (3, 5)
    return [
        f"after three rounds, {until[OURS][0]} MB. AdaFedAvg's server's model is there after five, "
        f"{until['fedavg'][0]} MB"
    ]


def on_what_the_paper_lacks() -> list[str]:
    analysis = REPORTS / "analysis"
    crossed = json.loads((analysis / "crossed" / "single-1.json").read_text(encoding="utf-8"))
    deciles = json.loads((analysis / "deciles" / "fedselectkd-1.json").read_text(encoding="utf-8"))
    words = json.loads((analysis / "divergence" / "extreme-1.json").read_text(encoding="utf-8"))["words"]
    apart = [words[one][other] for one, other in combinations(MEETINGS, 2)]
    from_samsum = [words["SAMSum"][client] for client in MEETINGS]
    surest = [deciles[client][0] for client in MEETINGS]
    assert all(one["gain"] < 0 for one in surest)
    first, second, third = (f"{one['teacher_better']:.0%}" for one in surest)
    return [
        f"does better on Committee's test than Committee's own, {crossed['Product']['Committee']:.3f} against "
        f"{crossed['Committee']['Committee']:.3f} nats",
        f"it is better than the student on {first}, {second} and {third} of the tokens",
        f"SAMSum is {min(from_samsum):.2f} to {max(from_samsum):.2f} bits from the three clients, and they are "
        f"{min(apart):.2f} to {max(apart):.2f} from each other",
    ]


def test_every_number_of_the_page_is_told_by_committed_files() -> None:
    sentences = [
        *on_the_whole(),
        *on_thresholds(),
        *on_algorithms(),
        *on_clients_that_are_alike(),
        *on_samsum(),
        *on_a_domain_that_joins_later(),
        *on_long_meetings(),
        *on_sampling(),
        *on_words(),
        *on_readings(),
        *on_bytes(),
        *on_what_the_paper_lacks(),
    ]
    assert untold(prose(PAGE.read_text(encoding="utf-8")), sentences) == []
