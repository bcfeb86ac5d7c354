"""Clients of a federation on labelled texts: who holds what, and partitions that come from a file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from pipeline.clients import exchange
from pipeline.clients.clusters import clusters, silos
from pipeline.clients.kinds import AnySetting, partition
from pipeline.clients.manifest import Manifest
from pipeline.clients.skews import SERVER, Given
from pipeline.corpora.example import SPLITS
from pipeline.corpora.labelled import Labelled
from pipeline.errors import QuorumError

OWNERS = {"ann": (6, 1, 1), "bob": (4, 1, 1), "cyd": (9, 0, 1)}


def texts(**owners: tuple[int, int, int]) -> dict[str, Labelled]:
    """So many training, validation and test texts of each owner, or of `OWNERS`; labels a and b in turns."""
    found = {}
    for owner, counts in (owners or OWNERS).items():
        for split, count in zip(SPLITS, counts, strict=True):
            for number in range(count):
                identity = f"{owner}/{split}/{number}"
                found[identity] = Labelled(identity, split, owner, identity, "t", "ab"[number % 2])
    return found


def drawn(kind: str, used: dict[str, Labelled] | None = None, groups: Any = None, **fields: Any) -> Manifest:
    """The partition of data set `d`, of `texts()` unless others are used, at seed 1."""
    setting = TypeAdapter(AnySetting).validate_python({"kind": kind, "data": "d"} | fields)
    return partition("s", setting, used or texts(), 1, groups=groups)


def from_file(file: Path, data: str = "d", used: dict[str, Labelled] | None = None) -> Manifest:
    """The partition of a file outside data/own."""
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
    ("owners", "fields", "message"),
    [
        (OWNERS, {"clients": 3, "least": 4}, "2 owners have 4 training texts and some of each split, and 3 are wanted"),
        *(({name: (4, 1, 1)}, {}, "is taken, or no name") for name in ("server", "pooled", "a/b", "a.best")),
    ],
)
def test_owners_that_cannot_be_clients_are_refused(owners: Any, fields: dict[str, int], message: str) -> None:
    with pytest.raises(QuorumError, match=message):
        drawn("natural", texts(**owners), **fields)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A partition that was written to a file."""
    manifest = drawn("skewed", clients=3, alpha=1.0)
    path = tmp_path / "niid_label_clients=3_alpha=1.0.json"
    exchange.write(path, path.stem, "d", {c: own["train"] for c, own in manifest.items() if c != SERVER}, texts())
    return path


def test_a_partition_of_other_data_is_refused(path: Path) -> None:
    """In a file with shuffled lines an id has another label."""
    changed = texts()
    changed["ann/train/0"] = replace(changed["ann/train/0"], label="another")
    with pytest.raises(QuorumError, match="was made of other training examples of d"):
        from_file(path, used=changed)
    with pytest.raises(QuorumError, match="is a partition of d, not of other"):
        from_file(path, "other")


def test_a_partition_in_fednlps_form_needs_no_hash(path: Path) -> None:
    ids = [i for i in texts() if "train" in i]
    data = {"0": {"train": ids[:5], "test": []}, "1": {"train": ids[5:], "test": []}}
    path.write_text(json.dumps({"uniform": {"n_clients": 2, "partition_data": data}}))
    assert list(from_file(path)) == ["0", "1", SERVER]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "holds 0 partitions"),
        ('{"p": {"partition_data": [1]}}', "has no list `train`"),
        ('{"p": {"partition_data": {"0": {}}}}', "0 has no list `train`"),
        ('{"p": {"n_clients": 3, "partition_data": {"0": {"train": []}}}}', "n_clients is 3, and it holds 1"),
        ('{"p": {"partition_data": {"0": {"train": ["zoe"]}}}}', "zoe is no training example"),
        ('{"p": {"partition_data": {"0": {"train": ["ann/train/0", "ann/train/0"]}}}}', "to two clients"),
    ],
)
def test_a_file_that_is_no_partition_is_one_line(content: str, message: str, path: Path) -> None:
    path.write_text(content)
    with pytest.raises(QuorumError, match=rf"\.json: .*{message}"):
        from_file(path)


def test_alpha_needs_labels_to_skew() -> None:
    alike = {identity: replace(text, label="x") for identity, text in texts().items()}
    with pytest.raises(QuorumError, match="alpha skews labels, and all texts have one; set by: cluster, or beta"):
        drawn("skewed", alike, clients=2, alpha=1.0)


def test_clusters_are_those_of_the_training_texts() -> None:
    """Two heaps on a line; what is judged on belongs to the nearer one."""
    near, far = np.array([[0.0, 0.1], [0.1, 0.0]] * 5), np.array([[5.0, 5.1], [5.1, 5.0]] * 5)
    train, others = clusters(np.concatenate([near, far]), np.array([[4.0, 4.0], [0.2, 0.2]]), 1, count=2)
    assert len(set(train[:10])) == len(set(train[10:])) == 1
    assert others == [train[10], train[0]]


@pytest.mark.parametrize(
    "make", [lambda v: clusters(v, v, 1, count=4), lambda v: silos(v, ["a", "b", "c"], v, ["a", "b", "c"], 1, 4)]
)
def test_too_few_for_so_many_clusters_are_one_line(make: Any) -> None:
    with pytest.raises(QuorumError, match=r"3 .* cannot make 4"):
        make(np.eye(3))


def test_owners_that_are_alike_share_a_silo() -> None:
    vectors = np.array([[0.0], [0.2], [9.0], [9.2], [0.1]])
    found = silos(vectors, ["a", "a", "b", "c", "d"], np.array([[8.0], [1.0]]), ["e", "f"], 1, 2)
    assert found["a"] == found["d"] == found["f"] != found["b"]
    assert found["b"] == found["c"] == found["e"], "whom the server judges on is of the nearest silo"
