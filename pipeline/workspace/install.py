"""Install the pinned packages into the interpreter that runs this; only the standard library is needed.

torch comes first: unpinned, another package would draw several GB of CUDA in. Where there is no GPU, PyTorch's CPU
builds are preferred if their index answers; the lock's `torch==` accepts either build.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
PROBE_SECONDS = 5


def install(lock: Path) -> None:
    """Install a lock file's packages, torch first."""
    pins = [line.strip() for line in lock.read_text(encoding="utf-8").splitlines() if line.strip()]
    torch = next(pin for pin in pins if pin.startswith("torch=="))
    print(f"setup: {torch}, the largest, first", flush=True)
    _pip(*_cpu_builds(), torch)
    print(f"setup: {len(pins) - 1} more packages", flush=True)
    _pip("-r", str(lock))
    print("setup: compiling them, once for all later starts (half a minute)", flush=True)
    _compile()


def _cpu_builds() -> list[str]:
    if shutil.which("nvidia-smi"):
        return []
    try:
        with urllib.request.urlopen(f"{CPU_BUILDS}/torch/", timeout=PROBE_SECONDS):
            return ["--extra-index-url", CPU_BUILDS]
    except (OSError, ValueError):
        return []


def _pip(*arguments: str) -> None:
    quietly = ["-qq", "--disable-pip-version-check", "--no-compile"]
    command = [sys.executable, "-m", "pip", "install", *quietly, *arguments]
    if subprocess.run(command, check=False).returncode:
        sys.exit(f"error: pip could not install {arguments[-1]}; check the network, then run the same command again")


def _compile() -> None:
    """Where Python may write no bytecode later on, every start would compile torch, transformers and MLflow anew."""
    packages = sysconfig.get_path("purelib")
    own = Path(__file__).parents[1]
    # Some packages ship files for other versions of Python, which do not compile: no harm.
    command = [sys.executable, "-m", "compileall", "-q", "-j", "0", packages, str(own)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
