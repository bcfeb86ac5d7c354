"""Environment variables that turn off telemetry and chatter of libraries; set before any of them is imported."""

import os
import sys
import warnings

ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DVC_NO_ANALYTICS": "1",
    "FLWR_TELEMETRY_ENABLED": "0",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "MPLBACKEND": "Agg",
    "TRANSFORMERS_VERBOSITY": "error",
}


def silence() -> None:
    """Set the variables, unless the user has, and ignore warnings of libraries."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", category=UserWarning, module="torch")
