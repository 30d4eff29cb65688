"""Weights of a published checkpoint, parameter by parameter, from a folder or a hub."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from parlab.bench.hub import MODELSCOPE

FILES = ["*.safetensors", "*.safetensors.index.json", "config.json"]


def locate(model: str, revision: str | None) -> Path:
    """The folder of a checkpoint: a local one as it is, else downloaded at the revision from the
    Hugging Face hub, or from ModelScope where the id starts with `modelscope:`."""
    if Path(model).is_dir():
        return Path(model)
    if model.startswith(MODELSCOPE):
        from modelscope import snapshot_download as from_modelscope

        name = model.removeprefix(MODELSCOPE)
        return Path(from_modelscope(name, revision=revision, allow_patterns=FILES))
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(model, revision=revision, allow_patterns=FILES))


def reader(folder: Path) -> Callable[[str, tuple[int, ...]], Tensor]:
    """read(name, shape) for `parameters.load`; only what is asked for is read.

    Raises:
        FileNotFoundError: the folder has no safetensors file.
    """
    from safetensors import safe_open

    index = folder / "model.safetensors.index.json"
    if index.is_file():
        files = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    elif (folder / "model.safetensors").is_file():
        files = None
    else:
        raise FileNotFoundError(f"{folder} holds neither model.safetensors nor its index")

    def read(name: str, shape: tuple[int, ...]) -> Tensor:
        if files is not None and name not in files:
            raise KeyError(f"{name} of shape {shape} is not among the checkpoint's parameters")
        path = folder / ("model.safetensors" if files is None else files[name])
        with safe_open(path, framework="pt") as source:
            tensor: Tensor = source.get_tensor(name)
        return tensor

    return read
