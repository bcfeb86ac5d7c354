"""What single meetings, clients, lengths and runs carry of the claims at full scale, as pages tell it."""

from __future__ import annotations

from told_of_full import ahead_by, claims, kept_scores, otherwise, pairs_of, with_ends

from pipeline.evaluation.intervals import Interval
from pipeline.evaluation.scores import LOSS, Scored

OURS, UNTRAINED = "fedselectkd", "teacher-initial"


def of_client(ours: str, theirs: str, metric: str, client: str) -> Interval:
    return ahead_by(ours, theirs, metric, on=lambda row, _: row.client == client)


def without_academic() -> str:
    found = ahead_by(OURS, "fedavg", LOSS, on=lambda row, _: row.client != "Academic")
    return f"ithout Academic the gain{{}} is {with_ends(found, 3)}"


def of_alike_lengths(theirs: str, within: float) -> tuple[str, str]:
    """(The gain in ROUGE where our words are so near to theirs, as a share of theirs; on how many examples)."""

    def alike(row: Scored, other: Scored) -> bool:
        return abs(row.values["length"] - other.values["length"]) <= within * other.values["length"]

    count = sum(alike(*pair) for pair in pairs_of(OURS, theirs))
    return with_ends(ahead_by(OURS, theirs, "average", on=alike), 2), f"{count:,}"


def of_lengths() -> str:
    (fifth, count), (half, more), (over_single, _) = (
        of_alike_lengths(theirs, within) for theirs, within in (("fedavg", 0.2), ("fedavg", 0.5), ("single", 0.2))
    )
    whole = ahead_by(OURS, "single", "average").value
    return (
        f"On the {count} of {len(kept_scores(OURS)):,} examples whose two lengths are within a fifth of each other the "
        f"gain is {fifth}, on the {more} within a half it is {half}. But these are other examples, too: the first "
        f"choice raises the gain over AdaSingle, from {whole:.2f} to {over_single}"
    )


def of_the_results() -> list[str]:
    """Sentences of docs/results.md."""
    parts = [with_ends(ahead_by(OURS, "fedavg", metric), 2) for metric in ("rouge1", "rouge2", "rougeL")]
    without = ahead_by(OURS, UNTRAINED, LOSS, on=lambda row, _: row.meeting != "education_17")
    academic, product = (of_client(OURS, UNTRAINED, LOSS, client) for client in ("Academic", "Product"))
    by_client = claims()[6, "loss"]["by_client"]
    assert min(by_client["Academic"].values()) > 0, "in all three runs"
    runs = [claims()[7, "average"]["by_client"]["Product"][seed] for seed in ("11", "12", "13")]
    worse, below = ahead_by("single", "fedavg", LOSS), ahead_by("fedavg", "single", "average")
    local, stricter = ahead_by("fedavg-local", "single", LOSS), ahead_by("fedkd", "fedselectkd-q88", LOSS)
    assert stricter.low > 0, "the more words are spared, the higher is the loss"
    for number in (2, 3):
        *_, high = otherwise(number, "average", "untouched_runs").rstrip(")").split()
        assert float(high) < claims()[number, "average"]["effect"] / 2, "read excluded"
    return [
        f"ROUGE-1's: {parts[0]}, where ROUGE-2 gains {parts[1]} and ROUGE-L {parts[2]}",
        of_lengths(),
        f"clients are themselves {with_ends(local, 3, unit=' nats better than AdaSingle')}",
        f"it is {with_ends(below, 2, unit=' below, which may be chance').lstrip('−')}",
        f"In loss it is {with_ends(worse, 3, unit=' nats worse than AdaSingle')}: worse at Academic, by "
        f"{-of_client('fedavg', 'single', LOSS, 'Academic').value:.3f}, and better at Product, by "
        f"{of_client('fedavg', 'single', LOSS, 'Product').value:.3f}",
        without_academic().format(" over AdaFedAvg").replace(" (", " nats (", 1),
        f"without it the server's adapter is {with_ends(without, 4, unit=' nats ahead')}",
        f"adapter is {with_ends(academic, 4, unit=' nats ahead')}",
        f"nothing is seen, {with_ends(product, 4)}",
        f"has {with_ends(stricter, 4, unit=' nats less than that row')}",
        f"AdaFedSelectKD is {runs[0]:.2f} average ROUGE ahead of AdaCentralized in run A, {-runs[1]:.2f} behind in "
        f"run B, and {runs[2]:.2f} ahead in run C",
        f"that over AdaFedAvg ({otherwise(1, 'average', 'runs_as_sample')})",
    ]


def of_the_readme() -> list[str]:
    """Sentences of README.md."""
    return [
        without_academic().format(""),
    ]
