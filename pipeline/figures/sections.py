"""What the paper says, a section a table or figure: its claim in words, its numbers where the text has them.

Feng et al., Sections IV and V. A figure of which the text has only bars is given in words; nothing is drawn from it.
Runs are named as in params.yaml.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from pipeline.corpora.qmsum import DOMAINS
from pipeline.evaluation.claims import Claim
from pipeline.evaluation.paper_scores import Paper, effect, main_effects

FEDAVG, SELECTIVE = "fedavg-base", "fedselectkd-base"
"""What runs beyond the main table are compared with."""


@dataclass(frozen=True)
class Section:
    """One table or figure of the paper, and the study of params.yaml that is its counterpart.

    `says`: the paper's claim in words. `table`: its rows in paper_results.csv. `remark`: what differs here, or where
    the paper is at odds with itself.
    """

    study: str
    source: str
    title: str
    says: str
    claims: tuple[Claim, ...]
    table: str | None = None
    remark: str = ""


def sections(paper: Paper) -> list[Section]:
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
        _readings(),
        *_beyond(),
    ]


def _main(paper: Paper) -> Section:
    gains = {other: main_effects(paper, other) for other in ("AdaFedAvg", "AdaFedKD")}
    shown = {other: " / ".join(f"{value:.2f}" for value in values) for other, values in gains.items()}
    return Section(
        "main",
        "Tables III, IV and VI",
        "Main results",
        "AdaFedSelectKD improves ROUGE over AdaFedAvg by about 1.2 points and over AdaFedKD, and is comparable or even "
        "superior to AdaCentralized, with three backbones (BART-large, BART-base, LED-large).",
        (
            Claim(
                "AdaFedSelectKD is above AdaFedAvg",
                "Tables III, IV, VI",
                "fedselectkd",
                "fedavg",
                effect=fmean(gains["AdaFedAvg"]),
                remark=f"the text says about 1.2; its own tables give {shown['AdaFedAvg']}",
            ),
            Claim(
                "AdaFedSelectKD is above AdaFedKD",
                "Tables III, IV, VI",
                "fedselectkd",
                "fedkd",
                effect=fmean(gains["AdaFedKD"]),
                remark=f"its tables give {shown['AdaFedKD']}",
            ),
            Claim(
                "AdaFedSelectKD is above AdaFedAvg's clients before aggregation",
                "not in the paper",
                "fedselectkd",
                "fedavg-local",
                remark="personalization alone is no distillation: a claim about distillation needs this one too",
            ),
            Claim("AdaFedSelectKD is above AdaSingle", "Tables III, IV, VI", "fedselectkd", "single"),
            Claim(
                "AdaFedSelectKD is comparable to AdaCentralized",
                "Section V-A",
                "fedselectkd",
                "centralized",
                "comparable",
                remark="comparable: not more than half a point below",
            ),
        ),
        table="IV",
        remark="One backbone stands in for three at laptop scale; the paper's numbers shown are BART-base's.",
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
                    FEDAVG,
                    effect=effect(paper, "V", name, "AdaFedAvg"),
                )
                for run, name in names.items()
            ),
            *(
                Claim(
                    f"AdaFedSelectKD is above {name}",
                    "Table V",
                    SELECTIVE,
                    run,
                    effect=effect(paper, "V", "AdaFedSelectKD", name),
                )
                for run, name in names.items()
            ),
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
            (
                Claim(
                    "Little is gained by AdaFedSelectKD over AdaFedAvg on IID data",
                    "Fig. 6",
                    "fedselectkd-iid",
                    "fedavg-iid",
                    "little",
                    remark="little: within half a point",
                ),
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
            ),
        ),
    ]


def _extreme() -> Section:
    def joined(run: str, method: str, rule: str, source: str = "Fig. 8") -> Claim:
        verb = "loses" if rule == "below" else "gains"
        return Claim(
            f"{method} {verb} on the three clients when SAMSum joins",
            source,
            f"{run}-extreme",
            f"{run}-base",
            "below" if rule == "below" else "above",
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
            Claim(
                "AdaFedSelectKD is above AdaFedAvg with SAMSum",
                "Fig. 8",
                "fedselectkd-extreme",
                "fedavg-extreme",
            ),
            Claim(
                "Weighing clients alike spares the three clients some of what AdaFedAvg loses",
                "not in the paper",
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
            Claim(
                "Post-addition is above the baseline of equal rounds",
                "Table VII",
                "fedselectkd-post",
                "fedselectkd-longer",
                effect=effect(paper, "VII", "Post-addition", "Baseline"),
                clients=DOMAINS,
                remark="the paper's baseline stops earlier; ours runs as many rounds",
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
                Claim(
                    f"{name}: all clients are above two drawn, at equal client-rounds",
                    "not in the paper",
                    f"{run}-fewer",
                    f"{run}-sampled",
                )
                for run, name in methods.items()
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
            (Claim("AdaFedSelectKD is above hard distillation", "Fig. 12", SELECTIVE, "fedhardkd"),),
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


_CONTROLS = {
    "kd-scaled": "distilling everything as little",
    "kd-random": "distilling as many tokens drawn at random",
    "kd-inverse": "distilling what it is not sure of",
    "teacher-initial": "a teacher that has learned nothing",
    "teacher-own": "a teacher that is the client of the round before",
    "teacher-others": "a teacher that is the mean of the others",
}
_ABLATIONS = {
    "fedselectkd-reverse": "KL(q_l, q_g) as Eq. 6 is written",
    "fedselectkd-from-2": "distilling from the second round on",
    "fedselectkd-q88": "τ as the 88th percentile of the entropies",
}


def _by_loss(text: str, ours: str, theirs: str) -> Claim:
    return Claim(text, "not in the paper", ours, theirs, "below", "loss", remark="by test loss, nats a token")


def _beyond() -> list[Section]:
    return [
        Section(
            "mechanism",
            "not in the paper",
            "What distillation does: controls at equal budget",
            "Selective distillation makes the student learn what the global model is sure of.",
            tuple(
                _by_loss(f"Distilling what the teacher is sure of beats {what}", SELECTIVE, run)
                for run, what in _CONTROLS.items()
            ),
            remark="λ scaled to the share that is distilled, as many tokens drawn at random, the unsure tokens instead "
            "of the sure, and other teachers. If selection matters, these should be worse.",
        ),
        Section(
            "uncached",
            "not in the paper",
            "What the store rules out",
            "The paper adapts the top half of the decoder, in the training of a model with dropout.",
            (),
            remark="Prompt positions are unadapted, dropout is 0 and N = 6 of 30 layers, as the store needs it. One "
            "run each without the store, on one client and few examples, by test loss.",
        ),
        Section(
            "length",
            "not in the paper",
            "How much of a meeting is read",
            "BART and LED read 1,024 tokens; longer inputs need LongT5.",
            (
                Claim("2,048 tokens are better than 448", "not in the paper", "length-2048", "length-448"),
                Claim("1,024 tokens are better than 448", "not in the paper", "length-1024", "length-448"),
            ),
            remark="The same examples, cut at 448, 1,024 and 2,048 tokens; few of them, as long sources cost.",
        ),
        Section(
            "matrix",
            "not in the paper",
            "Train client by test domain",
            "Each client has a domain of its own.",
            (),
        ),
        Section(
            "divergence",
            "Section V-B",
            "How different the clients are",
            "The domains are non-IID, SAMSum vastly different from all.",
            (),
        ),
        Section(
            "communication",
            "Section I",
            "Bytes for quality",
            "Adapters spare the exchange of the whole model.",
            (),
        ),
    ]


def _readings() -> Section:
    return Section(
        "readings",
        "Algorithm 1",
        "Two readings, and ablations",
        "The text keeps a local adapter beside the global one; the pseudo-code has one W that every round overwrites. "
        "Eq. 6 is written KL(q_l, q_g).",
        (
            Claim(
                "Starting from the own adapter is above starting from the server's",
                "not in the paper",
                SELECTIVE,
                "fedselectkd-server",
            ),
            *(
                _by_loss(f"As it stands it is better than with {what}", SELECTIVE, run)
                for run, what in _ABLATIONS.items()
            ),
            _by_loss("A fresh optimizer each round is better than one that is kept", FEDAVG, "fedavg-keep"),
            _by_loss("The paper's adapters are better than LoRA", FEDAVG, "fedavg-lora"),
        ),
    )
