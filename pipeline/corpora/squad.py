"""SQuAD 1.1, split by article: 44 of its training articles for training, the 48 of its development set for test.

Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpora.example import Split
from pipeline.corpora.labelled import Question
from pipeline.errors import QuorumError

FILES: dict[Split, str] = {
    "train": "commit_6026097/test-v1.1.json",
    "val": "commit_88cc78c/dev-v1.1.json",
    "test": "commit_88cc78c/test-v1.1.json",
}


def read(folder: Path) -> list[Question]:
    """Questions, whose owner is the article and whose group is the paragraph.

    Raises:
        QuorumError: a file is missing or is no SQuAD, or an answer is not in its context at `answer_start`.
    """
    return [question for split, name in FILES.items() for question in _read(folder / name, split)]


def _read(path: Path, split: Split) -> Iterator[Question]:
    try:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
        for article in articles:
            for number, paragraph in enumerate(article["paragraphs"]):
                group = f"{article['title']}/{number}"
                for row in paragraph["qas"]:
                    answers = tuple((a["text"], a["answer_start"]) for a in row["answers"])
                    question = Question(
                        f"squad/{row['id']}",
                        split,
                        article["title"],
                        group,
                        row["question"].strip(),
                        paragraph["context"],
                        answers,
                    )
                    check_answers(question, str(path))
                    yield question
    except FileNotFoundError:
        raise QuorumError(f"{path}: is missing; run `dvc repro ingest@squad`") from None
    except (ValueError, KeyError, TypeError) as error:
        raise QuorumError(f"{path}: is not SQuAD's JSON ({error!r}); run `dvc repro ingest@squad`") from None


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
