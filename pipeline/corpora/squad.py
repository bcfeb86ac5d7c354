"""SQuAD 1.1, split by article: 44 of its training articles for training, the 48 of its development set for test.

Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of Text", EMNLP 2016.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.corpora.example import Split
from pipeline.corpora.labelled import Question
from pipeline.workspace.files import read_json

FILES: dict[Split, str] = {
    "train": "commit_6026097/test-v1.1.json",
    "val": "commit_88cc78c/dev-v1.1.json",
    "test": "commit_88cc78c/test-v1.1.json",
}


def read(folder: Path) -> list[Question]:
    """Questions, whose owner is the article and whose group is the paragraph."""
    found: list[Question] = []
    for split, name in FILES.items():
        for article in read_json(folder / name)["data"]:
            title = article["title"]
            for number, paragraph in enumerate(article["paragraphs"]):
                for row in paragraph["qas"]:
                    identity, text, context = f"squad/{row['id']}", row["question"].strip(), paragraph["context"]
                    answers = tuple((one["text"], one["answer_start"]) for one in row["answers"])
                    found.append(Question(identity, split, title, f"{title}/{number}", text, context, answers))
    return found
