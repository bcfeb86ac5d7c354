"""Every meeting is tested once over the three folds, and no series of meetings is on both sides of a test."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import make_example
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clients.folds import FOLDS, HALVES, VALIDATION_EXAMPLES, Fold, refolded, series_of
from pipeline.corpora.example import Example
from pipeline.corpora.qmsum import DOMAINS


def meetings(domain: str, names: list[str], split: str, queries: int) -> dict[str, Example]:
    found = {}
    for name in names:
        for query in range(queries):
            one = make_example(query, domain=domain, split=split)
            one = replace(one, id=f"qmsum/{domain}/{name}/{query}", corpus="qmsum", meeting=name)
            found[one.id] = one
    return found


def corpus(series: int, queries: int) -> dict[str, Example]:
    """Product in series of four, the others in meetings of their own; the first two are official test and val."""
    found: dict[str, Example] = {}
    for domain in DOMAINS:
        for number in range(series):
            split = {0: "test", 1: "val"}.get(number, "train")
            names = [f"ES{2000 + number}{letter}" for letter in "abcd"] if domain == "Product" else [f"Bed{number:03}"]
            found |= meetings(domain, names, split, queries)
    return found


sizes = st.tuples(st.integers(32, 40), st.integers(8, 12))


@given(sizes)
def test_every_meeting_is_tested_once(size: tuple[int, int]) -> None:
    examples = corpus(*size)
    tested = [i for fold in FOLDS for i, one in refolded(examples, fold).items() if one.split == "test"]
    assert sorted(tested) == sorted(examples)


@given(sizes, st.sampled_from(FOLDS))
def test_no_series_is_in_two_splits(size: tuple[int, int], fold: Fold) -> None:
    splits: dict[tuple[str, str], set[str]] = {}
    for one in refolded(corpus(*size), fold).values():
        splits.setdefault((one.domain, series_of(one.meeting)), set()).add(one.split)
    assert all(len(own) == 1 for own in splits.values())


@given(sizes, st.sampled_from(HALVES))
def test_every_client_has_enough_to_choose_a_round_by(size: tuple[int, int], fold: Fold) -> None:
    """And not much more: what the last series added, four meetings at most."""
    for domain in DOMAINS:
        own = [one for one in refolded(corpus(*size), fold).values() if one.domain == domain and one.split == "val"]
        assert VALIDATION_EXAMPLES <= len(own) < VALIDATION_EXAMPLES + 4 * size[1]


def test_the_halves_are_even() -> None:
    """Of eleven meetings that are not the official test, five or six; of eleven series of four, 20 or 24 meetings."""
    examples = corpus(12, 9)
    for fold in HALVES:
        tested = {(one.domain, one.meeting) for one in refolded(examples, fold).values() if one.split == "test"}
        counts = {domain: sum(own == domain for own, _ in tested) for domain in DOMAINS}
        assert counts["Academic"] in (5, 6)
        assert counts["Product"] in (20, 24)


def test_the_official_fold_and_other_corpora_stay_as_they_are() -> None:
    examples = corpus(8, 9) | {"s": replace(make_example(1, domain="SAMSum", split="train"), id="s", corpus="samsum")}
    assert refolded(examples, "official") == examples
    assert refolded(examples, "first")["s"] == examples["s"]


@pytest.mark.parametrize(
    ("meeting", "series"), [("IS1003d", "IS1003"), ("Bed003", "Bed003"), ("covid_1", "covid_1"), ("Spr001", "Spr001")]
)
def test_an_ami_series_is_named_by_all_but_the_last_letter(meeting: str, series: str) -> None:
    assert series_of(meeting) == series
