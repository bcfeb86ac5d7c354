"""Partitions: properties that hold for any corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import make_example
from hypothesis import given
from hypothesis import strategies as st

from pipeline.clients import balanced, domains, iid, kinds
from pipeline.clients.manifest import Manifest, check, take_at_most, take_fraction
from pipeline.clients.setting import Balanced, Counts, Domains, Iid, Setting, Share, Unit
from pipeline.corpora.example import SPLITS, Example
from pipeline.errors import QuorumError
from pipeline.plan.orders import PartitionOrder
from pipeline.stages import partition as partition_stage
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json, write_jsonl

IDS = st.lists(st.text("abcdef0123", min_size=1, max_size=6), unique=True, max_size=40)


def domains_of(*clients: str, **more: Any) -> Domains:
    return Domains(kind="domains", clients=list(clients), **more)


def iid_of(*of: str, unit: Unit = "example", **more: Any) -> Iid:
    return Iid(kind="iid", clients=PARTS, of=list(of), unit=unit, **more)


def balanced_of(clients: list[str], train: int, val: int, test: int) -> Balanced:
    return Balanced(kind="balanced", clients=clients, counts=Counts(train=train, val=val, test=test))


PARTS = ["First", "Second", "Third"]


def corpus(sizes: dict[str, tuple[int, int, int]]) -> dict[str, Example]:
    examples = {}
    number = 0
    for domain, counts in sizes.items():
        for split, count in zip(SPLITS, counts, strict=True):
            for _ in range(count):
                number += 1
                example = make_example(number, domain=domain, split=split)
                examples[example.id] = example
    return examples


@given(IDS, st.floats(0.01, 1))
def test_a_fraction_is_a_rounded_subset_in_order(ids: list[str], fraction: float) -> None:
    taken = take_fraction(ids, fraction)
    assert len(taken) == (max(1, round(fraction * len(ids))) if ids else 0)
    assert taken == [i for i in ids if i in taken]


@given(IDS, st.integers(0, 40), st.integers(0, 40))
def test_a_larger_sample_holds_the_smaller(ids: list[str], a: int, b: int) -> None:
    small, large = sorted((a, b))
    assert set(take_at_most(ids, small)) <= set(take_at_most(ids, large))


SIZES = st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(1, 12))


@given(st.fixed_dictionaries({"A": SIZES, "B": SIZES}), st.floats(0.05, 1), st.one_of(st.none(), st.integers(1, 10)))
def test_domains_scale_training_cap_validation_and_keep_test_whole(
    sizes: dict[str, tuple[int, int, int]], fraction: float, cap: int | None
) -> None:
    examples = corpus(sizes)
    manifest = domains.partition(domains_of("A", "B", train_fraction=fraction, validation_examples=cap), examples, 1)
    check(manifest, examples, "test")
    for client, (train, val, test) in sizes.items():
        held = manifest[client]
        assert len(held["train"]) == max(1, round(fraction * train))
        assert len(held["val"]) == (val if cap is None else min(val, cap))
        assert len(held["test"]) == test
        assert all(examples[i].domain == client and examples[i].split == split for split in SPLITS for i in held[split])


def test_a_client_without_examples_is_one_line() -> None:
    examples = corpus({"A": (2, 1, 1)})
    manifest = domains.partition(domains_of("A", "B"), examples, 1)
    with pytest.raises(QuorumError, match="client B has no train examples"):
        check(manifest, examples, "manifest")


def test_a_meeting_in_training_and_test_is_a_leak_also_across_clients() -> None:
    examples = corpus({"A": (1, 1, 1), "B": (1, 1, 1)})
    leaked = next(e for e in examples.values() if e.domain == "A" and e.split == "train")
    twin = Example("other", leaked.corpus, "B", "test", leaked.meeting, "q", leaked.turns, "t")
    examples["other"] = twin
    manifest = domains.partition(domains_of("A", "B"), examples, 1)
    with pytest.raises(QuorumError, match=f"meeting {leaked.meeting} is in the test of B and in the training of A"):
        check(manifest, examples, "manifest")


def test_a_leak_fails_the_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan({"domains": domains_of("A")}, ["qmsum"])
    examples = corpus({"A": (2, 1, 1)}).values()
    trained = next(e for e in examples if e.split == "train")
    lay("qmsum", {e.id: replace(e, meeting=trained.meeting) if e.split == "test" else e for e in examples})
    with pytest.raises(QuorumError, match=f"meeting {trained.meeting} is in the test of A and in the training of A"):
        partition_stage.run("main")
    assert not layout.manifest("main", "domains", 1).exists()


def test_the_stage_asks_the_sample_for_what_it_has_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three training examples where twenty are asked for."""
    monkeypatch.chdir(tmp_path)
    plan({"even": balanced_of(["A"], 20, 1, 1)}, ["qmsum"])
    lay("qmsum", {i: replace(e, corpus="qmsum") for i, e in corpus({"A": (3, 1, 1)}).items()}, "sample")
    partition_stage.run("main")
    assert len(read_json(layout.manifest("main", "even", 1))["A"]["train"]) == 3
    assert "even: the sample has less than params.yaml asks for: train=3 val=1 test=1" in capsys.readouterr().err


def test_recordings_under_two_corpora_are_one_meeting() -> None:
    """AMI's ES2004a is QMSum's: in the training of one client and the test of another it is a leak."""
    turns = (make_example(1).turns[0],)
    rows = [("qmsum", "A", split, f"m{i}") for i, split in enumerate(SPLITS)]
    rows += [("ami", "B", split, name) for split, name in zip(SPLITS, ("m2", "x", "y"), strict=True)]
    examples = {f"{c}/{m}": Example(f"{c}/{m}", c, d, s, m, "q", turns, "t") for c, d, s, m in rows}
    with pytest.raises(QuorumError, match="meeting m2 is in the test of A and in the training of B"):
        check(domains.partition(domains_of("A", "B"), examples, 1), examples, "manifest")


def test_a_client_can_have_a_share_of_its_own() -> None:
    examples = corpus({"A": (10, 4, 4), "B": (10, 4, 4)})
    own = Share(train_fraction=0.2, validation_examples=2, test_examples=3)
    setting = domains_of("A", "B", train_fraction=0.5, only={"B": own})
    manifest = domains.partition(setting, examples, 1)
    assert [[len(manifest[c][split]) for split in SPLITS] for c in ("A", "B")] == [[5, 4, 4], [2, 2, 3]]


@pytest.mark.parametrize(
    ("whole", "only", "weights"),
    [
        (0.5, Share(train_fraction=0.2), {"B": 2.5}),  # 2 of 10 are drawn where 5 would be
        (0.5, Share(test_examples=3), {}),
        (None, Share(train_fraction=0.25), {"B": 4.0}),
    ],
)
def test_an_example_of_a_client_that_is_sampled_stands_for_several(
    whole: float | None, only: Share, weights: dict[str, float]
) -> None:
    assert domains_of("A", "B", train_fraction=whole, only={"B": only}).weights == weights


def held(manifest: Manifest) -> list[str]:
    return [i for splits in manifest.values() for split in SPLITS for i in splits[split]]


@given(st.fixed_dictionaries({"A": SIZES, "B": SIZES}), st.integers(0, 5), st.sampled_from(["example", "meeting"]))
def test_iid_deals_out_everything_once_and_evenly(
    sizes: dict[str, tuple[int, int, int]], seed: int, unit: Unit
) -> None:
    examples = corpus(sizes)
    manifest = iid.partition(iid_of("A", "B", unit=unit), examples, seed)
    assert sorted(held(manifest)) == sorted(examples)
    for split in SPLITS:
        counts = [len(manifest[client][split]) for client in PARTS]
        assert max(counts) - min(counts) <= 1
        assert all(examples[i].split == split for client in PARTS for i in manifest[client][split])
        for domain in ("A", "B"):
            of = [sum(examples[i].domain == domain for i in manifest[client][split]) for client in PARTS]
            assert max(of) - min(of) <= 1


def test_iid_deals_anew_for_each_seed() -> None:
    examples = corpus({"A": (30, 9, 9)})
    first, again, other = (iid.partition(iid_of("A"), examples, seed) for seed in (1, 1, 2))
    assert first == again != other


def test_iid_by_meeting_keeps_a_meeting_together() -> None:
    examples = {}
    for i in range(24):
        example = make_example(i // 4, domain="A", split=SPLITS[i % 3 if i < 12 else 0])
        examples[f"{example.id}/{i}"] = Example(
            f"{example.id}/{i}", "q", "A", example.split, f"{example.meeting}{example.split}", "q", (), "t"
        )
    manifest = iid.partition(iid_of("A", unit="meeting"), examples, 1)
    where = {}
    for client in PARTS:
        for i in manifest[client]["train"]:
            assert where.setdefault(examples[i].meeting, client) == client


def test_balanced_draws_as_many_of_each_anew_for_each_seed() -> None:
    examples = corpus({"A": (30, 9, 9), "B": (40, 12, 12)})
    setting = balanced_of(["A", "B"], 20, 4, 5)
    first, again, other = (balanced.partition(setting, examples, seed) for seed in (1, 1, 2))
    assert [[len(first[c][split]) for split in SPLITS] for c in ("A", "B")] == [[20, 4, 5]] * 2
    assert first == again != other
    assert len(set(held(first))) == len(held(first))


def test_balanced_with_too_few_examples_names_the_setting() -> None:
    setting = balanced_of(["A"], 20, 1, 1)
    with pytest.raises(QuorumError, match=r"settings\.even: A has 3 train examples, not 20"):
        kinds.partition("even", setting, corpus({"A": (3, 1, 1)}), 1)


def of_two(sample: set[str]) -> Counts:
    """Question for 20, 1 and 9, where B has least to train on and A least to test on."""
    held = corpus({"A": (8, 2, 4), "B": (5, 3, 6)})
    examples = {i: replace(e, corpus=f"of {e.domain}") for i, e in held.items()}
    found = balanced.fitted(balanced_of(["A", "B"], 20, 1, 9), examples, sample)
    assert isinstance(found, Balanced)
    return found.counts


def test_balanced_fitted_to_the_sample_stays_balanced() -> None:
    assert of_two({"of A", "of B"}) == Counts(train=5, val=1, test=4)


def test_real_clients_are_asked_for_what_was_asked() -> None:
    assert of_two(set()) == Counts(train=20, val=1, test=9)
    assert of_two({"of A"}) == Counts(train=8, val=1, test=4)


def test_settings_of_other_kinds_ask_the_sample_for_nothing() -> None:
    """They take shares of what there is."""
    for setting in (domains_of("A", train_fraction=0.5), iid_of("A", "B")):
        assert balanced.fitted(setting, corpus({"A": (3, 1, 1)}), {"q"}) is setting


def test_a_setting_names_its_kind() -> None:
    """One example in three with each kind: the domain's one, three parts of it, and a drawn one."""
    examples = corpus({"A": (3, 3, 3)})
    asked: dict[str, Setting] = {
        "third": domains_of("A", train_fraction=1 / 3),
        "parts": iid_of("A"),
        "even": balanced_of(["A"], 1, 3, 3),
    }
    found = {name: kinds.partition(name, setting, examples, 1) for name, setting in asked.items()}
    trained = {name: {c: len(splits["train"]) for c, splits in one.items()} for name, one in found.items()}
    assert trained == {"third": {"A": 1}, "parts": dict.fromkeys(PARTS, 1), "even": {"A": 1}}


def test_a_corpus_that_the_order_does_not_name_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SAMSum was taken out of params.yaml: what an earlier plan prepared of it lies there, and is broken besides."""
    monkeypatch.chdir(tmp_path)
    plan({"domains": domains_of("A")}, ["qmsum"])
    lay("qmsum", corpus({"A": (2, 1, 1)}))
    layout.examples("samsum").parent.mkdir(parents=True)
    layout.examples("samsum").write_text("no example")
    partition_stage.run("main")
    assert set(read_json(layout.manifest("main", "domains", 1))) == {"A"}


def test_a_fraction_that_leaves_too_few_steps_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of 30 examples in batches of 4: 10 are 4 and 6, two steps, where all 30 would be seven."""
    monkeypatch.chdir(tmp_path)
    plan({"domains": domains_of("A", train_fraction=0.334)}, ["qmsum"], {"domains": (4, 1)})
    lay("qmsum", {i: replace(e, corpus="qmsum") for i, e in corpus({"A": (30, 2, 2)}).items()})
    told = "settings.domains: client A has 10 training examples, so 2 steps a round, not 5; raise train_fraction"
    with pytest.raises(QuorumError, match=told):
        partition_stage.run("main")


def test_a_clients_own_share_that_leaves_too_few_steps_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of B's 40 examples is one batch of 4."""
    monkeypatch.chdir(tmp_path)
    own = Share(train_fraction=0.1)
    plan({"domains": domains_of("A", "B", only={"B": own})}, ["qmsum"], {"domains": (4, 1)})
    lay("qmsum", {i: replace(e, corpus="qmsum") for i, e in corpus({"A": (40, 2, 2), "B": (40, 2, 2)}).items()})
    with pytest.raises(QuorumError, match="client B has 4 training examples, so 1 steps a round, not 5"):
        partition_stage.run("main")


def test_a_client_that_is_too_small_by_itself_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three meetings of one's own are too few for five steps, and are trained on all the same."""
    monkeypatch.chdir(tmp_path)
    plan({"domains": domains_of("A")}, ["qmsum"], {"domains": (16, 1)})
    lay("qmsum", {i: replace(e, corpus="qmsum") for i, e in corpus({"A": (3, 1, 1)}).items()})
    partition_stage.run("main")
    assert "client A has 3 training examples, so 1 steps a round, where 5 are wanted" in capsys.readouterr().err


def test_a_split_without_test_meetings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plan({"domains": domains_of("A")}, ["qmsum"])
    lay("qmsum", {i: replace(e, corpus="qmsum") for i, e in corpus({"A": (3, 1, 0)}).items()})
    with pytest.raises(QuorumError, match="client A has no test examples"):
        partition_stage.run("main")


@given(st.integers(1, 3), st.integers(4, 6))
def test_another_seed_draws_other_examples(one: int, other: int) -> None:
    """Ten of forty: the same ten at two of these seeds would be a coincidence of one in 847 million."""
    examples = corpus({"A": (40, 2, 2)})
    drawn = [
        domains.partition(domains_of("A", train_fraction=0.25), examples, seed)["A"]["train"] for seed in (one, other)
    ]
    assert drawn[0] != drawn[1]
    assert [len(own) for own in drawn] == [10, 10]


def plan(settings: dict[str, Setting], corpora: list[str], batches: dict[str, tuple[int, int]] | None = None) -> None:
    order = PartitionOrder(code={}, corpora=corpora, settings=settings, seeds=[1], folds={}, batches=batches or {})
    write_json(layout.order("partition", "main"), order.model_dump(mode="json"))


def lay(name: str, examples: Mapping[str, Example], source: str = "mirror") -> None:
    """A corpus as it was prepared."""
    write_jsonl(layout.examples(name), [example.to_json() for example in examples.values()])
    write_json(layout.notes(name), {"source": {"source": source}})
