"""Encoding a group's examples: which prefixes are computed, and the index of each run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import make_backbone, make_example
from made_results import run_of

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import SPLITS
from pipeline.errors import QuorumError
from pipeline.model.backbone import Backbone
from pipeline.model.store import PrefixStore
from pipeline.plan.orders import EncodeOrder
from pipeline.runs.encoding import encode
from pipeline.runs.identity import identity_of
from pipeline.runs.index import read_encoded
from pipeline.workspace import layout
from pipeline.workspace.files import read_json, write_json

EXAMPLES: dict[str, Conversation] = {}
for number, split in enumerate(SPLITS):
    one = make_example(number, split=split)
    EXAMPLES[one.id] = one


@pytest.fixture
def backbone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Backbone:
    """In a workspace in which three examples are dealt out to one client."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    splits = {split: [i for i, example in EXAMPLES.items() if example.split == split] for split in SPLITS}
    for group in ("main", "more"):
        write_json(layout.manifest_file(group, "base-1"), {"Academic": splits})
    return make_backbone("llama")


def order(**changes: Any) -> EncodeOrder:
    """Two runs of one manifest."""
    known: dict[str, Any] = {
        "code": {},
        "task": "pipeline.tasks.summarize",
        "corpora": ["q"],
        "encoding": "e",
        "device": "cpu",
        "precision": "fp32",
        "threads": 1,
        "adapted_layers": 2,
        "manifests": {"more/a-1": "base-1", "more/b-1": "base-1"},
        "limits": {"base-1": (90, 48)},
        "uncached": [],
        "left_out": [],
    }
    return EncodeOrder(**(known | changes))


def computed(backbone: Backbone, digest: str = "d", **changes: Any) -> int:
    return encode(order(**changes), "more", backbone, digest, EXAMPLES)


def test_what_is_stored_is_not_computed_again(backbone: Backbone) -> None:
    """Two runs share a train, a val and a test example: the prefixes of the first two are computed, once."""
    assert [computed(backbone), computed(backbone)] == [2, 0]


@pytest.mark.parametrize(
    "changes",
    [{"encoding": "f"}, {"digest": "e"}, {"limits": {"base-1": (60, 48)}}, {"limits": {"base-1": (90, 5)}}],
    ids=["code", "weights", "source", "target"],
)
def test_a_changed_cause_of_prefixes_computes_them_again(backbone: Backbone, changes: dict[str, Any]) -> None:
    """The causes are the code, the weights and the limits; earlier prefixes stay in the store."""
    computed(backbone)
    assert computed(backbone, **changes) == 2
    assert computed(backbone) == 0


def test_an_index_names_what_is_stored(backbone: Backbone) -> None:
    computed(backbone)
    clients = read_encoded("more/a-1").clients
    assert list(clients) == ["Academic"]
    store = PrefixStore(layout.store())
    entries = {split: clients["Academic"][split][0] for split in SPLITS}
    stored = {split: store.has(entry.key) for split, entry in entries.items()}
    assert stored == {"train": True, "val": True, "test": False}, "tests are read where they are summarized"
    assert entries["train"].id == next(iter(EXAMPLES))
    assert entries["train"].source == (), "the store has the tokens"


def test_a_run_without_the_store_has_its_token_ids(backbone: Backbone) -> None:
    computed(backbone, uncached=["more/b-1"])
    a, b = (read_encoded(f"more/{run}-1").clients["Academic"]["train"][0] for run in "ab")
    assert (a.source, a.target) == ((), ())
    assert (len(b.source), len(b.target)) == (b.source_tokens, b.tokens) == (a.source_tokens, a.tokens)


def test_a_run_that_is_left_out_has_no_clients(backbone: Backbone) -> None:
    computed(backbone, left_out=["more/b-1"])
    assert [list(read_encoded(f"more/{run}-1").clients) for run in "ab"] == [["Academic"], []]


def test_a_setting_that_is_too_long_is_left_out_with_its_runs(
    backbone: Backbone, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tiny backbone reads fewer than a million tokens; in the main table that is a mistake."""
    too_long = {"base-1": (10**6, 48)}
    assert computed(backbone, limits=too_long) == 0
    assert "encode base-1: left out, with all its runs" in capsys.readouterr().err
    assert read_encoded("more/a-1").clients == {}
    with pytest.raises(QuorumError, match="1000000"):
        encode(order(manifests={"main/a-1": "base-1"}, limits=too_long), "main", backbone, "d", EXAMPLES)


def test_what_truncation_lost_is_noted(backbone: Backbone) -> None:
    """Of a source of at most 40 tokens the prompt stays whole."""
    computed(backbone, limits={"base-1": (40, 5)})
    (entry,) = read_json(layout.encoded_index("more/a-1"))["clients"]["Academic"]["train"]
    assert (entry["source_tokens"], entry["tokens"], entry["meeting"]) == (40, 5, "m0")
    assert entry["kept_tokens"] < entry["transcript_tokens"]


def test_a_corpus_that_the_order_does_not_name_is_no_part_of_what_a_run_is(backbone: Backbone) -> None:
    """The MLflow store knows a run by the sources of its group's corpora: another source of another corpus is none."""
    computed(backbone)
    write_json(layout.order("encode", "more"), order(corpora=["qmsum"]).model_dump(mode="json"))
    row = run_of("a")[0]
    found = []
    for source, other in (("mirror", "mirror"), ("mirror", "sample"), ("sample", "sample")):
        write_json(layout.notes("qmsum"), {"source": {"source": source}})
        write_json(layout.notes("samsum"), {"source": {"source": other}})
        found.append(identity_of(row))
    assert found[0] == found[1] != found[2]
