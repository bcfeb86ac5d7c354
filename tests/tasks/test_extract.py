"""Extracts: what is read of a document, the network above its units' vectors, and what is chosen."""

import pytest
import torch

from pipeline.corpora.documents import Document
from pipeline.model.backbone import Limits
from pipeline.model.encoder import Encoder
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.tiny import tiny_encoder, tiny_wordpieces
from pipeline.tasks.extract import TASK, select
from pipeline.tasks.extractor import initial_extractor, sinusoid, unit_logits, unit_states
from pipeline.tasks.task import Prediction

WIDTH = 16


def document(*units: str, references: tuple[str, ...] = (), length: float = 1) -> Document:
    return Document("d", "test", "", "d", units, (1,) + (0,) * (len(units) - 1), references, length)


def vectors(*counts: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(count, WIDTH, generator=generator) for count in counts]


def test_an_extractor_is_drawn_with_biases_0_and_norms_1() -> None:
    """Xavier's bound of a square matrix of 16 is √(6 / 32), also of the three that q, k and v share a tensor with."""
    adapter = initial_extractor(WIDTH, 1)
    joint = adapter["head.body.layers.0.self_attn.in_proj_weight"]
    assert joint.shape == (3 * WIDTH, WIDTH)
    assert 0.9 * (6 / 32) ** 0.5 < float(joint.abs().max()) <= (6 / 32) ** 0.5
    assert all(not tensor.any() for name, tensor in adapter.items() if name.endswith("bias"))
    assert torch.equal(adapter["head.body.norm.weight"], torch.ones(WIDTH))


def test_the_paper_sized_extractor_has_its_numbers() -> None:
    """Two layers of 384 with 1,024 inside and a norm, 2,762,240; a head of 384 and a bias."""
    assert sum(tensor.numel() for tensor in initial_extractor(384, 1).values()) == 2_762_240 + 385


def test_a_batch_gives_what_each_document_gives_alone() -> None:
    adapter, documents = initial_extractor(WIDTH, 1), vectors(3, 1, 5)
    together = unit_states(documents, adapter)
    alone = torch.cat([unit_states([one], adapter) for one in documents])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    assert unit_logits(together, adapter).shape == (9, 2)


def test_a_units_place_counts() -> None:
    """The same vector twice: without the sinusoid both states would be one."""
    first, second = unit_states([torch.ones(2, WIDTH)], initial_extractor(WIDTH, 1))
    assert not torch.allclose(first, second)
    torch.testing.assert_close(sinusoid(2, 4)[0], torch.tensor([0.0, 1.0, 0.0, 1.0]))


def test_the_first_units_that_fit_are_read_and_stored_as_their_mean_vectors() -> None:
    encoder = Encoder("tiny-bert", tiny_encoder("bert"), tiny_wordpieces(), FrozenPart.parse("e,0-2"), pool="mean")
    one = document("ab cd", "ef", "gh ij kl")
    sizes = [len(encoder.tokenizer(unit)["input_ids"]) for unit in one.units]
    (window,) = TASK.render(encoder, one, ("out", "in"), Limits(sizes[0] + sizes[1], 1))
    assert (window.target, window.places) == ((1, 0), (0, sizes[0]))
    (prefix,) = [TASK.head_input(encoder, prefix) for prefix in encoder.encode([window])]
    (alone,) = encoder.encode(TASK.render(encoder, document("ef"), ("out", "in"), Limits(64, 1)))
    torch.testing.assert_close(prefix["hidden"][1], alone["hidden"].mean(0), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("scores", "count", "chosen"),
    [([0.9, 0.8, 0.7], 2, [0, 2]), ([0.1, 0.8, 0.8], 1, [1]), ([0.1, 0.2, 0.3], 3, [1, 2])],
    ids=["blocked", "the first of ties", "in the document's order"],
)
def test_units_that_share_three_words_with_a_better_one_are_passed_over(
    scores: list[float], count: int, chosen: list[int]
) -> None:
    assert select(["a b c d", "x b c d", "b c"], scores, count) == chosen


def test_a_prediction_is_scored_against_its_nearest_reference() -> None:
    """Two of two words right and all of them found; against the first reference none."""
    (row,) = TASK.score(
        [document("a cat", references=("x y", "a cat"))], [Prediction("a cat")], use_stemmer=False, rouge_tokens="latin"
    )
    assert (row["rouge1"], row["rouge1_recall"], row["rougeLsum"], row["words"]) == (100.0, 100.0, 100.0, 2)


def test_places_of_chosen_units_are_counted_the_tenth_and_later_ones_together() -> None:
    long = document(*(f"unit {number}" for number in range(15)))
    twice = document("so", "so", "no")
    predicted = [(long, "unit 0\nunit 12"), (twice, "so\nso"), (long, "unit 10")]
    assert TASK.places(predicted) == [2, 1] + [0] * 8 + [2]
