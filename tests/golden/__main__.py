"""Write the golden files again, or with `--compare` say what differs."""

import shutil
import sys
import tempfile
from pathlib import Path

from tests.golden import knobs, outputs, pipelines


def main(compare: bool) -> int:
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    try:
        found = {}
        for name, workspace in pipelines.laid(folder).items():
            workspace.make_until("report")
            found[name] = outputs.outputs_of(workspace.folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not compare:
        knobs.save()
        outputs.save(found)
        print(f"golden: {sum(map(len, found.values()))} hashes on {outputs.processor()}")
        return 0
    known = outputs.saved().get(outputs.processor())
    if known is None:
        print(f"golden: no hashes of a processor like this one ({outputs.processor()})")
        return 1
    hashes = [(name, key, own[key]) for name, own in known.items() for key in own]
    wrong = [f"{name}: {key}" for name, key, hash_ in hashes if found.get(name, {}).get(key) != hash_]
    print("\n".join(wrong))
    print(f"golden: {len(wrong)} of {sum(map(len, known.values()))} hashes differ")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main("--compare" in sys.argv))
