"""What refactoring must not change: the knobs of every training, and the bits of what tiny pipelines compute.

`knobs.json.gz` has the resolved knobs of every training of every experiment at every scale. `outputs.json` has hashes
of adapters, histories, predictions, scores and tables, by the kind of processor that computed them, since the last bits
differ between kinds. `python -m tests.golden` (from the root) writes both again.
"""
