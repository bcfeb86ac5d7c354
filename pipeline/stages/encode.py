"""The frozen part of a setting's examples, computed once -> work/store; data/encoded/<setting> indexes it by run."""

from pipeline.corpora.example import examples_of
from pipeline.plan.orders import EncodeOrder, read_order
from pipeline.runs.index import read_manifest
from pipeline.tasks.task import load_task
from pipeline.workspace import layout
from pipeline.workspace.files import empty_folder, write_json
from pipeline.workspace.record import Json


def run(setting: str) -> None:
    """Encode a setting's examples for its runs."""
    order = read_order(layout.order("encode", setting), EncodeOrder)
    indices: dict[str, Json] = {}
    if order.readers:
        from pipeline.runs.encoding import encode  # seconds, which a setting without runs saves

        examples = examples_of(order.data, load_task(order.task).kind)
        seeds = sorted({seed for own in order.seeds.values() for seed in own})
        manifests = {seed: read_manifest(setting, seed) for seed in seeds}
        indices, _ = encode(setting, order, examples, manifests)
    empty_folder(layout.ENCODED / setting)
    for run_name, content in (indices | {name: {} for name in order.unread}).items():  # DVC wants a file for each run
        write_json(layout.encoded(setting, run_name), content)
