"""Every meeting is tested once over the three folds, and no series of meetings is on both sides of a test."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from conftest import make_example

from pipeline.clients.folds import FOLDS, HALVES, VALIDATION_EXAMPLES, refolded, series_of
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.qmsum import DOMAINS


def corpus(series: int, queries: int) -> dict[str, Conversation]:
    """Product in series of four meetings, the others in single ones; the first two are official test and val."""
    found: dict[str, Conversation] = {}
    for domain, number in product(DOMAINS, range(series)):
        split = {0: "test", 1: "val"}.get(number, "train")
        names = [f"ES{2000 + number}{letter}" for letter in "abcd"] if domain == "Product" else [f"Bed{number:03}"]
        for name, query in product(names, range(queries)):
            one = make_example(query, domain=domain, split=split)
            one = replace(one, id=f"qmsum/{domain}/{name}/{query}", corpus="qmsum", meeting=name)
            found[one.id] = one
    return found


@pytest.mark.parametrize(("series", "queries"), [(32, 8), (37, 11), (40, 12)])
def test_folds_of_any_size(series: int, queries: int) -> None:
    """Each meeting is tested once, no series is in two splits, and the halves are even.

    Each client has enough to choose a round by. Its validation examples are not more than what the last series added,
    four meetings at most.
    """
    examples, half = corpus(series, queries), (series - 1) // 2
    folds = {fold: refolded(examples, fold) for fold in FOLDS}
    assert sorted(i for own in folds.values() for i, one in own.items() if one.split == "test") == sorted(examples)
    for fold, own in folds.items():
        tested = {(one.domain, one.meeting) for one in own.values() if one.split == "test"}
        counts = Counter(domain for domain, _ in tested)
        if fold in HALVES:  # the official test is one series
            assert counts["Academic"] in (half, half + 1)
            assert counts["Product"] in (4 * half, 4 * half + 4)
        assert len({(e.domain, series_of(e.meeting), e.split) for e in own.values()}) == series * len(DOMAINS)
        for domain in DOMAINS if fold in HALVES else ():
            count = sum(one.domain == domain and one.split == "val" for one in own.values())
            assert VALIDATION_EXAMPLES <= count < VALIDATION_EXAMPLES + 4 * queries


def test_the_official_fold_and_other_corpora_stay_as_they_are() -> None:
    examples = corpus(8, 9) | {"s": replace(make_example(1, domain="SAMSum", split="train"), id="s", corpus="samsum")}
    assert refolded(examples, "official") == examples
    assert refolded(examples, "first")["s"] == examples["s"]
