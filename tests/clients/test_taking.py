"""Which texts of a data set are used."""

import pytest
from test_skews import texts

from pipeline.clients.taking import Take, Takes, taken
from pipeline.errors import QuorumError

TEXTS = texts(x=(6, 2, 2), y=(4, 2, 2), z=(2, 2, 2))


def of(takes: Takes, seed: int = 1) -> list[str]:
    return list(taken(TEXTS, takes, seed))


def count(ids: list[str], part: str) -> int:
    return sum(part in identity for identity in ids)


def test_by_default_all_texts_are_used_and_none_of_a_split_that_is_not_taken() -> None:
    assert of(Takes()) == list(TEXTS)
    assert of(Takes(test=None)) == [i for i in TEXTS if "test" not in i]


def test_training_texts_are_drawn_anew_for_each_seed_and_the_others_are_not() -> None:
    takes = Takes(train=Take(count=3), val=Take(count=2), test=Take(count=2))
    one, other = of(takes, 1), of(takes, 2)
    assert [i for i in one if "train" in i] != [i for i in other if "train" in i]
    assert [i for i in one if "train" not in i] == [i for i in other if "train" not in i]
    assert (count(one, "train"), count(one, "val"), count(one, "test")) == (3, 2, 2)


def test_as_many_of_each_label_or_of_each_of_the_largest_owners() -> None:
    chosen = taken(TEXTS, Takes(train=Take(each=2)), 1).values()
    assert [sum(t.split == "train" and t.label == label for t in chosen) for label in "ab"] == [2, 2]
    ids = of(Takes(train=Take(each=3, by="owner", largest=2)))
    assert [count(ids, f"{owner}/train") for owner in "xyz"] == [3, 3, 0]


def test_a_split_with_nothing_left_is_one_line() -> None:
    train = {i: t for i, t in TEXTS.items() if t.split != "val"}
    with pytest.raises(QuorumError, match="val: no text is left of 0"):
        taken(train, Takes(), 1)
