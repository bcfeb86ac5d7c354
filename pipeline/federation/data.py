"""An organisation's data for a federation's run: its folder of meetings or file of texts, drawn and encoded alone."""

import shutil
from collections.abc import Sequence
from typing import Any

from pipeline.clients.manifest import Manifest, by_split
from pipeline.corpora import own_labelled
from pipeline.corpora.conversation import Conversation
from pipeline.corpora.example import write_examples
from pipeline.corpora.organisation import split_folder
from pipeline.corpora.qmsum import SpanEnd, own_folder, read_domains
from pipeline.corpora.statistics import with_lost_letters
from pipeline.errors import QuorumError
from pipeline.plan.orders import planned_run
from pipeline.plan.resolve import encode_order, partition_order, task_of
from pipeline.plan.schema import OwnClient, Params
from pipeline.runs.index import Index, read_index
from pipeline.runs.partitioning import draw
from pipeline.stages import backbone, encode
from pipeline.stages.prepare import CLASSED
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import write_json
from pipeline.workspace.progress import say


def obtain_backbone(run_id: str) -> None:
    """Obtain a run's backbone, unless it is there."""
    learner = planned_run(run_id).learner
    if learner is not None and not (layout.backbone(learner.view.backbone) / layout.ABOUT_BACKBONE).is_file():
        backbone.run(learner.view.backbone)


def agreed_classes(params: Params, setting: str) -> tuple[str, ...]:
    """The classes of a setting's task, on which all sites agree in params.yaml; none for a task that writes.

    A task whose classes do not depend on its data, such as answering questions, needs no list.

    Raises QuorumError if params.yaml has no classes, and no site sees those of the others.
    """
    name, task = params.settings[setting].data_sets[0], load_task(task_of(params, setting))
    if task.kind not in CLASSED:
        fixed: tuple[str, ...] = task.classes(())
        return fixed
    if not params.data[name].classes:
        raise QuorumError(f"params.yaml: data.{name}.classes: is missing; list those of all organisations")
    return tuple(sorted(params.data[name].classes))


def prepare(params: Params, organisation: str, run_id: str) -> tuple[Manifest, Index]:
    """Turn an organisation's folder or file into examples, and draw and encode them as the only client.

    Raises QuorumError if params.yaml does not name the organisation, or it has no data.
    """
    if organisation not in params.own:
        raise QuorumError(f"params.yaml: own: has no {organisation!r}; all sites share one params.yaml")
    row, own = planned_run(run_id), params.own[organisation]
    alone, (name, *_) = params.model_copy(update={"own": {organisation: own}}), row.data
    if load_task(task_of(params, row.setting)).kind is Conversation:
        query = params.queries_of(organisation).whole
        examples = {one.id: one for one in _meetings(organisation, own, params.data[name].span_end, query)}
        order = partition_order(alone, row.setting, [row.seed])
        filled = [split for split, ids in by_split(examples.values()).items() if ids]
        manifest = draw(row.setting, order, examples, row.seed, needed=filled).manifest
    else:
        examples = {one.id: one for one in _texts(organisation, own, params, row.setting)}
        manifest = {organisation: by_split(examples.values())}
    trainable = sum(one.split == "train" for one in examples.values())
    say(f"node {organisation}: trains on {len(manifest[organisation]['train'])} of its {trainable} training examples")
    for line in with_lost_letters(name, list(examples.values())):
        say(f"node {organisation}: {line}")
    write_examples(layout.examples(name), examples.values())
    write_json(layout.notes(name), {"source": {"source": "own", "commit": None}, "examples": len(examples)})
    labels = {identity: one.label for identity, one in examples.items()}
    write_json(layout.partition(row.setting, row.seed), {"manifest": manifest, "labels": labels})
    encodes = encode_order(alone, row.setting, [row.name], [row.seed])
    write_json(layout.order("encode", row.setting), encodes.model_dump(mode="json"))
    encode.run(row.setting)
    return manifest, read_index(row.setting, row.name)


def _meetings(organisation: str, own: OwnClient, span_end: SpanEnd, query: str) -> Sequence[Any]:
    """A folder of meetings, in the splits that the folder or a hash gives them; `query`: see `split_folder`."""
    if own.folder is None:
        raise QuorumError(f"params.yaml: own.{organisation}: needs a folder of meetings; set folder")
    raw = own_folder(layout.raw("qmsum"), organisation)
    shutil.rmtree(raw, ignore_errors=True)  # removed meetings must not be trained on
    split_folder(layout.home() / own.folder, raw, roles=own.roles, query=query)
    return read_domains({organisation: raw}, span_end)[0]


def _texts(organisation: str, own: OwnClient, params: Params, setting: str) -> Sequence[Any]:
    """A CSV or JSONL file of texts, with the column `split`."""
    task = load_task(task_of(params, setting))
    # A label that only others train on is no mistake here, so it is looked up among the agreed ones.
    examples = own_labelled.read(layout.home() / own.path, task.kind)
    if strange := sorted(set(task.classes(examples)) - set(agreed_classes(params, setting))):
        data = params.settings[setting].data_sets[0]
        raise QuorumError(f"params.yaml: data.{data}.classes: has no {strange[0]!r}, which {organisation} has; add it")
    return examples
