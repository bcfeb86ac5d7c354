"""A tiny experiment on labelled texts: every task, every kind of setting, cuts and adapters, above random weights."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from workspaces import BOTH, Workspace

from pipeline.workspace.files import write_text

PLAIN: dict[str, Any] = (
    {"page": "tasks", "scale": "laptop", "scales": {"laptop": {"omit": ["*-full"]}, "full": {}}, "seeds": [1, 2]}
    | {"device": "cpu", "precision": "fp32", "data_source": "sample", "evaluated": "last", "alpha": 1.0, "rounds": 2}
    | {"patience": 9, "batch_size": 4, "tau": 1.0, "local_start": "own", "sign_flips": 200}
    | {"rates": {"adamw": 0.005, "sgd": 0.1, "pooled": 0.005}}
)
PLAIN["sections"] = {
    "methods": ["news", "names", "answers", "subjects"],
    "partitions": ["news-fedavg"],
    "cuts": ["news-pooled", "news-head", "news-lora", "news-full"],
    "sizes": ["news-fedavg", "news-small"],
    "natural": ["names-single", "names-ditto", "owners-fedavg"],
}
_ENCODED = {"backbone": "tiny-bert", "frozen": "e,0"}
TASKS: dict[str, dict[str, Any]] = {
    "news": _ENCODED
    | {"task": "classify", "source": "20news", "headers": "subject", "source_tokens": 48}
    | {"take": {"test": {"each": 3}}},
    "names": _ENCODED | {"task": "tag", "source": "uner", "source_tokens": 64, "take": {"train": {"count": 60}}},
    "answers": _ENCODED
    | {"task": "answer", "source": "squad", "source_tokens": 80, "knobs": {"AdaFedProx": {"mu": 0.1}}}
    | {"take": {"test": {"count": 9}, "val": {"count": 9}}},
    "subjects": {"task": "title", "source": "aeslc", "backbone": "tiny-llama", "source_tokens": 300}
    | {"target_tokens": 12, "max_tokens": 24},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "news": {"data": "news", "kind": "skewed", "clients": 4},
    "names": {"data": "names", "kind": "natural", "least": 2},
    "answers": {"data": "answers", "kind": "natural", "silos": 3, "own": False},
    "subjects": {"data": "subjects", "kind": "skewed", "by": "cluster", "clients": 3, "alpha": 0.5},
    "owners": {"data": "subjects", "kind": "natural", "least": 2},
}
NEWS = {"setting": "news", "method": "AdaFedAvg"}
RUNS: dict[str, dict[str, Any]] = {
    "news-untrained": {"setting": "news", "method": "ZeroShot"},
    "news-fedavg": NEWS | {"client_optimizer": "sgd", "clients_per_round": 2},
    "news-pooled": {"setting": "news", "method": "AdaCentralized"},
    "news-head": NEWS | {"frozen": "e,0-2"},
    "news-small": NEWS | {"frozen": "none", "layers": [0, 2], "seeds": [1]},
    "news-lora": NEWS | {"above": "lora", "size": 2, "seeds": [1]},
    "names-single": {"setting": "names", "method": "AdaSingle"},
    "names-ditto": {"setting": "names", "method": "Ditto", "mu": 0.1},
    "answers-fedprox": {"setting": "answers", "method": "AdaFedProx"},
    "news-full": NEWS | {"backbone": "tiny-distilbert"},
    "owners-fedavg": {"setting": "owners", "method": "AdaFedAvg", "seeds": [1]},
    "subjects-fedopt": {"setting": "subjects", "method": "AdaFedOPT"}
    | {"server_optimizer": "momentum", "server_learning_rate": 0.5},
}
ALL: dict[str, Any] = PLAIN | {"sources": ["20news", "uner", "squad", "aeslc"], "data": TASKS, "settings": SETTINGS}
ALL |= {"backbones": ["tiny-bert", "tiny-distilbert", "tiny-llama"], "runs": RUNS}
EVERY: dict[str, Any] = BOTH | {
    "data": BOTH["data"] | {name: own | {"seeds": [1, 2], "rates": PLAIN["rates"]} for name, own in TASKS.items()},
    "sources": [*BOTH["sources"], *ALL["sources"]],
}
EVERY |= {"page": "tasks", "patience": 9, "alpha": 1.0, "scales": {"small": {"omit": ["*-full"]}, "full": {}}}
EVERY |= {"backbones": ALL["backbones"]} | {key: BOTH[key] | ALL[key] for key in ("sections", "settings", "runs")}
"""All of both: meetings and labelled texts, every task and every kind of setting."""
COMPARED = """
question: Does training help?
comparisons:
  - {name: trained, statement: "", terms: {news-fedavg: 1, news-untrained: -1}, effects: {accuracy: 2.0}, family: news}
  - {name: gone, statement: "", terms: {news-fedavg: 1, gone: -1}, effects: {accuracy: null}, family: news}
"""
TEXT, PICKED = "The cat sat on a mat. A dog came in later. Nobody saw it go. It rained.", "A dog came in later."
EXTRACTED = {"task": "extract", "backbone": "tiny-bert", "frozen": "e,0-2", "source_tokens": 160}


def write_documents(folder: Path, who: str = "cat") -> None:
    """Twelve texts of four sentences, of which one is the summary."""
    for (kind, text), number in product((("texts", TEXT), ("summaries", PICKED)), range(12)):
        write_text(folder / kind / f"{number}.txt", text.replace("cat", f"{who} {number}"))


def laid(folder: Path, params: Mapping[str, Any] = ALL, **changes: Any) -> Workspace:
    """A clone with an experiment on labelled texts at its root."""
    workspace = Workspace.laid(folder)
    (workspace.folder / "comparisons.yaml").write_text(COMPARED, encoding="utf-8")
    workspace.write_params({**params, **changes})
    return workspace
