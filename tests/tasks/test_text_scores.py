"""ROUGE, similarity and the looks of a summary, with numbers worked by hand."""

from __future__ import annotations

import pytest

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.labelled import Titled
from pipeline.errors import QuorumError
from pipeline.tasks.rouge import rouge_of
from pipeline.tasks.summarize import repetition
from pipeline.tasks.task import LOSS, Prediction, load_task
from pipeline.tasks.title import Title, coco


def test_rouge_by_hand() -> None:
    """Reference `the cat sat`, prediction `the cat`: R-1 has P = 1, R = 2/3, F1 = 0.8; R-2 P = 1, R = 1/2, F1 = 2/3."""
    row = rouge_of(["the cat sat"], ["the cat"], use_stemmer=False)[0]
    assert row["rouge1"] == pytest.approx(80.0)
    assert row["rouge2"] == pytest.approx(200 / 3)
    assert row["rougeL"] == pytest.approx(80.0)
    assert row["average"] == pytest.approx((80 + 200 / 3 + 80) / 3)


def test_a_rouge_that_rouge_score_does_not_give_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.tasks.rouge.TOLERANCE", -1.0)
    with pytest.raises(QuorumError, match=r"rouge1 of pair 1 is .* by rouge-score-rs and .* by rouge_score"):
        rouge_of(["the cat sat"], ["the cat"], use_stemmer=False)


def test_rouge_l_and_lsum_differ_by_lines() -> None:
    """Lines in another order: one common subsequence over the whole text, both lines for the union of lines."""
    row = rouge_of(["a b\nc d"], ["c d\na b"], use_stemmer=False)[0]
    assert row["rougeL"] == pytest.approx(50.0)
    assert row["rougeLsum"] == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("reference", "prediction", "stemmer", "score"),
    [("meetings", "meeting", False, 0), ("meetings", "meeting", True, 100), ("a b", "", False, 0)],
)
def test_stemming_is_a_choice_and_an_empty_prediction_scores_zero(
    reference: str, prediction: str, stemmer: bool, score: float
) -> None:
    assert rouge_of([reference], [prediction], use_stemmer=stemmer)[0]["rouge1"] == score


def test_repetition_counts_four_grams_seen_before() -> None:
    """`a b c d a b c d` has five 4-grams, abcd twice: 1/5."""
    assert repetition("a b c d a b c d") == pytest.approx(20.0)
    assert repetition("a b c") == 0


def test_similarity_of_equal_texts_is_one() -> None:
    from pipeline.tasks.similarity import similarities

    same, other = similarities(["The board met.", "The board met."], ["The board met.", "Bananas are yellow."])
    assert same == pytest.approx(1.0, abs=1e-5)
    assert other < 0.5


def about(target: str) -> Conversation:
    return Conversation("i", "q", "d", "test", "m", "q?", (), target)


def test_every_metric_of_the_task_is_scored() -> None:
    """Two words of three, and an empty summary that was cut; the loss is of the reference, so no scorer gives it."""
    task = load_task("pipeline.tasks.summarize")
    predictions = [Prediction("the cat"), Prediction("", ended=False)]
    rows = task.score([about("the cat sat"), about("a b")], predictions, use_stemmer=False)
    names = [metric.name for metric in task.metrics]
    assert [set(row) for row in rows] == [{*names, "reference_length"}] * 2
    assert LOSS.name not in names
    assert (rows[0]["average"], rows[0]["length"]) == (pytest.approx((80 + 200 / 3 + 80) / 3), 2)
    assert [row["reference_length"] for row in rows] == [3, 2]
    assert (rows[1]["average"], rows[1]["length"], rows[1]["repetition"]) == (0, 0, 0)
    assert [row["at_limit"] for row in rows] == [0, 100]


def test_a_metric_says_which_way_is_better() -> None:
    """Less loss, less repetition, more ROUGE; words are neither."""
    ways = {metric.name: metric.better for metric in (*load_task("pipeline.tasks.summarize").metrics, LOSS)}
    assert [ways[name] for name in ("loss", "repetition", "average", "length")] == ["less", "less", "more", None]
    assert LOSS.sign == -1


def test_titles_are_compared_word_by_word() -> None:
    """Three words of four, two of them in a row: R-1 has P 1, R 3/4; R-2 P 1/2, R 1/3; R-L P 2/3, R 1/2."""
    title = Titled("t", "test", "o", "g", "Body.", "meeting moved to friday", ("friday meeting moved",))
    (row,) = Title().score([title], [Prediction("friday meeting moved")], use_stemmer=False)
    found = [round(row[name] / 100, 3) for name in ("rouge1", "rouge2", "rougeL", "coco")]
    assert found == [0.857, 0.4, 0.571, 0.557]
    assert (row["best"], row["length"], row["words"]) == (100.0, 300.0, 4)


@pytest.mark.parametrize(
    ("reference", "prediction", "score"), [("a b", "c", 0.0), ("", "", 1.0), ("a  b", "a b", 0.772)]
)
def test_cocol_splits_at_every_space(reference: str, prediction: str, score: float) -> None:
    """`a  b` has an empty word between its spaces: P 1, R 2/3, so (1 + 1.44) · 2/3 / (2/3 + 1.44) = 0.772."""
    assert coco(reference, prediction) == pytest.approx(score, abs=5e-4)
