"""Made-up meetings with a word that must not leave their organisation."""

import json
from collections.abc import Mapping
from pathlib import Path

from workspaces import ROOT

CANARY = "ZEBRAFISH-7741"
"""In the first turn and in the first summary of every meeting."""


def write_meetings(folder: Path, domain: str, counts: Mapping[str, int]) -> None:
    """Write the first meetings of a domain: `counts` of each split."""
    for split, count in counts.items():
        (folder / split).mkdir(parents=True)
        for path in sorted((ROOT / "data/sample/qmsum" / domain / split).glob("*.json"))[:count]:
            meeting = json.loads(path.read_text(encoding="utf-8"))
            meeting["meeting_transcripts"][0]["content"] += f" {CANARY}"
            meeting["specific_query_list"][0]["answer"] += f" {CANARY}"
            (folder / split / path.name).write_text(json.dumps(meeting), encoding="utf-8")
