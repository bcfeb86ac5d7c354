"""In which number format the frozen model multiplies: fp32, or bf16 where the machine does that natively.

bf16 keeps fp32's range and 8 bits of its digits, and moves and multiplies twice as many numbers in the same time. It
serves the frozen weights, the stored prefixes and the products with them. Adapters, their optimizer, norms, softmax,
entropies, losses and the sums inside every product stay in fp32.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipeline.errors import QuorumError

if TYPE_CHECKING:  # seconds, which `outdated` saves
    import torch

Precision = Literal["fp32", "bf16"]

CPU_FLAGS = Path("/proc/cpuinfo")
GPUS = (Path("/dev/nvidiactl"), Path("/dev/kfd"), Path("/dev/dxg"))
"""Without one of them torch need not be asked for a GPU: to import it takes seconds."""
NATIVE = {"avx512_bf16", "amx_bf16"}
"""How Linux names a processor's instructions that multiply bf16."""


def resolve(wanted: Literal["auto", "fp32", "bf16"], device: str) -> Precision:
    """What `precision` of params.yaml means on this machine, where `device` computes.

    Raises:
        QuorumError: bf16 was asked for, and nothing here multiplies it natively.
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
    """What `threads` of params.yaml means on this machine: OMP_NUM_THREADS where it is open, else one a core."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return wanted or (int(told) if told.isdecimal() and int(told) else len(os.sched_getaffinity(0)))


def multiplies_bf16(device: str) -> bool:
    """Whether what will compute here multiplies bf16 natively; `device` as in params.yaml."""
    if device == "cpu" or not any(path.exists() for path in GPUS):
        return device != "cuda" and bool(NATIVE & _flags())
    import torch

    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device != "cuda" and bool(NATIVE & _flags())


def _flags() -> set[str]:
    text = CPU_FLAGS.read_text(encoding="utf-8") if CPU_FLAGS.is_file() else ""
    return {flag for line in text.splitlines() if line.startswith("flags") for flag in line.split()}


def products_in(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Matrix products and attention in this precision; fp32 leaves torch as it is."""
    import torch

    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
