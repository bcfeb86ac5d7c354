"""A small params.yaml, and with some of its keys changed: what tests of the plan read and resolve."""

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from labelled import TASKS
from workspaces import DOMAINS, QUERY, as_yaml

from pipeline.plan.resolve import resolve
from pipeline.plan.schema import Params

GONE = object()
"""The change that removes a key."""
Orders = dict[str, dict[str, Any]]

SMALL_PARAMS: dict[str, Any] = (
    {"scale": "small", "seeds": [1, 2], "device": "cpu", "precision": "fp32", "sources": ["qmsum", "samsum", "20news"]}
    | {"backbones": ["tiny-llama", "tiny-bert"], "backbone": "tiny-llama", "source_tokens": 300, "target_tokens": 60}
    | {"max_tokens": 12, "rounds": 3, "rates": {"own": 0.1, "local": 0.2, "server": 0.3, "pooled": 0.4, "sgd": 0.5}}
    | {"sections": {"main": ["zeroshot", "single", "fedavg", "fedkd", "fedselectkd"]}}
)
SMALL_PARAMS["data"] = {name: {"task": "summarize", "source": name} for name in ("qmsum", "samsum")}
SMALL_PARAMS["data"] |= {"samsum": SMALL_PARAMS["data"]["samsum"] | {"query": QUERY}, "news": TASKS["news"]}
SMALL_PARAMS["settings"] = {
    "domains": {"data": "qmsum", "kind": "domains", "clients": DOMAINS},
    "both": {"data": ["qmsum", "samsum"], "kind": "domains", "clients": ["Product", "SAMSum"]},
    "news": {"data": "news", "kind": "skewed", "clients": 4},
}
SMALL_PARAMS["runs"] = {
    "zeroshot": {"setting": "domains", "method": "ZeroShot"},
    "single": {"setting": "domains", "method": "AdaSingle"},
    "fedavg": {"setting": "domains", "method": "AdaFedAvg"},
    "fedkd": {"setting": "domains", "method": "AdaFedKD"},
    "fedselectkd": {"setting": "domains", "method": "AdaFedSelectKD"},
    "tau-2": {"setting": "domains", "method": "AdaFedSelectKD", "tau": 2.0, "lambda": 0.5, "decode": False},
    "both": {"setting": "both", "method": "AdaFedAvg"},
    "news": {"setting": "news", "method": "AdaFedAvg"},
}


def changed(**changes: Any) -> dict[str, Any]:
    """The small params.yaml with other values at dotted keys: `changed(**{"runs.fedavg.rounds": 1})`."""
    content: dict[str, Any] = deepcopy(SMALL_PARAMS)
    for key, value in changes.items():
        *path, last = key.split(".")
        table = content
        for name in path:
            table = table.setdefault(name, {})
        table[last] = value
        if value is GONE:
            del table[last]
    return content


def written(folder: Path, content: Mapping[str, Any]) -> Path:
    """The path of a params.yaml with this content."""
    path = folder / "params.yaml"
    path.write_text(as_yaml(content), encoding="utf-8")
    return path


def params_of(**changes: Any) -> Params:
    """The small params.yaml with changes, as they are checked."""
    return Params.model_validate(changed(**changes))


def planned(**changes: Any) -> Orders:
    """The orders of the small params.yaml with changes."""
    return resolve(params_of(**changes))


def other(before: Orders, after: Orders) -> set[str]:
    """The orders that differ, apart from the fingerprints of results, which are hashes of others."""

    def plain(name: str, orders: Orders) -> object:
        return {key: value for key, value in orders.get(name, {}).items() if key != "fingerprints"}

    return {name.removesuffix(".json") for name in before | after if plain(name, before) != plain(name, after)}
