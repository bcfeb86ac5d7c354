"""ROUGE, similarity and the looks of a summary, with numbers worked by hand."""

import pytest

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.labelled import Titled
from pipeline.errors import QuorumError
from pipeline.tasks.rouge import rouge_of
from pipeline.tasks.summarize import repetition
from pipeline.tasks.task import LOSS, Prediction, load_task
from pipeline.tasks.title import Title, coco


@pytest.mark.parametrize(
    ("reference", "prediction", "stemmer", "scores"),
    [
        # R-1 has P = 1, R = 2/3, F1 = 0.8; R-2 P = 1, R = 1/2, F1 = 2/3; the mean of 80, 200/3 and 80 is 680/9.
        ("the cat sat", "the cat", False, {"rouge1": 80, "rouge2": 200 / 3, "rougeL": 80, "average": 680 / 9}),
        # Lines in another order: one common subsequence over the complete text, both lines for the union of lines.
        ("a b\nc d", "c d\na b", False, {"rougeL": 50, "rougeLsum": 100}),
        ("meetings", "meeting", False, {"rouge1": 0}),
        ("meetings", "meeting", True, {"rouge1": 100}),
        ("a b", "", False, {"rouge1": 0}),
    ],
)
def test_rouge_by_hand(reference: str, prediction: str, stemmer: bool, scores: dict[str, float]) -> None:
    (row,) = rouge_of([reference], [prediction], use_stemmer=stemmer)
    assert {name: row[name] for name in scores} == pytest.approx(scores)


@pytest.mark.parametrize(
    ("reference", "prediction", "latin", "unicode"),
    [
        # By `latin` both are die pr fung f r gr e. One of four words and of seven: P = 1/7, R = 1/4, F1 = 2/11.
        ("Die Prüfung für Größe", "Die Pr fung f r Gr e", 100, 200 / 11),
        ("STRASSE", "Straße", 0, 100),
        ("हिन्दी में सारांश", "हिन्दी", 0, 50),  # vowels are marks, and end no word: P = 1, R = 1/3
        ("天气很好。", "天气", 0, 200 / 3),
        ("コント", "ｺﾝ", 0, 80),  # P = 1, R = 2/3
        ("the board can't meet", "the board can not meet", 80, 200 / 3),
    ],
)
def test_unicode_words_are_those_of_any_script(reference: str, prediction: str, latin: float, unicode: float) -> None:
    """In the last, `latin` has `can` and `t`: 4 of 5 and of 5 words. By Unicode `can't` is one: 3 of 4 and of 5."""
    for tokens, expected in (("latin", latin), ("unicode", unicode)):
        (row,) = rouge_of([reference], [prediction], use_stemmer=False, tokens=tokens)
        assert row["rouge1"] == pytest.approx(expected)


def test_a_rouge_that_rouge_score_does_not_give_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.tasks.rouge.TOLERANCE", -1.0)
    with pytest.raises(QuorumError, match=r"rouge1 of pair 1 is .* by rouge-score-rs and .* by rouge_score"):
        rouge_of(["the cat sat"], ["the cat"], use_stemmer=False)


def test_repetition_counts_four_grams_seen_before() -> None:
    """`a b c d a b c d` has five 4-grams, abcd twice: 1/5."""
    assert repetition("a b c d a b c d") == pytest.approx(20.0)
    assert repetition("a b c") == 0


def test_similarity_of_equal_texts_is_one() -> None:
    from pipeline.tasks.similarity import similarities

    same, other = similarities(["The board met.", "The board met."], ["The board met.", "Bananas are yellow."])
    assert same == pytest.approx(1.0, abs=1e-5)
    assert other < 0.5


def test_every_metric_of_the_task_is_scored() -> None:
    """Two words of three, and an empty summary that was cut; the loss is of the reference, so no scorer gives it."""
    task = load_task("pipeline.tasks.summarize")
    examples = [Conversation("i", "q", "d", "test", "m", "q?", (), target) for target in ("the cat sat", "a b")]
    made = [Prediction("the cat"), Prediction("", ended=False)]
    rows = task.score(examples, made, use_stemmer=False, rouge_tokens="latin")
    names = [metric.name for metric in task.metrics]
    assert [set(row) for row in rows] == [{*names, "reference_length"}] * 2
    assert LOSS.name not in names
    assert (rows[0]["average"], rows[0]["length"]) == (pytest.approx((80 + 200 / 3 + 80) / 3), 2)
    assert [row["reference_length"] for row in rows] == [3, 2]
    assert (rows[1]["average"], rows[1]["length"], rows[1]["repetition"]) == (0, 0, 0)
    assert [row["at_limit"] for row in rows] == [0, 100]


def test_a_summary_without_spaces_has_the_length_of_its_characters() -> None:
    """天天开会天天开会 has five 4-grams of characters, one of them twice."""
    made, example = [Prediction("天天开会天天开会")], Conversation("i", "q", "d", "test", "m", "q?", (), "天天开会。")
    (row,) = load_task("pipeline.tasks.summarize").score([example], made, use_stemmer=False, rouge_tokens="unicode")
    assert [row[name] for name in ("length", "reference_length", "repetition")] == pytest.approx([8, 4, 20.0])


def test_titles_are_compared_word_by_word() -> None:
    """Three words of four, two of them in a row: R-1 has P 1, R 3/4; R-2 P 1/2, R 1/3; R-L P 2/3, R 1/2."""
    title = Titled("t", "test", "o", "g", "Body.", "meeting moved to friday", ("friday meeting moved",))
    (row,) = Title().score([title], [Prediction("friday meeting moved")], use_stemmer=False, rouge_tokens="latin")
    found = [round(row[name] / 100, 3) for name in ("rouge1", "rouge2", "rougeL", "coco")]
    assert found == [0.857, 0.4, 0.571, 0.557]
    assert (row["best"], row["length"], row["words"]) == (100.0, 300.0, 4)


@pytest.mark.parametrize(
    ("reference", "prediction", "score"), [("a b", "c", 0.0), ("", "", 1.0), ("a  b", "a b", 0.772)]
)
def test_cocol_splits_at_every_space(reference: str, prediction: str, score: float) -> None:
    """`a  b` has an empty word between its spaces: P 1, R 2/3, so (1 + 1.44) · 2/3 / (2/3 + 1.44) = 0.772."""
    assert coco(reference, prediction) == pytest.approx(score, abs=5e-4)
