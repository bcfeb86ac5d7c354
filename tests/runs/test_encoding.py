"""Encoding a setting's examples: what is computed and stored, and the index of each run."""

from types import SimpleNamespace
from typing import Any

import pytest
from conftest import make_backbone, make_example
from made_results import LEARNER

from pipeline.clients.manifest import Manifest
from pipeline.corpora.example import SPLITS
from pipeline.corpora.labelled import Labelled
from pipeline.errors import QuorumError
from pipeline.model.backbone import Rendered
from pipeline.model.encoder import Encoder
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.store import PrefixStore
from pipeline.model.tiny import tiny_encoder, tiny_wordpieces
from pipeline.plan.learner import Learner, View
from pipeline.plan.orders import EncodeOrder
from pipeline.runs import encoding
from pipeline.runs.encoding import Reading, encode
from pipeline.runs.index import Index, index_of
from pipeline.workspace import layout

EXAMPLES = {one.id: one for one in (make_example(number, split=split) for number, split in enumerate(SPLITS))}
TEXTS = {f"t{number}": Labelled(f"t{number}", split, "", "g", f"{number}", "x") for number, split in enumerate(SPLITS)}


def seen(learner: Learner, **changes: Any) -> Learner:
    """A learner with another view."""
    return learner.model_copy(update={"view": learner.view.model_copy(update=changes)})


WRITER = seen(LEARNER, source_tokens=90, target_tokens=48)


def classifier(frozen: str) -> Learner:
    view = View(backbone="tiny-bert", frozen=frozen, source_tokens=16, target_tokens=1)
    return WRITER.model_copy(update={"task": "pipeline.tasks.classify", "view": view, "above": "layers", "size": None})


@pytest.fixture(autouse=True)
def models(short: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Backbones that are not on disk, and the digests of their weights."""
    digests = {"tiny-llama": "d", "tiny-bert": "d"}

    def model_of(learner: Learner) -> Any:
        if learner.view.frozen is None:
            return make_backbone("llama", learner.view.adapted_layers or 0)
        part = FrozenPart.parse(learner.view.frozen)
        return Encoder("tiny-bert", tiny_encoder("bert"), tiny_wordpieces(), part, pool="mean")

    monkeypatch.setattr(encoding, "model_of", model_of)
    monkeypatch.setattr(encoding, "digest_of", digests.__getitem__)
    return digests


def encoded(learners: dict[str, Learner], code: str = "e", examples: Any = EXAMPLES) -> tuple[dict[str, Index], int]:
    """(Run -> its index, how many windows were computed); one client has all examples."""
    manifest: Manifest = {"A": {split: [i for i, e in examples.items() if e.split == split] for split in SPLITS}}
    known: dict[str, Any] = {"task": next(iter(learners.values())).task, "data": ["q"], "classes": [], "code": {}}
    known |= {"seeds": {run: [1] for run in learners}, "encoding": dict.fromkeys(learners, code)}
    order = EncodeOrder(readers={run: learner.reader for run, learner in learners.items()}, **known)
    contents, computed = encode("domains", order, examples, {1: manifest})
    return {run: index_of(content) for run, content in contents.items()}, computed


def computed(learner: Learner = WRITER, code: str = "e") -> int:
    return encoded({"a": learner}, code)[1]


def test_what_is_stored_is_computed_again_only_for_another_cause(models: dict[str, str]) -> None:
    """Two runs share a train, a val and a test example: the prefixes of the first two, once. Earlier ones stay."""
    assert [encoded({"a": WRITER, "b": WRITER})[1], computed()] == [2, 0]
    changes = {"source_tokens": 60}, {"target_tokens": 5}, {"adapted_layers": 1}
    assert [computed(seen(WRITER, **change)) for change in changes] == [2, 2, 2]
    assert computed(code="f") == 2
    models["tiny-llama"] = "other"
    assert computed() == 2
    models["tiny-llama"] = "d"
    assert computed() == 0


def test_a_prefix_in_another_precision_has_another_key() -> None:
    window = Rendered((1, 2), (3,), 0, 0)
    models: list[Any] = [SimpleNamespace(precision=precision, adapted_layers=[2]) for precision in ("fp32", "bf16")]
    task: Any = None
    assert len({Reading(model, task, WRITER.view, (), "d", "e").key(window) for model in models}) == 2


def test_an_index_names_what_is_stored() -> None:
    """The store has the tokens, but of a run without the store, for which it computes nothing."""
    indices, count = encoded({"a": WRITER, "b": WRITER.model_copy(update={"uncached": True})})
    stored = [PrefixStore(layout.store()).has(indices["a"].entries[i][0].key) for i in EXAMPLES]
    assert (stored, count) == ([True, True, False], 2), "tests are read where they are decoded"
    a, b = (indices[run].learned(list(EXAMPLES)[:1])[0] for run in "ab")
    assert (a.id, a.source, a.target) == (next(iter(EXAMPLES)), (), ())
    assert (len(b.source), len(b.target)) == (b.source_tokens, b.tokens) == (a.source_tokens, a.tokens)


def test_what_truncation_lost_is_noted_and_what_is_too_long_for_the_backbone_is_refused() -> None:
    """Of a source of at most 40 tokens the prompt stays whole."""
    index = encoded({"a": seen(WRITER, source_tokens=40, target_tokens=5)})[0]["a"]
    ((entry,), *_), ((tokens, read), *_) = index.entries.values(), index.read.values()
    assert (entry.source_tokens, entry.tokens) == (40, 5)
    assert read < tokens
    with pytest.raises(QuorumError, match=r"settings\.domains: .*1000000.*, or remove the setting and its runs"):
        computed(seen(WRITER, source_tokens=10**6))


def test_an_encoder_stores_tests_too_and_a_deeper_cut_has_entries_of_its_own() -> None:
    """Three texts under two cuts; a second call computes nothing. The classes are those of the training texts."""
    cuts = {"deep": classifier("e,0-2"), "low": classifier("e,0")}
    (indices, count), again = (encoded(cuts, examples=TEXTS) for _ in range(2))
    keys = {entry.key for index in indices.values() for windows in index.entries.values() for entry in windows}
    assert (count, again[1], len(keys), indices["low"].classes) == (6, 0, 6, ("x",))
