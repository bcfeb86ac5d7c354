"""Sections on what the paper leaves open: readings of its algorithm, controls, costs, and what only describes."""

from __future__ import annotations

from pipeline.report.claims.claim import Claim
from pipeline.report.claims.section import ADDED, FEDAVG_BASE, NOT_THEIRS, SELECTIVE_BASE, Section, by_loss

FEDAVG_LOCAL = "fedavg-base-local"
_CONTROLS = {
    "fedkd-base": "distilling everything",
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


def further_sections() -> list[Section]:
    return [_readings(), _mechanism(), *_costs(), *_descriptions()]


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
                NOT_THEIRS,
                SELECTIVE_BASE,
                "fedselectkd-server",
            ),
            *(
                by_loss(f"As it stands it is better than with {what}", SELECTIVE_BASE, run)
                for run, what in _ABLATIONS.items()
            ),
            Claim(
                "Started from the server's adapter, AdaFedSelectKD is above AdaFedAvg",
                NOT_THEIRS,
                "fedselectkd-server",
                FEDAVG_BASE,
            ),
            by_loss("A fresh optimizer each round is better than one that is kept", FEDAVG_BASE, "fedavg-keep"),
            by_loss("The paper's adapters are better than LoRA", FEDAVG_BASE, "fedavg-lora"),
        ),
    )


def _mechanism() -> Section:
    return Section(
        "mechanism",
        NOT_THEIRS,
        "What distillation does: controls",
        "Selective distillation makes the student learn what the global model is sure of.",
        (
            by_loss(
                "Distilling beats distilling nothing, from the own adapter: AdaSingle",
                SELECTIVE_BASE,
                "single-base",
                remark=ADDED,
            ),
            by_loss(
                "Distilling beats distilling nothing, from the server's: AdaFedAvg's clients before aggregation",
                "fedselectkd-server",
                FEDAVG_LOCAL,
                remark=ADDED,
            ),
            by_loss(
                "Distilling beats personalization alone: AdaFedAvg's clients before aggregation",
                SELECTIVE_BASE,
                FEDAVG_LOCAL,
                remark="these start each round from the server's adapter, which is a second difference",
            ),
            *(
                by_loss(f"Distilling what the teacher is sure of beats {what}", SELECTIVE_BASE, run)
                for run, what in _CONTROLS.items()
            ),
        ),
        remark="Nothing (with τ = 0 AdaFedSelectKD is AdaSingle, or, started from the server's adapter, AdaFedAvg's "
        "clients before aggregation), everything, λ scaled to the share that is distilled, as many tokens "
        "drawn at random, the unsure tokens instead of the sure, and other teachers. If selection matters, these "
        "should be worse. One run is compared with all of them but one.",
    )


def _costs() -> list[Section]:
    return [
        Section(
            "uncached",
            NOT_THEIRS,
            "What the store rules out",
            "The paper adapts the top half of the decoder's layers.",
            tuple(
                by_loss(f"{what} would have been better", run, "small", remark=ADDED)
                for run, what in {
                    "small-dropout": "Dropout",
                    "small-prompt": "Adapting prompt positions",
                    "small-n15": "Adapting half of the layers",
                }.items()
            ),
            remark="Elsewhere prompt positions are unadapted, dropout is 0 and N is the preset's, as the store needs "
            "it. One run each without the store, on one client, by test loss. Where a round is a step or two, they are "
            "too few to judge by.",
        ),
        Section(
            "length",
            NOT_THEIRS,
            "How much of a meeting is read",
            "LongT5 is there to read long meetings, 16,384 tokens of them.",
            (
                Claim("2,048 tokens are better than 448", NOT_THEIRS, "length-2048", "length-448"),
                Claim("1,024 tokens are better than 448", NOT_THEIRS, "length-1024", "length-448"),
            ),
            remark="The same examples, cut at 448, 1,024 and 2,048 tokens. Long sources cost: how few there are is "
            "said above the figure and in the table of settings.",
        ),
    ]


def _descriptions() -> list[Section]:
    return [
        Section(
            "matrix",
            NOT_THEIRS,
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
            remark="One bit is the most that there can be: clients without a common topic are all as far apart, "
            "however strange one of them is to the others.",
        ),
        Section(
            "communication",
            "Section I",
            "Bytes for quality",
            "Adapters spare the exchange of the whole model.",
            (),
        ),
    ]
