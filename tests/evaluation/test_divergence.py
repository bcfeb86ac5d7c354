"""Divergence between clients and entropy deciles, by hand."""

import math

import numpy as np
import pytest
import torch

from pipeline.evaluation.deciles import deciles
from pipeline.evaluation.divergence import between_clients, jensen_shannon, topic_counts, word_counts


def test_divergence_by_hand() -> None:
    """P = (1, 0), Q = (1/2, 1/2), M = (3/4, 1/4): (log₂ 4/3 + (log₂ 2/3 + log₂ 2) / 2) / 2 = 0.3113 bits."""
    expected = (math.log2(4 / 3) + (math.log2(2 / 3) + math.log2(2)) / 2) / 2
    found = jensen_shannon(np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 2.0]]))
    assert found == pytest.approx(np.array([[0, expected, 1], [expected, 0, expected], [1, expected, 0]]))


def test_words_are_counted_in_one_order() -> None:
    counts = word_counts(["The cat's mat, the end.", "End!"])
    assert counts.toarray().tolist() == [[1, 1, 1, 2], [0, 1, 0, 0]]  # cat's, end, mat, the
    assert word_counts(["Größe, the end.", "天天"]).toarray().tolist() == [[1, 1, 1, 0], [0, 0, 0, 2]]  # ends with 天


def test_topics_that_no_two_clients_share_are_a_bit_apart() -> None:
    """Two clouds far apart, one a client, and a third client on both."""
    left, right = np.zeros((5, 2)) + np.arange(5)[:, None] * 0.01, np.ones((5, 2)) * 9
    owners = ["A"] * 5 + ["B"] * 5 + ["C"] * 10
    found, by_chance = between_clients(topic_counts(np.concatenate([left, right, left, right]), topics=2), owners)
    assert found["A"]["B"] == found["B"]["A"] == pytest.approx(1.0)
    assert found["A"]["C"] == pytest.approx(0.3113, abs=1e-4)
    assert found["A"]["A"] == 0
    assert 0 < by_chance < 0.3


def test_there_are_never_more_topics_than_sources_can_tell_apart() -> None:
    embeddings = np.random.default_rng(0).normal(size=(30, 4))
    assert topic_counts(embeddings, topics=20).shape == (30, 6)  # five sources a topic


def test_deciles_put_the_surest_first() -> None:
    """Twenty tokens, entropy 19 … 0; the teacher is better by 1 nat where its entropy is below 10, worse elsewhere."""
    entropy = torch.arange(20.0).flip(0)
    gain = torch.where(entropy < 10, 1.0, -2.0)
    groups = deciles(entropy, gain, torch.zeros(20))
    assert [group.entropy for group in groups] == [0.5 + 2 * i for i in range(10)]
    assert [group.teacher_better for group in groups] == [1.0] * 5 + [0.0] * 5
    assert [group.gain for group in groups] == [1.0] * 5 + [-2.0] * 5
