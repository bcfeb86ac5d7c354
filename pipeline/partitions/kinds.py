"""Which way to split a setting's `kind` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.corpora.example import Example
from pipeline.partitions import balanced, domains, iid
from pipeline.partitions.manifest import Manifest
from pipeline.partitions.setting import Kind, Setting

KINDS: dict[Kind, Callable[[Setting, Mapping[str, Example], int], Manifest]] = {
    "domains": domains.partition,
    "iid": iid.partition,
    "balanced": balanced.partition,
}
