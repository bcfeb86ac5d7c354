"""Data sets of an experiment on labelled texts: the task of each, and the knobs of training on it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from pipeline.clients.setting import Count
from pipeline.clients.taking import Takes
from pipeline.corpora.conversation import Conversation
from pipeline.model.frozen_part import FrozenPart
from pipeline.model.presets import ENCODERS, PRESETS
from pipeline.plan.federations import check_own
from pipeline.plan.run import Method
from pipeline.tasks import TASKS
from pipeline.tasks.task import load_task
from pipeline.workspace.record import Record

Published = Literal["20news", "uner", "wnut", "squad", "aeslc"]


class Rates(Record):
    """Learning rates by what trains: AdamW, SGD, and AdamW on all data pooled."""

    adamw: float = Field(gt=0)
    sgd: float = Field(gt=0)
    pooled: float = Field(gt=0)


class Dataset(Record):
    """A data set, its task, and the knobs of its trainings, which a run can set for itself.

    `published`: one that Quorum reads; `file`: a user's CSV or JSONL. `headers`: which headers of 20 Newsgroups are
    read. `tokens`: the most that the model reads of a text; `target_tokens`: of a title; `max_tokens`: that it writes.
    `frozen`: where the encoder is cut. `take`: which texts are used. `knobs`: method -> default hyperparameters of its
    runs.
    """

    task: str
    published: Published | None = None
    file: Path | None = None
    headers: Literal["all", "subject"] = "all"
    backbone: str
    frozen: str = "none"
    tokens: Count
    target_tokens: Count | None = None
    max_tokens: Count = 24
    take: Takes = Field(default_factory=Takes)
    rounds: Count
    clients_per_round: Count | None = None
    batch_size: Count
    rates: Rates
    knobs: dict[Method, dict[str, Any]] = Field(default_factory=dict)
    seeds: list[int] | None = Field(default=None, min_length=1)

    @field_validator("task")
    @classmethod
    def _known(cls, task: str) -> str:
        if task not in TASKS:
            raise ValueError(f"unknown task {task!r}; known: {', '.join(TASKS)}")
        if load_task(TASKS[task]).kind is Conversation:
            raise ValueError(f"{task} is a task on conversations, which the root's params.yaml can have")
        return task

    def check(self, where: str) -> None:
        """Check that the keys of the data set fit together; `where` is its key, for messages.

        Raises:
            ValueError: it does not have one source, DVC does not track its file, or its model does not fit its task.
        """
        if (self.published is None) == (self.file is None):
            raise ValueError(f"{where}: give one of published and file")
        try:
            if self.file is not None:
                check_own(self.file)
            self.check_backbone(self.backbone)
        except ValueError as error:
            raise ValueError(f"{where}.{error}") from None
        self.check_cut(where, {} if self.frozen == "none" else {"frozen": self.frozen})

    @property
    def writes(self) -> bool:
        """Whether its models are language models, which write, rather than encoders."""
        return self.task == "title"

    def check_backbone(self, backbone: str) -> None:
        """Check that a backbone fits the task.

        Raises:
            ValueError: it cannot do the task.
        """
        known = {name for name in PRESETS if PRESETS[name].family == "causal"} if self.writes else set(ENCODERS)
        if backbone not in known:
            raise ValueError(f"backbone: {backbone!r} cannot {self.task}; known: {', '.join(sorted(known))}")

    def check_cut(self, where: str, keys: Mapping[str, Any]) -> None:
        """Check the keys about the parts of an encoder; `where` has them, for messages.

        Raises:
            ValueError: the models are no encoders, or `frozen` names no cut.
        """
        if self.writes and keys:
            raise ValueError(f"{where}.{next(iter(keys))}: is of encoders, and a {self.task} is written")
        try:
            FrozenPart.parse(keys.get("frozen", "none"))
        except ValueError as error:
            raise ValueError(f"{where}.frozen: {error}") from None
