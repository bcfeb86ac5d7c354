"""A preset's weights and tokenizer -> models/backbones/<name>, in the hub's file layout.

They are obtained once for all folders, into work/backbones, and are hard links here: half a gigabyte each is enough.
"""

import shutil

from pipeline.model.obtain import obtain
from pipeline.plan.orders import BackboneOrder, read_order
from pipeline.workspace import layout
from pipeline.workspace.files import flush, link, locked, make_folder, sha256_json, write_json


def run(name: str) -> None:
    """Fetch or copy a backbone and convert it; one of another scale's runs gets a note instead."""
    order = read_order(layout.order("backbone", name), BackboneOrder)
    folder = layout.backbone(name)
    shutil.rmtree(folder, ignore_errors=True)
    if order.says_left_out(f"backbone {name}"):
        write_json(folder / layout.ABOUT_BACKBONE, {"name": name, "digest": ""})
        return
    shared = layout.work() / "backbones" / f"{name}-{sha256_json(order.model_dump(mode='json'))[:12]}"
    with locked(shared.with_suffix(".lock")):
        if not (shared / layout.ABOUT_BACKBONE).is_file():
            shutil.rmtree(shared, ignore_errors=True)
            # In the repository itself: an experiment's copy of the workspace lacks a folder that git does not know.
            weights = None if order.weights is None else layout.home() / order.weights.folder
            obtain(order.backbone, shared, layout.downloads(), weights)
        make_folder(folder)
        shutil.copytree(shared, folder, copy_function=link, dirs_exist_ok=True)
        flush(folder)
