"""Tasks: what they read, store, predict and choose, and their scores, with numbers worked by hand."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pipeline.corpora.conversation import Conversation
from pipeline.corpora.documents import Document
from pipeline.corpora.labelled import Labelled, Question, Tagged, Titled
from pipeline.errors import QuorumError
from pipeline.model.backbone import Limits, Prefix, targets_of
from pipeline.model.encoder import Encoder
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.tiny import tiny_encoder, tiny_wordpieces
from pipeline.tasks.answer import Answer, best_span
from pipeline.tasks.classify import Classify
from pipeline.tasks.encoded import EncoderTask, to_store
from pipeline.tasks.extract import TASK, select
from pipeline.tasks.extractor import initial_extractor, sinusoid, unit_logits, unit_states
from pipeline.tasks.rouge import rouge_of
from pipeline.tasks.similarity import similarities
from pipeline.tasks.summarize import repetition
from pipeline.tasks.tag import Tag, span_counts
from pipeline.tasks.task import LOSS, Prediction, load_task
from pipeline.tasks.title import Title, coco

CUTS = ("none", "e,0", "e,0-2")


def encoder(cut: str = "e,0") -> Encoder:
    return Encoder("tiny-bert", tiny_encoder("bert"), tiny_wordpieces(), FrozenPart.parse(cut), pool="mean")


MADE = encoder()


def labelled(label: str, text: str = "abc") -> Labelled:
    return Labelled(f"{label}/{text}", "train", "", "g", text, label)


def tagged(words: str, tags: str) -> Tagged:
    return Tagged(words, "train", "", "g", tuple(words.split()), tuple(tags.split()))


def asked(context: str, answer: str, question: str = "who?") -> Question:
    return Question(context, "test", "article", "g", question, context, ((answer, context.index(answer)),))


EXAMPLES: dict[str, tuple[EncoderTask, list[Any]]] = {
    "classify": (Classify(), [labelled("b", "ab cd e"), labelled("a", "f"), labelled("c", "gh ij kl mn")]),
    "tag": (Tag(), [tagged("in new york", "O B-LOC I-LOC"), tagged("ann", "B-PER")]),
    "answer": (Answer(), [asked("it was ann", "ann"), asked("at six they met at the bridge", "six")]),
}
SPANS = [
    ("B-PER I-PER O B-LOC", "B-PER I-PER O I-LOC", (2, 2, 2)),  # I-LOC after O begins a chunk: F1 100
    ("B-PER I-PER O B-LOC", "B-PER O O B-LOC", (1, 2, 2)),  # 50
    ("B-ORG I-ORG I-ORG", "B-ORG I-PER I-ORG", (0, 3, 1)),  # one chunk of gold, three of the prediction: 0
    ("O O", "O O", (0, 0, 0)),
]
COMPARED = [
    ("in 1887 in Paris", "Paris", 40.0, 0),  # precision 1/4, recall 1
    ("Tower", "Eiffel Tower", 66.7, 0),
    ("the", "The", 0.0, 100),  # an article alone is nothing left, as in SQuAD's script
    ("  The  Beyoncé-effect, an A. ", "beyoncéeffect", 100.0, 100),
]


def prefixes_of(task: EncoderTask, made: Encoder, texts: Sequence[Any], tokens: int = 40) -> list[Prefix]:
    rendered = [task.render(made, text, task.classes(texts), Limits(tokens, 1))[0] for text in texts]
    return [to_store(made, task, prefix) for prefix in made.encode(rendered)]


def adapter_of(task: EncoderTask, made: Encoder, texts: Sequence[Any]) -> dict[str, Tensor]:
    return made.initial("layers", 0, 1) | task.initial(made, task.classes(texts), 1)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("cut", CUTS)
def test_a_batch_gives_what_each_text_gives_alone(name: str, cut: str) -> None:
    """Padding changes nothing, and neither does where the encoder is cut."""
    (task, texts), made, whole = EXAMPLES[name], encoder(cut), encoder("none")
    adapter = adapter_of(task, made, texts)
    together = task.outputs(made, prefixes_of(task, made, texts), adapter).softmax(-1)
    everything = whole.initial("layers", 0, 1) | adapter
    alone = [task.outputs(whole, [one], everything).softmax(-1) for one in prefixes_of(task, whole, texts)]
    padded = [torch.nn.functional.pad(one, (0, together.shape[1] - one.shape[1])) for one in alone]
    torch.testing.assert_close(together, torch.cat(padded), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "counts"), [("classify", [1, 1, 1]), ("tag", [3, 1]), ("answer", [2, 2])])
def test_every_text_has_its_items(name: str, counts: list[int]) -> None:
    """One for a classified text, one a word, two for an answer; a target is one of the classes."""
    task, texts = EXAMPLES[name]
    prefixes = prefixes_of(task, MADE, texts)
    logits = task.outputs(MADE, prefixes, adapter_of(task, MADE, texts))
    assert [len(prefix["targets"]) for prefix in prefixes] == [task.items(prefix) for prefix in prefixes] == counts
    assert len(logits) == sum(counts)
    assert int(targets_of(prefixes).max()) < logits.shape[1]


@given(text=st.text("ab \n\t\x0b\x1c\x85\u00a0\u200b.é", max_size=60), tokens=st.integers(3, 12))
def test_a_text_is_cut_as_if_it_had_been_read_to_its_end(text: str, tokens: int) -> None:
    """Signs that no tokenizer splits at, or that it takes away, are among them."""
    (found,) = Classify().render(MADE, labelled("a", text), ("a",), Limits(tokens, 1))
    assert list(found.source) == MADE.tokenizer(text, truncation=True, max_length=tokens)["input_ids"]


def test_the_largest_logit_names_the_class() -> None:
    assert Classify().decide(MADE, labelled("a"), [], [torch.tensor([[0.1, 2.0, -1.0]])], ("a", "b", "c")) == "b"
    rows = Classify().score([labelled("a")] * 2, [Prediction("a"), Prediction("b")], use_stemmer=False)
    assert rows == [{"accuracy": 100.0}, {"accuracy": 0.0}]


@pytest.mark.parametrize(("gold", "predicted", "counts"), SPANS)
def test_spans_count_where_type_and_both_ends_agree(gold: str, predicted: str, counts: tuple[int, int, int]) -> None:
    assert span_counts(gold.split(), predicted.split()) == counts


def test_words_past_the_cut_are_outside() -> None:
    """Of `in new york` the first seven tokens are [CLS] i n n e w [SEP]: `york` is cut off."""
    task, text = Tag(), tagged("in new york", "O B-LOC I-LOC")
    classes = task.classes([text])
    (window,) = task.render(MADE, text, classes, Limits(7, 1))
    assert (window.words, window.places, window.target) == ((0, 1), (1, 3), (0, classes.index("B-LOC")))
    logits = torch.eye(3)[[1, 1]]
    assert task.decide(MADE, text, [window], [logits], classes) == "B-LOC B-LOC O"


@pytest.mark.parametrize("cut", CUTS)
def test_a_sentence_without_a_piece_is_all_outside(cut: str) -> None:
    """A word of a sign that the tokenizer drops."""
    task, texts, made = Tag(), [tagged("\ufe0f", "O"), tagged("ann", "B-PER")], encoder(cut)
    prefixes = prefixes_of(task, made, texts)
    logits = task.outputs(made, prefixes, adapter_of(task, made, texts))
    assert [task.items(prefix) for prefix in prefixes] == [0, 1]
    windows = task.render(made, texts[0], task.classes(texts), Limits(9, 1))
    assert task.decide(made, texts[0], windows, [logits[:0]], task.classes(texts)) == "O"


def test_classes_are_outside_and_both_tags_of_every_type() -> None:
    assert Tag().classes([tagged("a b", "B-PER O"), tagged("c", "B-LOC")]) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


@pytest.mark.parametrize(("prediction", "answer", "f1", "exact"), COMPARED)
def test_answers_are_compared_by_their_words(prediction: str, answer: str, f1: float, exact: float) -> None:
    """The best of the right answers counts; the first one here is never predicted."""
    text = Question("i", "test", "", "g", "q", answer, (("xyz", 0), (answer, 0)))
    (row,) = Answer().score([text], [Prediction(prediction)], use_stemmer=False)
    assert row == {"f1": pytest.approx(f1, abs=0.05), "exact": exact}


def test_a_span_begins_before_it_ends_and_is_at_most_thirty_long() -> None:
    start, end = torch.zeros(40), torch.zeros(40)
    start[5], end[2], end[39] = 9.0, 8.0, 8.0
    assert best_span(start, end) == (9.0, 5, 5)
    end[34] = 1.0
    assert best_span(start, end) == (10.0, 5, 34)


def letters(tokens: Sequence[int]) -> str:
    return "".join(tiny_wordpieces().convert_ids_to_tokens(tokens)).replace("#", "")


def test_windows_overlap_by_half_and_the_most_central_one_comes_first() -> None:
    """Room for 6 letters beside [CLS] w [SEP] … [SEP]: windows at 0, 3, 6, 9 of 12 letters. `g` is in three of them.

    Two from the begin of the last, last of the first: nearest to the middle of the second.
    """
    windows = Answer().render(MADE, asked("abcdefghijkl", "g", question="w"), (), Limits(10, 1))
    assert [letters(window.source[3:-1]) for window in windows] == ["defghi", "abcdef", "ghijkl"]
    assert [bool(window.target) for window in windows] == [True, False, True]
    assert windows[0].target == (6, 6)


def test_the_answer_is_the_best_span_of_all_windows() -> None:
    """The second window's first two letters have 5 + 5, a letter of the first has 4 + 4."""
    text, task = asked("abcdefgh", "ab", question="w"), Answer()
    windows = task.render(MADE, text, (), Limits(8, 1))
    logits = [torch.zeros(2, len(window.source)) for window in windows]
    logits[0][:, windows[0].places[1]] = 4.0
    begin = windows[1].places[0]
    logits[1][0, begin] = logits[1][1, begin + 1] = 5.0
    assert task.decide(MADE, text, windows, logits, ()) == letters(windows[1].source[begin : begin + 2])


def test_a_token_outside_of_the_context_is_never_an_answer() -> None:
    task, texts = EXAMPLES["answer"]
    (read, *_), prefixes = task.render(MADE, texts[0], (), Limits(40, 1)), prefixes_of(task, MADE, texts[:1])
    probabilities = task.outputs(MADE, prefixes, adapter_of(task, MADE, texts[:1])).softmax(-1)
    assert not probabilities[:, sorted(set(range(len(read.source))) - set(read.places))].any()


WIDTH = 16
ROUGE = [
    # R-1 has P = 1, R = 2/3, F1 = 0.8; R-2 P = 1, R = 1/2, F1 = 2/3; the mean of 80, 200/3 and 80 is 680/9.
    ("the cat sat", "the cat", False, {"rouge1": 80, "rouge2": 200 / 3, "rougeL": 80, "average": 680 / 9}),
    # Lines in another order: one common subsequence over the complete text, both lines for the union of lines.
    ("a b\nc d", "c d\na b", False, {"rougeL": 50, "rougeLsum": 100}),
    ("meetings", "meeting", False, {"rouge1": 0}),
    ("meetings", "meeting", True, {"rouge1": 100}),
    ("a b", "", False, {"rouge1": 0}),
]
SCRIPTS = [
    # By `latin` both are die pr fung f r gr e. One of four words and of seven: P = 1/7, R = 1/4, F1 = 2/11.
    ("Die Prüfung für Größe", "Die Pr fung f r Gr e", 100, 200 / 11),
    ("STRASSE", "Straße", 0, 100),
    ("हिन्दी में सारांश", "हिन्दी", 0, 50),  # vowels are marks, and end no word: P = 1, R = 1/3
    ("天气很好。", "天气", 0, 200 / 3),
    ("コント", "ｺﾝ", 0, 80),  # P = 1, R = 2/3
    ("the board can't meet", "the board can not meet", 80, 200 / 3),
]


def document(*units: str, references: tuple[str, ...] = (), length: float = 1) -> Document:
    return Document("d", "test", "", "d", units, (1,) + (0,) * (len(units) - 1), references, length)


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
    adapter, documents = initial_extractor(WIDTH, 1), [torch.randn(units, WIDTH) for units in (3, 1, 5)]
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
    made, one = encoder("e,0-2"), document("ab cd", "ef", "gh ij kl")
    sizes = [len(made.tokenizer(unit)["input_ids"]) for unit in one.units]
    (window,) = TASK.render(made, one, ("out", "in"), Limits(sizes[0] + sizes[1], 1))
    assert (window.target, window.places) == ((1, 0), (0, sizes[0]))
    (prefix,) = [TASK.head_input(made, prefix) for prefix in made.encode([window])]
    (alone,) = made.encode(TASK.render(made, document("ef"), ("out", "in"), Limits(64, 1)))
    torch.testing.assert_close(prefix["hidden"][1], alone["hidden"].mean(0), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("scores", "count", "chosen"),
    [([0.9, 0.8, 0.7], 2, [0, 2]), ([0.1, 0.8, 0.8], 1, [1]), ([0.1, 0.2, 0.3], 3, [1, 2])],
    ids=["blocked", "the first of ties", "in the document's order"],
)
def test_units_that_share_three_words_are_passed_over(scores: list[float], count: int, chosen: list[int]) -> None:
    assert select(["a b c d", "x b c d", "b c"], scores, count) == chosen


def test_a_prediction_is_scored_against_its_nearest_reference() -> None:
    """Two of two words right and all of them found; against the first reference none."""
    texts = [document("a cat", references=("x y", "a cat"))], [Prediction("a cat")]
    (row,) = TASK.score(*texts, use_stemmer=False, rouge_tokens="latin")
    assert (row["rouge1"], row["rouge1_recall"], row["rougeLsum"], row["words"]) == (100.0, 100.0, 100.0, 2)


def test_places_of_chosen_units_are_counted_the_tenth_and_later_ones_together() -> None:
    long = document(*(f"unit {number}" for number in range(15)))
    twice = document("so", "so", "no")
    predicted = [(long, "unit 0\nunit 12"), (twice, "so\nso"), (long, "unit 10")]
    assert TASK.places(predicted) == [2, 1] + [0] * 8 + [2]


@pytest.mark.parametrize(("reference", "prediction", "stemmer", "scores"), ROUGE)
def test_rouge_by_hand(reference: str, prediction: str, stemmer: bool, scores: dict[str, float]) -> None:
    (row,) = rouge_of([reference], [prediction], use_stemmer=stemmer)
    assert {name: row[name] for name in scores} == pytest.approx(scores)


@pytest.mark.parametrize(("reference", "prediction", "latin", "unicode"), SCRIPTS)
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
    assert (rows[1]["average"], rows[1]["length"], rows[1]["repetition"]) == (0, 0, 0)
    assert [(row["reference_length"], row["at_limit"]) for row in rows] == [(3, 0), (2, 100)]


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
