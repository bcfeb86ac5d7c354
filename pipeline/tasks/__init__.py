"""Tasks: what a model learns to predict, and how its predictions are scored."""

TASKS: dict[str, str] = {
    "summarize": "pipeline.tasks.summarize",
    "title": "pipeline.tasks.title",
    "classify": "pipeline.tasks.classify",
    "tag": "pipeline.tasks.tag",
    "answer": "pipeline.tasks.answer",
    "extract": "pipeline.tasks.extract",
}
"""Task -> its module. The plan reads this table; a stage imports the one task of its order."""
