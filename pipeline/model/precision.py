"""The number format in which the frozen model multiplies: fp32, or bf16 where the machine does that natively.

bf16 keeps fp32's range and 8 bits of its digits, and moves and multiplies twice as many numbers in the same time. It
is for the frozen weights, the stored prefixes and the products with them. Adapters, their optimizer, norms, softmax,
entropies, losses and the sums inside every product stay in fp32.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager as Context
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipeline.errors import QuorumError

if TYPE_CHECKING:  # seconds, which `outdated` saves
    import torch

Precision = Literal["fp32", "bf16"]
Products = Context[object]  # a context in which matrix products are taken in one precision

CPU_FLAGS = Path("/proc/cpuinfo")
GPUS = (Path("/dev/nvidiactl"), Path("/dev/kfd"), Path("/dev/dxg"))
"""Where none of these exists there is no GPU, which saves the seconds of importing torch to find out."""
NATIVE = {"avx512_bf16", "amx_bf16"}
"""How Linux names a processor's instructions that multiply bf16."""


def resolve(wanted: Literal["auto", "fp32", "bf16"], device: str) -> Precision:
    """The precision that `precision` of params.yaml means on this machine, computing on `device`.

    Raises QuorumError if bf16 is wanted, and nothing here multiplies it natively.
    """
    if wanted == "fp32":
        return "fp32"
    if multiplies_bf16(device):
        return "bf16"
    if wanted == "bf16":
        raise QuorumError(
            "precision: bf16, but this machine does not multiply it natively (it has none of "
            f"{', '.join(sorted(NATIVE))}, nor a GPU that does); set precision: auto or fp32"
        )
    return "fp32"


def threads_of(wanted: int | None) -> int:
    """The number of threads that `threads` of params.yaml means here: for None OMP_NUM_THREADS, else one a core."""
    variable = os.environ.get("OMP_NUM_THREADS", "")
    return wanted or (int(variable) if variable.isdecimal() and int(variable) else len(os.sched_getaffinity(0)))


def multiplies_bf16(device: str) -> bool:
    """Whether the GPU or processor that `device` of params.yaml means here multiplies bf16 natively."""
    if device == "cpu" or not any(path.exists() for path in GPUS):
        return device != "cuda" and bool(NATIVE & _flags())
    import torch

    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device != "cuda" and bool(NATIVE & _flags())


def _flags() -> set[str]:
    """The processor's features, as Linux names them."""
    text = CPU_FLAGS.read_text(encoding="utf-8") if CPU_FLAGS.is_file() else ""
    return {flag for line in text.splitlines() if line.startswith("flags") for flag in line.split()}


def products_in(precision: Precision, device: torch.device) -> Products:
    """Take matrix products and attention in this precision on a device; fp32 changes nothing."""
    import torch

    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
