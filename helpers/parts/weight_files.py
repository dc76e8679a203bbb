"""The files that weights come in: what they hold under their own names, and what lies there in their place.

Knows formats, and nothing of any model. Nothing in a file is run.
"""

from __future__ import annotations

import json
import pickle
import re
import warnings
from pathlib import Path

import torch

from helpers.course import stands_in

WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


def read_weights(folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, object], str]:
    """The weights of a folder: ({name: tensor (...)}, settings of a checkpoint, name of the file).

    The first of the files above that can be read; a warning names one that was passed over. Runs no code of the file's.
    FileNotFoundError where there is none, ValueError where all are damaged.
    """
    there = [folder / name for name in WEIGHTS if (folder / name).is_file()]
    if not there:
        raise FileNotFoundError(
            f"A model needs model.safetensors or pytorch_model.bin, and {folder} has neither.{_instead(folder)}"
        )
    damaged = []
    for path in there:
        try:
            published, settings = _read(path)
        except ValueError as problem:
            damaged.append(str(problem))
            continue
        if damaged:
            warnings.warn(f"{damaged[0].rstrip('.')}. {path.name} was taken instead.", stacklevel=3)
        return published, settings, path.name
    raise ValueError("\n".join(damaged))


def _instead(folder):
    """What to do where a folder has no weights that `load` looks for, a sentence with a space before it, or nothing."""
    names = sorted(path.name for path in folder.iterdir())
    part = next((name for name in names if re.fullmatch(r".+-\d+-of-\d+\.(safetensors|bin)", name)), None)
    if part:
        index = re.sub(r"-\d+-of-\d+", "", part) + ".index.json"
        return f" {part} is a part of a model in several files: fetch the others too, and {index}."
    other = next(
        (name for name in names if name.endswith((".h5", ".msgpack", ".gguf", ".onnx", ".ckpt", ".pth"))), None
    )
    if other:
        return f" {other} is in a format that is not read here."
    return of_nano(folder)


def of_nano(folder: Path) -> str:
    """What to do with nanoGPT's own folder, a sentence with a space before it, or nothing."""
    if not (folder / "ckpt.pt").is_file():
        return ""
    return (
        " It has a ckpt.pt, as nanoGPT writes it: call that pytorch_model.bin, and write its sizes into a config.json"
        " (Config(...).to_json() has the names)."
    )


def _read(path):
    """({name: tensor}, settings) of one file, or of all that an index names. ValueError where it cannot be read."""
    if stranger := stands_in(path):
        raise ValueError(f"{path.name} is {stranger}.")
    if path.name.endswith(".index.json"):
        return _read_parts(path), {}
    return (_read_safetensors(path), {}) if path.suffix == ".safetensors" else _read_bin(path)


def _read_parts(index):
    """{name: tensor} of the files that an index names."""
    try:
        where = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        parts = sorted(set(where.values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{index.name} is damaged: it should say for each tensor in which file it is.") from None
    kind = ".safetensors" if ".safetensors" in index.name else ".bin"
    found = {}
    for part in parts:
        if not isinstance(part, str) or Path(part).name != part or not part.endswith(kind) or part in WEIGHTS:
            raise ValueError(f"{index.name} is damaged: {part!r} is not the name of a {kind} file beside it.")
        if not (index.parent / part).is_file():
            raise ValueError(f"{index.name} is there, and {part}, which it names, is not: fetch it too.")
        found |= _read(index.parent / part)[0]
    lost = next((name for name in where if name not in found), None)
    if lost is not None:
        raise ValueError(f"{where[lost]} is damaged: it has no {lost}, which {index.name} says is in it.")
    return found


def _read_safetensors(path):
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError, RuntimeError) as problem:
        raise ValueError(f"{path.name} is damaged: {first_line(problem)}") from None


def _read_bin(path):
    try:
        with warnings.catch_warnings(action="ignore"):  # about the file's format, for PyTorch's developers
            found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as problem:
        # PyTorch's own message advises to run what is in the file: not repeated here.
        asked = re.search(r"(?:GLOBAL|class|function|global)\s+([\w.]+\.\w+)", str(problem))
        what = f"it asks for {asked[1]}, and that" if asked else "what is in it"
        raise ValueError(
            f"{path.name} is refused: {what} is no weights. It is damaged or hostile, and nothing in it was run."
        ) from None
    except Exception as problem:  # what a damaged archive raises has no common type
        raise ValueError(f"{path.name} is damaged: {first_line(problem)}") from None
    settings = {}
    if isinstance(found, dict) and isinstance(found.get("model"), dict):  # nanoGPT's, beside the optimiser's state
        settings, found = found.get("model_args"), found["model"]
    if not isinstance(found, dict) or not all(
        isinstance(k, str) and isinstance(v, torch.Tensor) for k, v in found.items()
    ):
        raise ValueError(f"{path.name} is no table of weights: it should hold a tensor for each name.")
    return found, settings if isinstance(settings, dict) else {}


def first_line(problem: BaseException) -> str:
    """What an error says, in one line."""
    return (str(problem).strip() or type(problem).__name__).splitlines()[0][:300]
