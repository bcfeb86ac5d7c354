"""SQuAD 1.1, split by article: 44 of its training articles for training, the 48 of its development set for test.

Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.example import Split
from pipeline.corpora.labelled import Question
from pipeline.errors import QuorumError
from pipeline.workspace.files import read_json
from pipeline.workspace.record import Json

FILES: dict[Split, str] = {
    "train": "commit_6026097/test-v1.1.json",
    "val": "commit_88cc78c/dev-v1.1.json",
    "test": "commit_88cc78c/test-v1.1.json",
}
REMEDY = "run `dvc repro ingest@squad`"


def read(folder: Path) -> list[Question]:
    """Questions, whose owner is the article and whose group is the paragraph."""
    found: list[Question] = []
    for split, name in FILES.items():
        path = folder / name
        content = read_json(path, REMEDY)
        try:
            questions = list(_questions(content, split))
        except (KeyError, TypeError, AttributeError) as error:
            raise QuorumError(f"{path}: is not SQuAD's JSON ({error!r}); {REMEDY}") from None
        for question in questions:
            check_answers(question, str(path))
        found += questions
    return found


def _questions(content: Json, split: Split) -> Iterator[Question]:
    for article in content["data"]:
        title = article["title"]
        for number, paragraph in enumerate(article["paragraphs"]):
            for row in paragraph["qas"]:
                identity, text, context = f"squad/{row['id']}", row["question"].strip(), paragraph["context"]
                answers = tuple((a["text"], a["answer_start"]) for a in row["answers"])
                yield Question(identity, split, title, f"{title}/{number}", text, context, answers)


def check_answers(question: Question, where: str) -> None:
    """Check that each answer is in the context at its character.

    Raises:
        QuorumError: there is no answer, or one is not there.
    """
    if not question.answers:
        raise QuorumError(f"{where}: question {question.id}: has no answer; add one, or leave it out")
    for text, start in question.answers:
        if not text or question.context[start : start + len(text)] != text:
            raise QuorumError(
                f"{where}: question {question.id}: the answer {text!r} does not lie in its context at character "
                f"{start}; correct `answer_start`"
            )
