"""MLflow: the only module that knows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def live(run_id: str) -> Iterator[Callable[[list[dict[str, Any]]], None]]:
    yield lambda rows: None
