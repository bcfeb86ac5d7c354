"""What the paper says of its settings: IID, balanced, extreme, a domain that joins, long meetings, sampled clients.

Feng et al., Section V. A figure of which the text has only bars is given in words; nothing is drawn from it. Runs are
named as in params.yaml.
"""

from __future__ import annotations

from typing import Literal

from pipeline.corpora.qmsum import DOMAINS
from pipeline.evaluation.paper_scores import Paper, effect
from pipeline.report.claims.claim import Claim
from pipeline.report.claims.section import ADDED, Section, by_loss

ALL_FOUR = (*DOMAINS, "SAMSum")


def setting_sections(paper: Paper) -> list[Section]:
    """All of them, in the paper's order."""
    return [_iid(), _noniid(), _extreme(), _addition(paper), _long(), _sampling()]


def _iid() -> Section:
    return Section(
        "iid",
        "Fig. 6",
        "IID and balanced",
        "All three clients do alike; AdaFedSelectKD is the most effective, yet distillation adds little: it "
        "is for non-IID data.",
        (
            *(
                Claim(
                    f"Little is gained by {name} over AdaFedAvg on IID data",
                    "Fig. 6",
                    f"{run}-iid",
                    "fedavg-iid",
                    "little",
                    remark="little: within half a point",
                )
                for run, name in (("fedkd", "AdaFedKD"), ("fedselectkd", "AdaFedSelectKD"))
            ),
            Claim(
                "AdaFedSelectKD is above AdaFedKD on IID data",
                "Fig. 6",
                "fedselectkd-iid",
                "fedkd-iid",
                remark=ADDED,
            ),
            Claim(
                "All clients do alike on IID data",
                "Fig. 6",
                "fedselectkd-iid",
                "",
                "little",
                remark=f"alike: within half a point; {ADDED}",
                kind="alike clients",
            ),
        ),
    )


def _noniid() -> Section:
    return Section(
        "noniid",
        "Fig. 7",
        "Non-IID and balanced",
        "With less data scores fall; AdaFedSelectKD gains more than a point over AdaFedKD; Committee does best.",
        (
            Claim(
                "AdaFedSelectKD is above AdaFedAvg when clients are balanced",
                "Fig. 7",
                "fedselectkd-balanced",
                "fedavg-balanced",
            ),
            Claim(
                "AdaFedSelectKD gains over AdaFedKD when clients are balanced",
                "Fig. 7",
                "fedselectkd-balanced",
                "fedkd-balanced",
                effect=1.0,
                remark="the paper: more than a point",
            ),
            by_loss(
                "AdaFedSelectKD's test loss is below that of AdaFedAvg's clients before aggregation when clients are "
                "balanced",
                "fedselectkd-balanced",
                "fedavg-balanced-local",
            ),
            Claim(
                "Committee does best when clients are balanced",
                "Fig. 7",
                "fedselectkd-balanced",
                "",
                clients=("Committee",),
                kind="best client",
            ),
        ),
        remark="Whether a client has less data here than elsewhere depends on the scale: the table of settings "
        "says how many examples each holds.",
    )


def _extreme() -> Section:
    def joined(run: str, method: str, rule: Literal["above", "below"]) -> Claim:
        verb = "loses" if rule == "below" else "gains"
        return Claim(
            f"{method} {verb} on the three clients when SAMSum joins",
            "Fig. 8",
            f"{run}-extreme",
            f"{run}-base",
            rule,
            clients=DOMAINS,
        )

    return Section(
        "extreme",
        "Fig. 8",
        "Extreme non-IID and unbalanced: SAMSum as a fourth client",
        "With AdaFedAvg the three clients do worse when SAMSum joins; with distillation they do better, AdaFedSelectKD "
        "best of all.",
        (
            joined("fedavg", "AdaFedAvg", "below"),
            joined("fedkd", "AdaFedKD", "above"),
            joined("fedselectkd", "AdaFedSelectKD", "above"),
            *(
                Claim(f"{ours} is above {theirs} with SAMSum, {who}", "Fig. 8", run, other, clients=clients)
                for ours, run, theirs, other in (
                    ("AdaFedSelectKD", "fedselectkd-extreme", "AdaFedAvg", "fedavg-extreme"),
                    ("AdaFedSelectKD", "fedselectkd-extreme", "AdaFedKD", "fedkd-extreme"),
                    ("AdaFedKD", "fedkd-extreme", "AdaFedAvg", "fedavg-extreme"),
                )
                for clients, who in ((DOMAINS, "on the three clients"), (ALL_FOUR, "on all four"))
            ),
            by_loss(
                "AdaFedSelectKD's test loss is below that of AdaFedAvg's clients before aggregation with SAMSum, on "
                "all four",
                "fedselectkd-extreme",
                "fedavg-extreme-local",
                clients=ALL_FOUR,
            ),
            by_loss(
                "AdaFedSelectKD's test loss is below AdaFedAvg's on the three clients when all are weighed alike",
                "fedselectkd-uniform",
                "fedavg-uniform",
                clients=DOMAINS,
            ),
            by_loss(
                "AdaFedAvg's test loss on the three clients is lower when all are weighed alike",
                "fedavg-uniform",
                "fedavg-extreme",
                clients=DOMAINS,
            ),
        ),
        remark="In full SAMSum holds 93% of all examples, so that the weighted average is nearly SAMSum's adapter; "
        "runs that weigh all clients alike stand beside. Where a scale takes a smaller part of its dialogues than of "
        "the meetings, its weight, said above the figure, is less, and its test set may be a part: see the settings.",
    )


def _addition(paper: Paper) -> Section:
    return Section(
        "addition",
        "Table VII",
        "A new domain joins",
        "Adding SAMSum helps the three clients, more when it takes part from the start (pre-addition) than when it "
        "comes in after they have converged (post-addition).",
        (
            Claim(
                "Pre-addition is above post-addition",
                "Table VII",
                "fedselectkd-pre",
                "fedselectkd-post",
                effect=effect(paper, "VII", "Pre-addition", "Post-addition"),
                clients=DOMAINS,
            ),
            *(
                Claim(
                    f"{name} is above the baseline of equal rounds",
                    "Table VII",
                    run,
                    "fedselectkd-longer",
                    effect=effect(paper, "VII", name, "Baseline"),
                    clients=DOMAINS,
                    remark="the paper's baseline stops earlier; ours runs as many rounds",
                )
                for run, name in (("fedselectkd-post", "Post-addition"), ("fedselectkd-pre", "Pre-addition"))
            ),
            Claim(
                "Pre-addition is above post-addition for SAMSum itself",
                "Table VII",
                "fedselectkd-pre",
                "fedselectkd-post",
                effect=effect(paper, "VII", "Pre-addition", "Post-addition", ("SAMSum",)),
                clients=("SAMSum",),
            ),
        ),
        tables=("VII",),
        remark="In the paper SAMSum comes in after the others have converged; here it comes in after the scale's "
        "rounds, whether they have or not.",
    )


def _long() -> Section:
    return Section(
        "long",
        "Fig. 9",
        "Long meetings",
        "With LongT5 and 16,384 tokens, on AMI, ICSI, ELITR and MeetingBank, AdaFedSelectKD outperforms the others.",
        (
            Claim("AdaFedSelectKD is above AdaFedAvg on long meetings", "Fig. 9", "fedselectkd-long", "fedavg-long"),
            Claim("AdaFedSelectKD is above AdaFedKD on long meetings", "Fig. 9", "fedselectkd-long", "fedkd-long"),
        ),
        remark="ELITR and MeetingBank are only their publishers' to give. Test loss is that of the part of a reference "
        "that fits. Where sources are cut to a fraction of their meetings, and of ICSI there are so few, this says "
        "little of long-context models.",
    )


def _sampling() -> Section:
    methods = {"fedavg": "AdaFedAvg", "fedkd": "AdaFedKD", "fedselectkd": "AdaFedSelectKD"}
    return Section(
        "sampling",
        "Fig. 10",
        "Client sampling: two of three a round",
        "Learning from all three clients is better than from two drawn each round; AdaFedSelectKD stays the best.",
        (
            *(
                Claim(
                    f"{name}: all clients are above two drawn, at equal rounds",
                    "Fig. 10",
                    f"{run}-base",
                    f"{run}-sampled",
                    equal="rounds",
                )
                for run, name in methods.items()
            ),
            *(
                by_loss(
                    f"{name}: all clients' test loss is below that of two drawn, at equal client-rounds",
                    f"{run}-fewer",
                    f"{run}-sampled",
                    equal="client-rounds",
                )
                for run, name in methods.items()
            ),
            *(
                Claim(
                    f"AdaFedSelectKD is above {methods[run]} when two are drawn",
                    "Fig. 10",
                    "fedselectkd-sampled",
                    f"{run}-sampled",
                )
                for run in ("fedavg", "fedkd")
            ),
        ),
        remark="The paper's participation of 70% is two of three clients, 67%. At equal rounds a sampled federation "
        "trains a third less; equal client-rounds are equal to a round, as long as no run stops early: how many there "
        "were is said below.",
    )
