"""Install the packages of a lock file into a virtual environment: by uv, or by pip where uv cannot be had.

`python -m pipeline.workspace.install LOCK ENVIRONMENT`, by an interpreter with pip. It needs only the standard library.
"""

import os
import subprocess
import sys
from pathlib import Path

UV_PIN = Path("requirements.lock")  # the file that pins uv
UV_SETTINGS = {"index-url": "UV_DEFAULT_INDEX", "find-links": "UV_FIND_LINKS", "cert": "SSL_CERT_FILE"}
"""A setting of pip, and uv's variable for the same. uv does not read pip's configuration."""
PROBE_SECONDS = 15


def install(lock: Path, environment: Path) -> None:
    """Install `lock` into `environment` and compile its bytecode, or exit with an error of one line.

    pip reads its whole configuration, uv only part of it. So pip also tries where uv has failed.
    """
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    target = ["--python", str(environment.absolute() / "bin/python")]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq"]
    if _succeeds(*pip, "install", _pin(UV_PIN, "uv")):
        os.environ |= {**_settings_of_pip(), **os.environ}
        uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", *target, *quiet]
        if _succeeds(*uv, "--compile-bytecode", *_backend_of_torch(uv, lock), "-r", str(lock)):
            return
    print(f"setup: uv could not install {lock}; pip does, which takes some minutes", flush=True)
    if not _succeeds(*pip, *target, "install", "-r", str(lock)):
        sys.exit(f"error: pip could not install {lock}; check the network, then run the same command again")


def _pin(lock: Path, package: str) -> str:
    """The line of `lock` that pins `package`, or nothing."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return next((line for line in lines if line.startswith(f"{package}==")), "")


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, check=False).returncode == 0
    except OSError:
        return False


def _settings_of_pip() -> dict[str, str]:
    """uv's variables, as pip is configured: by files and, which have the last word, by PIP_ variables."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    parts = [line.partition("=") for line in sorted(listed, key=lambda line: line.startswith(":env:"))]
    found = {key.rpartition(".")[2]: value.strip("'\"") for key, _, value in parts}
    return {variable: found[key] for key, variable in UV_SETTINGS.items() if key in found}


def _backend_of_torch(uv: list[str], lock: Path) -> list[str]:
    """uv's option for PyTorch's own index, if that answers: it has builds for this GPU, or without CUDA."""
    torch, backend = _pin(lock, "torch"), ["--torch-backend", "auto"]
    try:
        probe = [*uv, "--dry-run", "--no-deps", *backend, torch]
        env = os.environ | {"UV_HTTP_RETRIES": "0"}
        answered = torch and not subprocess.run(probe, env=env, capture_output=True, timeout=PROBE_SECONDS).returncode
    except subprocess.TimeoutExpired:
        answered = False
    return backend if answered else []


if __name__ == "__main__":
    install(Path(sys.argv[1]), Path(sys.argv[2]))
