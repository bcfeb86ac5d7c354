"""Clients of a federation on labelled texts: who holds what, and partitions that come from a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from pipeline.clients import exchange
from pipeline.clients.clusters import clusters, silos
from pipeline.clients.skews import SERVER, Natural, Skew, Skewed, partition
from pipeline.corpora.texts import Labelled
from pipeline.errors import QuorumError

OWNERS = {"ann": (6, 1, 1), "bob": (4, 1, 1), "cyd": (9, 0, 1)}


def texts(**owners: tuple[int, int, int]) -> dict[str, Labelled]:
    found = {}
    for owner, counts in (owners or OWNERS).items():
        for split, count in zip(("train", "val", "test"), counts, strict=True):
            for number in range(count):
                identity = f"{owner}/{split}/{number}"
                found[identity] = Labelled(identity, split, owner, identity, "t", "ab"[number % 2])  # type: ignore[arg-type]
    return found


def skew(**fields: Any) -> Any:
    return TypeAdapter(Skew).validate_python(fields)


def test_the_server_holds_what_is_judged_on() -> None:
    manifest = partition(skew(kind="skewed", clients=3, alpha=1.0), texts(), 1, "d")
    assert list(manifest) == ["client-0", "client-1", "client-2", SERVER]
    assert sorted(i for own in manifest.values() for i in own["train"]) == sorted(i for i in texts() if "train" in i)
    assert (len(manifest[SERVER]["val"]), len(manifest[SERVER]["test"])) == (2, 3)
    assert not any(own["val"] or own["test"] for client, own in manifest.items() if client != SERVER)


def test_a_skew_by_cluster_deals_out_clusters() -> None:
    """With α near 0 a client has one cluster, as far as clusters reach."""
    held = {i: "01"["cyd" in i] for i in texts() if "train" in i}
    manifest = partition(Skewed(kind="skewed", clients=2, by="cluster", alpha=1e-3), texts(), 1, "d", held)
    pure = [len({held[i] for i in manifest[client]["train"]}) for client in ("client-0", "client-1")]
    assert sorted(pure) == [1, 2] or pure == [1, 1]


def test_natural_owners_are_judged_on_their_own_texts() -> None:
    """cyd has no development text, so it is no client."""
    manifest = partition(skew(kind="natural", least=4), texts(), 1, "d")
    assert {client: [len(own[s]) for s in ("train", "val", "test")] for client, own in manifest.items()} == {  # type: ignore[index]
        "ann": [6, 1, 1],
        "bob": [4, 1, 1],
    }


def test_the_largest_owners_are_taken_and_so_many_texts_of_each() -> None:
    manifest = partition(Natural(kind="natural", clients=2, each=3, own=False), texts(), 1, "d")
    assert {client: len(own["train"]) for client, own in manifest.items()} == {"ann": 3, "cyd": 3, SERVER: 0}


def test_more_owners_than_there_are_is_one_line() -> None:
    with pytest.raises(QuorumError, match="2 owners have 4 training texts and some of each split, and 3 are wanted"):
        partition(skew(kind="natural", clients=3, least=4), texts(), 1, "d")


@pytest.mark.parametrize("owner", ["server", "pooled", "a/b", "a.best"])
def test_an_owner_whose_name_is_no_files_is_refused(owner: str) -> None:
    with pytest.raises(QuorumError, match="is taken, or no name"):
        partition(skew(kind="natural"), texts(**{owner: (4, 1, 1)}), 1, "d")


def exported(folder: Path, clients: int = 3) -> Path:
    manifest = partition(skew(kind="skewed", clients=clients, alpha=1.0), texts(), 1, "d")
    held = {client: own["train"] for client, own in manifest.items() if client != SERVER}
    path = folder / "niid_label_clients=3_alpha=1.0.json"
    exchange.write(path, path.stem, "d", held, texts())
    return path


def test_an_exported_partition_comes_back(tmp_path: Path) -> None:
    path = exported(tmp_path)
    again = partition(skew(kind="given", file=path), texts(), 9, "d")
    assert again == partition(skew(kind="skewed", clients=3, alpha=1.0), texts(), 1, "d")
    assert json.loads(path.read_text())["niid_label_clients=3_alpha=1.0"]["n_clients"] == 3


def test_a_partition_in_fednlps_form_needs_no_hash(tmp_path: Path) -> None:
    ids = [i for i in texts() if "train" in i]
    data = {"0": {"train": ids[:5], "test": []}, "1": {"train": ids[5:], "test": []}}
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps({"uniform": {"n_clients": 2, "partition_data": data}}))
    assert list(partition(skew(kind="given", file=path), texts(), 1, "d")) == ["0", "1", SERVER]


@pytest.mark.parametrize(
    ("change", "dataset", "message"),
    [
        ({}, "other", "is a partition of d, not of other"),
        ({"train_texts": "x"}, "d", "was made of other training examples of d"),
        ({"niid_label_clients=3_alpha=1.0": 1}, "d", "holds 0 partitions"),
    ],
)
def test_a_partition_of_other_data_is_refused(
    change: dict[str, Any], dataset: str, message: str, tmp_path: Path
) -> None:
    path = exported(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(QuorumError, match=message):
        partition(skew(kind="given", file=path), texts(), 1, dataset)


def test_a_file_whose_lines_were_shuffled_is_of_other_texts(tmp_path: Path) -> None:
    """The same ids, one of which has another label now."""
    path = exported(tmp_path)
    shuffled = texts()
    first = next(identity for identity, text in shuffled.items() if text.split == "train")
    shuffled[first] = replace(shuffled[first], label="another")
    with pytest.raises(QuorumError, match="was made of other training examples of d"):
        partition(skew(kind="given", file=path), shuffled, 1, "d")


@pytest.mark.parametrize("content", ["[]", '{"p": {"partition_data": [1]}}', '{"p": {"partition_data": {"0": {}}}}'])
def test_a_file_that_is_no_partition_is_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(QuorumError, match=r"p\.json: (holds 0 partitions|.* has no list `train`)"):
        partition(skew(kind="given", file=tmp_path / "p.json"), texts(), 1, "d")


def test_a_file_with_fewer_clients_than_it_says_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"p": {"n_clients": 3, "partition_data": {"0": {"train": []}}}}')
    with pytest.raises(QuorumError, match=r"p\.json: n_clients is 3, and it holds 1; a part of it may be missing"):
        partition(skew(kind="given", file=tmp_path / "p.json"), texts(), 1, "d")


def test_alpha_needs_labels_to_skew() -> None:
    alike = {identity: replace(text, label="x") for identity, text in texts().items()}
    with pytest.raises(QuorumError, match="alpha skews labels, and all texts have one; set by: cluster, or beta"):
        partition(skew(kind="skewed", clients=2, alpha=1.0), alike, 1, "d")


@pytest.mark.parametrize(
    ("ids", "message"),
    [(["ann/train/0", "zoe/train/0"], "zoe/train/0 is no training example"), (["ann/train/0"] * 2, "to two clients")],
)
def test_a_partition_of_strange_examples_is_refused(ids: list[str], message: str, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    data = {str(number): {"train": [identity]} for number, identity in enumerate(ids)}
    path.write_text(json.dumps({"uniform": {"n_clients": 2, "partition_data": data}}))
    with pytest.raises(QuorumError, match=message):
        partition(skew(kind="given", file=path), texts(), 1, "d")


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
