"""The base of engines that wrap another engine and change when and how its clients answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pipeline.federated.engine import Engine, Losses
from pipeline.model.adapter import Adapter


class EngineWrapper:
    """An `Engine` without `submit` and `arrivals`, which passes all other calls on to the engine that it wraps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def trainers(self) -> Sequence[str]:
        return self._engine.trainers

    @property
    def scored(self) -> Mapping[str, str]:
        return self._engine.scored

    def join(self, name: str, adapter: Adapter, version: int) -> None:
        self._engine.join(name, adapter, version)

    def score(
        self, names: Sequence[str], server: Adapter | None, began: Adapter, version: int, unknown: Collection[str]
    ) -> Mapping[str, Losses]:
        return self._engine.score(names, server, began, version, unknown)
