"""The three tasks on an encoder: what is read, stored and predicted, and how it is scored."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from pipeline.corpora.labelled import Labelled, Question, Tagged
from pipeline.model.backbone import Limits, Prefix, targets_of
from pipeline.model.encoder import Encoder
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.tiny import tiny_encoder, tiny_wordpieces
from pipeline.tasks.answer import Answer, best_span
from pipeline.tasks.classify import Classify
from pipeline.tasks.encoded import EncoderTask
from pipeline.tasks.tag import Tag, span_counts
from pipeline.tasks.task import Prediction

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


def prefixes_of(task: EncoderTask, made: Encoder, texts: Sequence[Any], tokens: int = 40) -> list[Prefix]:
    classes = task.classes(texts)
    found = list(made.encode([task.render(made, text, classes, Limits(tokens, 1))[0] for text in texts]))
    return found if made.trained or made.stores_tokens else [task.head_input(made, prefix) for prefix in found]


def adapter_of(task: EncoderTask, made: Encoder, texts: Sequence[Any]) -> dict[str, Tensor]:
    return made.initial("layers", 0, 1) | task.initial(made, task.classes(texts), 1)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("cut", CUTS)
def test_a_batch_gives_what_each_text_gives_alone(name: str, cut: str) -> None:
    """Padding changes nothing, and neither does where the encoder is cut."""
    task, texts = EXAMPLES[name]
    made = encoder(cut)
    adapter = adapter_of(task, made, texts)
    prefixes = prefixes_of(task, made, texts)
    together = task.outputs(made, prefixes, adapter).softmax(-1)
    whole = encoder("none")
    everything = whole.initial("layers", 0, 1) | adapter
    alone = [task.outputs(whole, [one], everything).softmax(-1) for one in prefixes_of(task, whole, texts)]
    longest = together.shape[1]
    padded = torch.cat([torch.nn.functional.pad(one, (0, longest - one.shape[1])) for one in alone])
    torch.testing.assert_close(together, padded, rtol=0, atol=1e-6)


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


# -- classify --


def test_the_largest_logit_names_the_class() -> None:
    assert Classify().decide(MADE, labelled("a"), [], [torch.tensor([[0.1, 2.0, -1.0]])], ("a", "b", "c")) == "b"
    rows = Classify().score([labelled("a")] * 2, [Prediction("a"), Prediction("b")], use_stemmer=False)
    assert rows == [{"accuracy": 100.0}, {"accuracy": 0.0}]


# -- tag --


@pytest.mark.parametrize(
    ("gold", "predicted", "counts"),
    [
        ("B-PER I-PER O B-LOC", "B-PER I-PER O I-LOC", (2, 2, 2)),  # I-LOC after O begins a chunk: F1 100
        ("B-PER I-PER O B-LOC", "B-PER O O B-LOC", (1, 2, 2)),  # 50
        ("B-ORG I-ORG I-ORG", "B-ORG I-PER I-ORG", (0, 3, 1)),  # one chunk of gold, three of the prediction: 0
        ("O O", "O O", (0, 0, 0)),
    ],
)
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
    task, text, made = Tag(), tagged("\ufe0f", "O"), encoder(cut)
    texts = [text, tagged("ann", "B-PER")]
    prefixes = prefixes_of(task, made, texts)
    logits = task.outputs(made, prefixes, adapter_of(task, made, texts))
    assert [task.items(prefix) for prefix in prefixes] == [0, 1]
    (window,) = task.render(made, text, task.classes(texts), Limits(9, 1))
    assert task.decide(made, text, [window], [logits[:0]], task.classes(texts)) == "O"


def test_classes_are_outside_and_both_tags_of_every_type() -> None:
    assert Tag().classes([tagged("a b", "B-PER O"), tagged("c", "B-LOC")]) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


# -- answer --


@pytest.mark.parametrize(
    ("prediction", "answer", "f1", "exact"),
    [
        ("in 1887 in Paris", "Paris", 40.0, 0),  # precision 1/4, recall 1
        ("Tower", "Eiffel Tower", 66.7, 0),
        ("the", "The", 0.0, 100),  # an article alone is nothing left, as in SQuAD's script
        ("  The  Beyoncé-effect, an A. ", "beyoncéeffect", 100.0, 100),
    ],
)
def test_answers_are_compared_by_their_words(prediction: str, answer: str, f1: float, exact: float) -> None:
    """The best of the right answers counts; the first one here is never predicted."""
    text = Question("i", "test", "", "g", "q", answer, (("xyz", 0), (answer, 0)))
    assert Answer().score([text], [Prediction(prediction)], use_stemmer=False) == [
        {"f1": pytest.approx(f1, abs=0.05), "exact": exact}
    ]


def test_a_span_begins_before_it_ends_and_is_at_most_thirty_long() -> None:
    start, end = torch.zeros(40), torch.zeros(40)
    start[5], end[2], end[39] = 9.0, 8.0, 8.0
    assert best_span(start, end) == (9.0, 5, 5)
    end[34] = 1.0
    assert best_span(start, end) == (10.0, 5, 34)


def test_windows_overlap_by_half_and_the_most_central_one_comes_first() -> None:
    """Room for 6 letters beside [CLS] w [SEP] … [SEP]: windows at 0, 3, 6, 9 of 12 letters. `g` is in three of them.

    Two from the begin of the last, last of the first: nearest to the middle of the second.
    """
    text = asked("abcdefghijkl", "g", question="w")
    windows = Answer().render(MADE, text, (), Limits(10, 1))
    letters = tiny_wordpieces()
    read = ["".join(letters.convert_ids_to_tokens(w.source[3:-1])).replace("#", "") for w in windows]
    assert read == ["defghi", "abcdef", "ghijkl"]
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
    letters = tiny_wordpieces().convert_ids_to_tokens(windows[1].source[begin : begin + 2])
    assert task.decide(MADE, text, windows, logits, ()) == "".join(letters).replace("#", "")


def test_a_token_outside_of_the_context_is_never_an_answer() -> None:
    task, texts = EXAMPLES["answer"]
    (read, *_), prefixes = task.render(MADE, texts[0], (), Limits(40, 1)), prefixes_of(task, MADE, texts[:1])
    probabilities = task.outputs(MADE, prefixes, adapter_of(task, MADE, texts[:1])).softmax(-1)
    assert not probabilities[:, sorted(set(range(len(read.source))) - set(read.places))].any()
