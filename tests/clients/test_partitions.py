"""Partitions of meetings: properties that hold for any corpus, the checks of what is drawn, batches, and folds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from conftest import make_example
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clients import kinds
from pipeline.clients.batches import SMALLEST_BATCH, batch_sizes, batches, short_rounds
from pipeline.clients.folds import FOLDS, HALVES, VALIDATION_EXAMPLES, refolded, series_of
from pipeline.clients.manifest import Manifest, check, take_at_most, take_fraction
from pipeline.clients.setting import Balanced, Domains, Iid, Setting, Share, Unit
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS
from pipeline.corpora.qmsum import DOMAINS
from pipeline.errors import QuorumError
from pipeline.plan.orders import PartitionOrder
from pipeline.runs.partitioning import draw

Sizes = tuple[int, int, int]
IDS = st.lists(st.text("abcdef0123", min_size=1, max_size=6), unique=True, max_size=40)
SIZES = st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(1, 12))
PARTS = ["First", "Second", "Third"]
OWN = Share(train_fraction=0.2, validation_examples=2, test_examples=3)


def domains_of(*clients: str, **more: Any) -> Domains:
    return Domains(data="qmsum", kind="domains", clients=list(clients), **more)


def iid_of(*of: str, unit: Unit = "example") -> Iid:
    return Iid(data="qmsum", kind="iid", clients=PARTS, of=list(of), unit=unit)


def balanced_of(clients: list[str], train: int, val: int, test: int) -> Balanced:
    counts = {"train": train, "val": val, "test": test}
    return Balanced(data="qmsum", kind="balanced", clients=clients, counts=counts)


def corpus(**sizes: Sizes) -> dict[str, Conversation]:
    """So many training, validation and test examples of each domain, each of a meeting of its own."""
    kept = [(own, *one) for own, counts in sizes.items() for one in zip(SPLITS, counts, strict=True)]
    places = ((domain, split) for domain, split, count in kept for _ in range(count))
    made = (make_example(number, domain=domain, split=split) for number, (domain, split) in enumerate(places))
    return {one.id: replace(one, corpus="qmsum") for one in made}


def sizes_of(manifest: Manifest) -> dict[str, list[int]]:
    return {client: [len(splits[split]) for split in SPLITS] for client, splits in manifest.items()}


@given(IDS, st.floats(0.01, 1), st.integers(0, 40))
def test_a_fraction_is_in_order_and_holds_every_smaller_one(ids: list[str], fraction: float, count: int) -> None:
    taken = take_fraction(ids, fraction)
    assert len(taken) == (max(1, round(fraction * len(ids))) if ids else 0)
    assert taken == [i for i in ids if i in taken]
    small, large = sorted((take_at_most(ids, count), taken), key=len)
    assert set(small) <= set(large)


@given(SIZES, SIZES, st.floats(0.05, 1), st.one_of(st.none(), st.integers(1, 10)))
def test_domains_scale_training_and_cap_validation_alone(a: Sizes, b: Sizes, fraction: float, cap: int | None) -> None:
    examples = corpus(A=a, B=b)
    manifest = domains_of("A", "B", train_fraction=fraction, validation_examples=cap).draw(examples, 1, {})
    check(manifest, examples, "test")
    expected = {c: [max(1, round(fraction * n)), min(v, cap or v), t] for c, (n, v, t) in (("A", a), ("B", b))}
    assert sizes_of(manifest) == expected
    for client, splits in manifest.items():
        assert all({(examples[i].domain, examples[i].split) for i in own} == {(client, s)} for s, own in splits.items())


@pytest.mark.parametrize(("share", "own", "weights"), [(0.5, 0.2, {"B": 2.5}), (0.5, None, {}), (None, 0.25, {"B": 4})])
def test_a_sampled_client_weighs_its_true_size(share: float | None, own: float | None, weights: Any) -> None:
    """2 of 10 are drawn where 5 would be: they weigh 2.5 each."""
    only = {"B": Share(train_fraction=own, test_examples=3)}
    assert domains_of("A", "B", train_fraction=share, only=only).weights == weights


@given(SIZES, SIZES, st.integers(0, 5), st.sampled_from(["example", "meeting"]))
def test_iid_deals_out_everything_once_and_evenly(a: Sizes, b: Sizes, seed: int, unit: Unit) -> None:
    examples = corpus(A=a, B=b)
    manifest = iid_of("A", "B", unit=unit).draw(examples, seed, {})
    assert sorted(i for own in manifest.values() for split in SPLITS for i in own[split]) == sorted(examples)
    for split in SPLITS:
        assert all(examples[i].split == split for client in PARTS for i in manifest[client][split])
        for of in (("A", "B"), ("A",), ("B",)):
            counts = [sum(examples[i].domain in of for i in manifest[client][split]) for client in PARTS]
            assert max(counts) - min(counts) <= 1


def test_iid_by_meeting_does_not_separate_a_meetings_examples() -> None:
    examples = {i: replace(e, meeting=f"m{n // 4}") for n, (i, e) in enumerate(corpus(A=(24, 0, 0)).items())}
    manifest = iid_of("A", unit="meeting").draw(examples, 1, {})
    meetings = [{examples[i].meeting for i in manifest[client]["train"]} for client in PARTS]
    assert sorted(meeting for own in meetings for meeting in own) == [f"m{n}" for n in range(6)]


@pytest.mark.parametrize(
    ("setting", "sizes"),
    [
        (domains_of("A", "B", train_fraction=0.5, only={"B": OWN}), {"A": [15, 9, 9], "B": [8, 2, 3]}),
        (iid_of("A"), {"First": [10, 3, 3], "Second": [10, 3, 3], "Third": [10, 3, 3]}),
        (balanced_of(["A", "B"], 20, 4, 5), {"A": [20, 4, 5], "B": [20, 4, 5]}),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_every_kind_draws_for_each_seed(setting: Setting, sizes: dict[str, list[int]]) -> None:
    """That two seeds draw the same is a coincidence of less than one in a million."""
    examples = corpus(A=(30, 9, 9), B=(40, 12, 12))
    first, again, other = (kinds.partition("x", setting, examples, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert sizes_of(first) == sizes


def with_own(**sizes: Sizes) -> dict[str, Conversation]:
    """As `corpus`; the meetings of `Own` are a user's."""
    return {i: replace(e, corpus="Own") if e.domain == "Own" else e for i, e in corpus(**sizes).items()}


def test_counts_are_fitted_to_the_sample_and_not_to_a_users_client() -> None:
    """20, 1 and 9 are wanted. B has the fewest training examples of the sample, A the fewest test examples."""
    wanted, fitted = (balanced_of(["A", "B", "Own"], *counts) for counts in ((20, 1, 9), (5, 1, 4)))
    assert wanted.fitted(with_own(A=(8, 2, 4), B=(5, 3, 6), Own=(3, 1, 1))) == fitted


def test_a_users_client_joins_balanced_clients_with_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    """It has more validation examples than the others may have, and fewer training examples."""
    found = drawn(balanced_of(["A", "Own"], 20, 1, 2), with_own(A=(30, 2, 2), Own=(3, 4, 1)), batch=4)
    assert sizes_of(found) == {"A": [20, 1, 2], "Own": [3, 1, 1]}
    assert "client Own has 3 training examples, so 1 steps a round" in capsys.readouterr().err


@pytest.mark.parametrize("corpora", [("qmsum", "qmsum"), ("qmsum", "ami")])
def test_a_meeting_in_training_and_test_is_a_leak_also_across_clients_and_corpora(corpora: tuple[str, str]) -> None:
    """AMI's ES2004a is QMSum's."""
    examples = {i: replace(e, corpus=corpora[e.domain == "B"]) for i, e in corpus(A=(1, 1, 1), B=(1, 1, 1)).items()}
    manifest = domains_of("A", "B").draw(examples, 1, {})
    check(manifest, examples, "manifest")
    (tested,) = manifest["B"]["test"]
    examples[tested] = replace(examples[tested], meeting=examples[manifest["A"]["train"][0]].meeting)
    with pytest.raises(QuorumError, match=r"meeting m0 is in the test of B and in the training of A"):
        check(manifest, examples, "manifest")


def drawn(setting: Setting, examples: dict[str, Conversation], sample: Sequence[str] = (), batch: int = 0) -> Manifest:
    """The checked partition of a setting `s` at seed 1."""
    fields: dict[str, Any] = {"code": {}, "task": "pipeline.tasks.summarize", "data": ["qmsum"], "seeds": [1]}
    order = PartitionOrder(**fields, setting=setting, batch=(batch, 1) if batch else None)
    return draw("s", order, examples, 1, sample).manifest


def test_a_sample_is_used_and_a_small_client_trains_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert sizes_of(drawn(balanced_of(["A"], 20, 1, 1), corpus(A=(3, 1, 1)), ["qmsum"])) == {"A": [3, 1, 1]}
    assert "s: the sample has fewer examples than params.yaml needs: train=3 val=1 test=1" in capsys.readouterr().err
    drawn(domains_of("A"), corpus(A=(3, 1, 1)), batch=16)
    assert "client A has 3 training examples, so 1 steps a round, where 5 are wanted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "a", "batch", "message"),
    [
        (balanced_of(["A"], 20, 1, 1), (3, 1, 1), 0, r"settings\.s: A has 3 train examples, not 20"),
        (domains_of("A"), (3, 1, 0), 0, "client A has no test examples"),
        # A third of 30 examples in batches of 4: 10 are 4 and 6, two steps; all 30 would be seven.
        (domains_of("A", train_fraction=0.334), (30, 2, 2), 4, "settings.s: client A has 10 .*, so 2 steps"),
        # A tenth of B's 40 examples is one batch of 4.
        (domains_of("A", "B", only={"B": Share(train_fraction=0.1)}), (40, 2, 2), 4, "client B has 4 .*, so 1 steps"),
    ],
    ids=["too few", "no test", "a fraction with too few steps", "a client's own share with too few steps"],
)
def test_a_setting_that_does_not_fit_is_one_line(setting: Setting, a: Sizes, batch: int, message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        drawn(setting, corpus(A=a, B=(40, 2, 2)), batch=batch)


@pytest.mark.parametrize(
    ("count", "size", "sizes"),
    [(32, 16, [16, 16]), (33, 16, [16, 17]), (36, 16, [16, 16, 4]), (3, 16, [3]), (19, 16, [19]), (6, 2, [2, 2, 2])],
)
def test_a_last_batch_of_under_four_joins_its_neighbour(count: int, size: int, sizes: list[int]) -> None:
    assert batch_sizes(count, size) == sizes


@given(st.integers(0, 200), st.integers(1, 40))
def test_every_example_comes_once_and_in_order(count: int, size: int) -> None:
    order = list(range(count))[::-1]
    parts = list(batches(order, size))
    assert [i for part in parts for i in part] == order
    assert all(len(part) < size + SMALLEST_BATCH for part in parts)


def test_a_round_of_fewer_than_five_steps_is_short() -> None:
    """67 examples are 5 batches, of which the last has 3 and joins: 4 steps; 68 are 5. Two epochs double them."""
    manifest = {name: {"train": list(map(str, range(n))), "val": [], "test": []} for name, n in (("A", 67), ("B", 68))}
    assert short_rounds(manifest, 16, 1) == {"A": 4}
    assert short_rounds(manifest, 16, 2) == {}


def series_corpus(series: int, queries: int) -> dict[str, Conversation]:
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
    """Each meeting is tested once, no series is in two splits, halves are even. Enough texts validate, hardly more."""
    examples, half = series_corpus(series, queries), (series - 1) // 2
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
    other = replace(make_example(1, domain="SAMSum", split="train"), id="s", corpus="samsum")
    examples = series_corpus(8, 9) | {"s": other}
    assert refolded(examples, "official") == examples
    assert refolded(examples, "first")["s"] == examples["s"]
