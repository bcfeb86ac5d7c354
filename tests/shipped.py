"""params.yaml as it is shipped, and with some of it changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from conftest import ROOT

SHIPPED = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
DOMAINS: dict[str, Any] = SHIPPED["settings"]["domains"]
IID: dict[str, Any] = SHIPPED["settings"]["iid_balanced"]
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The fast one, where it is built."""


def params_with(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(yaml.dump(SHIPPED | changes, Dumper=DUMPER, sort_keys=False), encoding="utf-8")
    return path
