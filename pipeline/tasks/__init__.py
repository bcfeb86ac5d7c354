"""What is learned, and how it is judged; and task name -> the module that implements it.

The plan reads these tables: a stage imports the one task of its order.
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
"""Tasks on labelled texts: all predict classes above an encoder, but the last, which writes."""
