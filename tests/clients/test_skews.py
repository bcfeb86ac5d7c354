"""Clients of a federation on labelled texts: who holds which of the texts that are used, by draw, owner or file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from pipeline.clients import dirichlet, exchange
from pipeline.clients.clusters import clusters, silos
from pipeline.clients.kinds import AnySetting, partition
from pipeline.clients.manifest import Manifest
from pipeline.clients.skews import SERVER, Given
from pipeline.clients.taking import Take, Takes, taken
from pipeline.corpora.example import SPLITS
from pipeline.corpora.labelled import Labelled
from pipeline.errors import QuorumError

OWNERS = {"ann": (6, 1, 1), "bob": (4, 1, 1), "cyd": (9, 0, 1)}
FEW = {"clients": 3, "least": 4}
NAMES = st.lists(st.sampled_from("abcd"), min_size=6, max_size=60)
ALPHAS, BETAS = st.sampled_from([None, 0.1, 1.0, 50.0]), st.sampled_from([None, 0.2, 5.0])
IMPOSSIBLE = [
    ("natural", OWNERS, FEW, "2 owners have 4 training texts and some of each split, and 3 are wanted"),
    *(("natural", {name: (4, 1, 1)}, {}, "is taken, or no name") for name in ("server", "pooled", "a/b", "a.best")),
    ("skewed", OWNERS, {"clients": 5, "least": 4}, "5 clients of at least 4 need 20 examples, and there are 19"),
    ("skewed", {"x": (1, 0, 0), "y": (1, 0, 0)}, {"clients": 2, "alpha": 1.0}, "alpha skews labels, and all .* one"),
]
NO_PARTITIONS = [
    ("[]", "holds 0 partitions"),
    ('{"p": {"partition_data": [1]}}', "has no list `train`"),
    ('{"p": {"partition_data": {"0": {}}}}', "0 has no list `train`"),
    ('{"p": {"n_clients": 3, "partition_data": {"0": {"train": []}}}}', "n_clients is 3, and it holds 1"),
    ('{"p": {"partition_data": {"0": {"train": ["zoe"]}}}}', "zoe is no training example"),
    ('{"p": {"partition_data": {"0": {"train": ["ann/train/0", "ann/train/0"]}}}}', "to two clients"),
]


def texts(**owners: tuple[int, int, int]) -> dict[str, Labelled]:
    """So many training, validation and test texts of each owner, or of `OWNERS`; labels a and b in turns."""
    kept = [(owner, *one) for owner, counts in (owners or OWNERS).items() for one in zip(SPLITS, counts, strict=True)]
    ids = ((f"{owner}/{split}/{n}", split, owner, n) for owner, split, count in kept for n in range(count))
    return {i: Labelled(i, split, owner, i, "t", "ab"[number % 2]) for i, split, owner, number in ids}


def drawn(kind: str, used: dict[str, Labelled] | None = None, groups: Any = None, **fields: Any) -> Manifest:
    """The partition of data set `d`, of `texts()` unless others are used, at seed 1."""
    setting = TypeAdapter(AnySetting).validate_python({"kind": kind, "data": "d"} | fields)
    return partition("s", setting, used or texts(), 1, groups=groups)


def from_file(file: Path, data: str = "d", used: dict[str, Labelled] | None = None) -> Manifest:
    return partition("s", Given.model_construct(kind="given", data=data, file=file), used or texts(), 9)


def test_the_server_holds_what_is_judged_on() -> None:
    manifest = drawn("skewed", clients=3, alpha=1.0)
    assert list(manifest) == ["client-0", "client-1", "client-2", SERVER]
    assert sorted(i for own in manifest.values() for i in own["train"]) == sorted(i for i in texts() if "train" in i)
    assert (len(manifest[SERVER]["val"]), len(manifest[SERVER]["test"])) == (2, 3)
    assert not any(own["val"] or own["test"] for client, own in manifest.items() if client != SERVER)


def test_a_skew_by_cluster_deals_out_clusters() -> None:
    """With α near 0 a client has one cluster, as far as clusters reach."""
    clusters_of = {i: "01"["cyd" in i] for i in texts() if "train" in i}
    manifest = drawn("skewed", groups=clusters_of, clients=2, by="cluster", alpha=1e-3)
    pure = [len({clusters_of[i] for i in manifest[client]["train"]}) for client in ("client-0", "client-1")]
    assert sorted(pure) == [1, 2] or pure == [1, 1]


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        ({"least": 4}, {"ann": [6, 1, 1], "bob": [4, 1, 1]}),  # cyd has no development text, so it is no client
        ({"clients": 2, "each": 3, "own": False}, {"ann": [3, 0, 0], "cyd": [3, 0, 0], SERVER: [0, 2, 3]}),
    ],
    ids=["all, tested on their own texts", "so many texts of each of the largest"],
)
def test_natural_clients_are_owners(fields: dict[str, int], sizes: dict[str, list[int]]) -> None:
    manifest = drawn("natural", **fields)
    assert {client: [len(own[split]) for split in SPLITS] for client, own in manifest.items()} == sizes


@pytest.mark.parametrize(
    ("kind", "owners", "fields", "message"),
    IMPOSSIBLE,
    ids=["too few owners", *("a name that is taken",) * 4, "too few texts", "one label"],
)
def test_clients_that_cannot_be_are_refused(kind: str, owners: Any, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        drawn(kind, texts(**owners), **fields)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    manifest = drawn("skewed", clients=3, alpha=1.0)
    path = tmp_path / "niid_label_clients=3_alpha=1.0.json"
    exchange.write(path, path.stem, "d", {c: own["train"] for c, own in manifest.items() if c != SERVER}, texts())
    return path


def test_a_partition_of_other_data_is_refused(path: Path) -> None:
    """In a file with shuffled lines an id has another label."""
    changed = {identity: replace(text, label="another") for identity, text in texts().items()}
    with pytest.raises(QuorumError, match="was made of other training examples of d"):
        from_file(path, used=changed)
    with pytest.raises(QuorumError, match="is a partition of d, not of other"):
        from_file(path, "other")


def test_a_partition_in_fednlps_form_needs_no_hash(path: Path) -> None:
    ids = [i for i in texts() if "train" in i]
    data = {"0": {"train": ids[:5], "test": []}, "1": {"train": ids[5:], "test": []}}
    path.write_text(json.dumps({"uniform": {"n_clients": 2, "partition_data": data}}))
    assert list(from_file(path)) == ["0", "1", SERVER]


@pytest.mark.parametrize(("content", "message"), NO_PARTITIONS)
def test_a_file_that_is_no_partition_is_one_line(content: str, message: str, path: Path) -> None:
    path.write_text(content)
    with pytest.raises(QuorumError, match=rf"\.json: .*{message}"):
        from_file(path)


def test_clusters_are_those_of_the_training_texts() -> None:
    """Two heaps on a line; what is judged on belongs to the nearer one."""
    near, far = np.array([[0.0, 0.1], [0.1, 0.0]] * 5), np.array([[5.0, 5.1], [5.1, 5.0]] * 5)
    train, others = clusters(np.concatenate([near, far]), np.array([[4.0, 4.0], [0.2, 0.2]]), 1, count=2)
    assert len(set(train[:10])) == len(set(train[10:])) == 1
    assert others == [train[10], train[0]]


def test_too_few_owners_for_so_many_silos_are_one_line() -> None:
    with pytest.raises(QuorumError, match=r"3 .* cannot make 4"):
        silos(np.eye(3), ["a", "b", "c"], np.eye(3), ["a", "b", "c"], 1, 4)


def test_owners_that_are_alike_share_a_silo() -> None:
    vectors = np.array([[0.0], [0.2], [9.0], [9.2], [0.1]])
    found = silos(vectors, ["a", "a", "b", "c", "d"], np.array([[8.0], [1.0]]), ["e", "f"], 1, 2)
    assert found["a"] == found["d"] == found["f"] != found["b"]
    assert found["b"] == found["c"] == found["e"], "whom the server judges on is of the nearest silo"


TEXTS = texts(x=(6, 2, 2), y=(4, 2, 2), z=(2, 2, 2))
REMAINDERS = [
    ((0.25,) * 4, 10, [3, 3, 2, 2]),  # ties go to the first
    # 1 + z · 7 = 4.5, 3.1, 2.4. Of 10, 9 are given; .5 is the largest remainder.
    ((0.5, 0.3, 0.2), 10, [5, 3, 2]),
    ((1 / 3, 1 / 3, 1 / 3), 7, [3, 2, 2]),
    ((1 / 7,) * 7, 49, [7] * 7),
]


def test_by_default_all_texts_are_used_and_none_of_a_split_that_is_not_taken() -> None:
    assert [*taken(TEXTS, Takes(), 1)] == [*TEXTS]
    assert [*taken(TEXTS, Takes(test=None), 1)] == [i for i in TEXTS if "test" not in i]


def test_training_texts_are_drawn_anew_for_each_seed_and_the_others_are_not() -> None:
    takes = Takes(train=Take(count=3), val=Take(count=2), test=Take(count=2))
    one, other = (taken(TEXTS, takes, seed) for seed in (1, 2))
    assert [i for i in one if "train" in i] != [i for i in other if "train" in i]
    assert [i for i in one if "train" not in i] == [i for i in other if "train" not in i]
    assert [sum(split in i for i in one) for split in SPLITS] == [3, 2, 2]


def test_as_many_of_each_label_or_of_each_of_the_largest_owners() -> None:
    chosen = taken(TEXTS, Takes(train=Take(each=2)), 1).values()
    assert [sum(t.split == "train" and t.label == label for t in chosen) for label in "ab"] == [2, 2]
    ids = taken(TEXTS, Takes(train=Take(each=3, by="owner", largest=2)), 1)
    assert [sum(f"{owner}/train" in i for i in ids) for owner in "xyz"] == [3, 3, 0]


def test_a_split_with_nothing_left_is_one_line() -> None:
    with pytest.raises(QuorumError, match="val: no text is left of 0"):
        taken(texts(x=(1, 0, 1)), Takes(), 1)


@pytest.mark.parametrize(("shares", "total", "sizes"), REMAINDERS)
def test_sizes_follow_the_draw_by_largest_remainders(shares: tuple[float, ...], total: int, sizes: list[int]) -> None:
    assert dirichlet.sizes_of(np.array(shares), total).tolist() == sizes


def test_a_client_that_finds_too_little_takes_of_what_is_left() -> None:
    """Labels a 4, b 4, c 2; sizes 5, 5; q = (1, 0, 0), (.6, .4, 0).

    The first wants 5 of a, finds 4, and fills 1 from b 4 : c 2. The second wants 3 of a and 2 of b, finds 2 of b, and
    fills 3 from b 1 : c 2.
    """
    dealt = dirichlet.deal(np.array([4, 4, 2]), np.array([5, 5]), np.array([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0]]))
    assert dealt.tolist() == [[4, 1, 0], [0, 3, 2]]


@given(NAMES, st.integers(1, 3), ALPHAS, BETAS, st.integers(1, 2))
def test_every_example_is_dealt_once(labels: list[str], clients: int, alpha: Any, beta: Any, least: int) -> None:
    ids = [f"e{i}" for i in range(len(labels))]
    dealt = dirichlet.partition(ids, labels, clients, seed=1, dataset="d", alpha=alpha, beta=beta, least=least)
    assert sorted(i for own in dealt for i in own) == sorted(ids)
    assert min(map(len, dealt)) >= least
    if beta is None:
        assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_the_same_names_give_the_same_partition() -> None:
    """Another seed, data set, number of clients or α draws anew."""

    def of(**other: Any) -> list[list[str]]:
        names: dict[str, Any] = {"clients": 4, "seed": 1, "dataset": "d", "alpha": 1.0}
        return dirichlet.partition([f"e{i}" for i in range(40)], ["a", "b"] * 20, **names | other)

    assert of() == of()
    assert all(of(**other) != of() for other in ({"seed": 2}, {"dataset": "x"}, {"clients": 5}, {"alpha": 2.0}))


@pytest.mark.parametrize(("beta", "expected"), [(1.0, 0.990), (5.0, 0.445), (10.0, 0.314), (100.0, 0.099)])
def test_sizes_spread_as_the_draw(beta: float, expected: float) -> None:
    """The coefficient of variation of Dir(β 1) over 100 clients: √(99 / (100 β + 1)); of sizes nearly that."""
    texts_of = {"ids": [*"x" * 10_000], "labels": [""] * 10_000, "clients": 100, "dataset": "d"}
    drawings = (dirichlet.partition(**texts_of, seed=seed, beta=beta) for seed in range(30))
    found = [np.std(sizes) / np.mean(sizes) for sizes in ([*map(len, dealt)] for dealt in drawings)]
    assert np.mean(found) == pytest.approx(expected * 0.99, rel=0.05)


@pytest.mark.parametrize(("alpha", "expected"), [(1.0, 0.525), (5.0, 0.208), (10.0, 0.136)])
def test_clients_hold_labels_as_unequally_as_alpha_says(alpha: float, expected: float) -> None:
    """Uniform p over 20 labels: E Σq² = Σp² + (1 − Σp²) / (α + 1). Of a tenth of the clients, who find all labels."""
    labels = [str(i % 20) for i in range(100_000)]
    found = []
    for seed in range(8):
        dealt = dirichlet.partition([str(i) for i in range(100_000)], labels, 200, seed=seed, dataset="d", alpha=alpha)
        for own in dealt[:20]:
            counts = np.bincount([int(i) % 20 for i in own], minlength=20)
            found.append(((counts / counts.sum()) ** 2).sum())
    assert np.mean(found) == pytest.approx(expected, rel=0.12)
