"""Tasks: what a model learns to predict, and how its predictions are scored.

Task name -> the module that implements it. The plan reads these tables; a stage imports the one task of its order.
"""

from __future__ import annotations

TASKS: dict[str, str] = {
    "summarize": "pipeline.tasks.summarize",
}

TEXT_TASKS: dict[str, str] = {
    "classify": "pipeline.tasks.classify",
    "tag": "pipeline.tasks.tag",
    "answer": "pipeline.tasks.answer",
    "title": "pipeline.tasks.title",
}
"""Tasks on labelled texts: the last one writes a text, the others predict classes above an encoder."""
