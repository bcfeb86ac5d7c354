"""What the paper says, a section a table or figure: its claim in words, its numbers where the text has them.

Feng et al., Sections IV and V. A figure of which the text has only bars is given in words; nothing is drawn from it.
Runs are named as in params.yaml.
"""

from __future__ import annotations

from statistics import fmean
from typing import Literal

from pipeline.corpora.qmsum import DOMAINS
from pipeline.evaluation.claims import Claim
from pipeline.evaluation.paper_scores import Paper, effect, main_effects
from pipeline.figures.section import FEDAVG_BASE, NOT_THEIRS, SELECTIVE_BASE, Section, by_loss

MAIN_RESULTS = "Tables III, IV, VI"


def paper_sections(paper: Paper) -> list[Section]:
    """All of them, in the paper's order."""
    return [
        _main(paper),
        *_tuning(),
        _algorithms(paper),
        _human(),
        *_balanced(),
        _extreme(),
        _addition(paper),
        _long(),
        _sampling(),
        *_words(),
    ]


def _main(paper: Paper) -> Section:
    gains = {other: main_effects(paper, other) for other in ("AdaFedAvg", "AdaFedKD", "AdaSingle", "AdaCentralized")}
    shown = {other: " / ".join(f"{value:.2f}" for value in values) for other, values in gains.items()}

    def above(other: str, run: str, remark: str) -> Claim:
        text = f"AdaFedSelectKD is above {other}"
        return Claim(text, MAIN_RESULTS, "fedselectkd", run, effect=fmean(gains[other]), remark=remark)

    return Section(
        "main",
        "Tables III, IV and VI",
        "Main results",
        "AdaFedSelectKD improves ROUGE over AdaFedAvg by about 1.2 points and over AdaFedKD, and is comparable or even "
        "superior to AdaCentralized, with three backbones (BART-large, BART-base, LED-large).",
        (
            above("AdaFedAvg", "fedavg", f"the text says about 1.2; its own tables give {shown['AdaFedAvg']}"),
            above("AdaFedKD", "fedkd", f"its tables give {shown['AdaFedKD']}"),
            above("AdaSingle", "single", f"its tables give {shown['AdaSingle']}"),
            Claim(
                "AdaFedSelectKD is above AdaFedAvg's clients before aggregation",
                NOT_THEIRS,
                "fedselectkd",
                "fedavg-local",
                remark="personalization alone is no distillation: a claim about distillation needs this one too",
            ),
            Claim(
                "AdaFedSelectKD is comparable to AdaCentralized",
                "Section V-A",
                "fedselectkd",
                "centralized",
                "comparable",
                remark="comparable: not more than half a point below; the text says even superior, its tables give "
                f"{shown['AdaCentralized']}",
            ),
            *(
                by_loss(f"AdaFedSelectKD loses less than {other}", "fedselectkd", run)
                for other, run in {
                    "AdaFedAvg": "fedavg",
                    "AdaFedKD": "fedkd",
                    "AdaSingle": "single",
                    "AdaFedAvg's clients before aggregation": "fedavg-local",
                }.items()
            ),
        ),
        table="IV",
        remark="One backbone stands in for three at laptop scale; the paper's numbers shown are BART-base's. The paper "
        "gives no test loss; it is the less noisy of our two endpoints.",
    )


def _algorithms(paper: Paper) -> Section:
    names = {"fedopt": "AdaFedOPT", "fedprox": "AdaFedProx", "fednova": "AdaFedNova"}
    return Section(
        "algorithms",
        "Table V",
        "Federated algorithms",
        "AdaFedOPT, AdaFedProx and AdaFedNova, made for non-IID data, are above AdaFedAvg, and AdaFedSelectKD is above "
        "them all.",
        (
            *(
                Claim(
                    f"{name} is above AdaFedAvg",
                    "Table V",
                    run,
                    FEDAVG_BASE,
                    effect=effect(paper, "V", name, "AdaFedAvg"),
                )
                for run, name in names.items()
            ),
            *(
                Claim(
                    f"AdaFedSelectKD is above {name}",
                    "Table V",
                    SELECTIVE_BASE,
                    run,
                    effect=effect(paper, "V", "AdaFedSelectKD", name),
                )
                for run, name in names.items()
            ),
            Claim(
                "AdaFedSelectKD is above AdaFedAvg, on the examples that these runs train on",
                "Table V",
                SELECTIVE_BASE,
                FEDAVG_BASE,
                effect=effect(paper, "V", "AdaFedSelectKD", "AdaFedAvg"),
            ),
            Claim("AdaFedSelectKD is above Ditto", NOT_THEIRS, SELECTIVE_BASE, "ditto"),
        ),
        table="V",
        remark="AdaFedAvgM, SCAFFOLD (with AdamW a heuristic) and Ditto are ours to add. Ditto personalizes without "
        "distilling: it is the comparison that the paper lacks.",
    )


def _balanced() -> list[Section]:
    return [
        Section(
            "iid",
            "Fig. 6",
            "IID and balanced",
            "All three clients do alike; AdaFedSelectKD is the most effective, yet distillation adds little: it "
            "is for non-IID data.",
            tuple(
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
        ),
        Section(
            "noniid",
            "Fig. 7",
            "Non-IID and balanced",
            "With less data scores fall; AdaFedSelectKD gains more than a point over AdaFedKD; Committee does best.",
            (
                Claim(
                    "AdaFedSelectKD gains over AdaFedKD when clients are balanced",
                    "Fig. 7",
                    "fedselectkd-balanced",
                    "fedkd-balanced",
                    effect=1.0,
                    remark="the paper: more than a point",
                ),
                by_loss(
                    "AdaFedSelectKD loses less than AdaFedAvg's clients before aggregation when clients are balanced",
                    "fedselectkd-balanced",
                    "fedavg-balanced-local",
                ),
            ),
        ),
    ]


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
                Claim(
                    f"AdaFedSelectKD is above {name} with SAMSum",
                    "Fig. 8",
                    "fedselectkd-extreme",
                    f"{run}-extreme",
                    remark="all four clients",
                )
                for run, name in (("fedavg", "AdaFedAvg"), ("fedkd", "AdaFedKD"))
            ),
            by_loss(
                "AdaFedSelectKD loses less than AdaFedAvg's clients before aggregation with SAMSum",
                "fedselectkd-extreme",
                "fedavg-extreme-local",
            ),
            by_loss(
                "Weighing clients alike spares the three clients some of what AdaFedAvg loses",
                "fedavg-uniform",
                "fedavg-extreme",
                clients=DOMAINS,
            ),
        ),
        remark="In full SAMSum holds 93% of all examples, so that the weighted average is nearly SAMSum's adapter; "
        "runs that weigh all clients alike stand beside. At laptop scale 1% of SAMSum's training dialogues take part, "
        "which is about two thirds of all examples, and 50 of its test dialogues.",
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
        ),
        table="VII",
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
        remark="ELITR and MeetingBank are only their publishers' to give. Scores of a meeting's summary of some 300 "
        "words from a truncated source say little of long-context models.",
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
                )
                for run, name in methods.items()
            ),
            *(
                by_loss(
                    f"{name}: all clients lose less than two drawn, at equal client-rounds",
                    f"{run}-fewer",
                    f"{run}-sampled",
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
        remark="At equal rounds a sampled federation trains a third less; at equal client-rounds it does not.",
    )


def _tuning() -> list[Section]:
    return [
        Section(
            "tau",
            "Fig. 4",
            "The entropy threshold τ",
            "Of the thresholds tried with BART-large, τ = 5 is best; it is used for all models.",
            (),
            remark="A threshold belongs to a model's own entropies: see the run with τ as a quantile, below.",
        ),
        Section(
            "lambda",
            "Section IV-D",
            "The weight λ of distillation",
            "λ is 0.2; no other value is shown.",
            (),
        ),
    ]


def _human() -> Section:
    return Section(
        "human",
        "Fig. 5",
        "Human evaluation",
        "Three raters, 60 meetings, pairs in random order: AdaFedSelectKD is preferred to AdaFedAvg in up to 87% of "
        "cases and does as well as AdaCentralized (43% wins).",
        (),
    )


def _words() -> list[Section]:
    return [
        Section(
            "words",
            "Fig. 11",
            "Which words are distilled",
            "86%, 88% and 89% of the target words are learned with the distillation loss. Nouns and verbs are nearly "
            "all of them; determiners and pronouns are 74% of the words learned without it.",
            (),
            remark="Closed-class words are about a third of the references, so nouns and verbs cannot be nearly all of "
            "86% of the words: the paper's two sentences do not go together.",
        ),
        Section(
            "hard",
            "Fig. 12",
            "Hard distillation of nouns and verbs",
            "Distilling always and only at nouns and verbs is worse than letting the teacher's entropy decide.",
            (Claim("AdaFedSelectKD is above hard distillation", "Fig. 12", SELECTIVE_BASE, "fedhardkd"),),
            remark="Hard distillation's λ is the best of four on validation, as the others' knobs are.",
        ),
        Section(
            "case",
            "Table VIII",
            "Case study",
            "AdaFedAvg's summaries are generic; AdaFedSelectKD's are more informative and closer to the domain.",
            (),
            remark="One example a client, not picked by hand: the one at which AdaFedSelectKD's gain over AdaFedAvg, "
            "in average ROUGE, is the median.",
        ),
    ]
