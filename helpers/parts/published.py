"""Models as the Hub publishes them: settings in config.json, and tensors under names of their own.

One table of settings and one of tensors say for each model how both are named here. Everything else is shared: reading,
checking that everything fits, and the messages that say what does not.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from helpers.course import stands_in

from .multi_head import require_heads
from .weight_files import first_line, of_nano

Model = TypeVar("Model", bound=nn.Module)
Tensors = dict[str, torch.Tensor]

##### Settings

_COUNTS = ("n", "t_max", "e", "h", "groups", "depth", "hidden", "segments")
_POSITIVE = ("epsilon", "theta")


def require_sizes(config: Any) -> None:
    """ValueError unless the sizes of a config, a dataclass, describe a model that can be built.

    Counts are whole numbers above 0 (or None where that is the default), epsilon and theta numbers above 0, dropout a
    number from 0 to 1, and the width e is divisible by the number of heads h.
    """
    for setting in fields(config):
        name, value = setting.name, getattr(config, setting.name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if name in _COUNTS and (type(value) is not int or value < 1) and (value is not None or setting.default):
            raise ValueError(f"{name} should be a whole number above 0, and is {value!r}.")
        if name in _POSITIVE and not (number and 0 < value < math.inf):
            raise ValueError(f"{name} should be a number above 0, and is {value!r}.")
        if name == "dropout" and not (number and 0 <= value <= 1):
            raise ValueError(f"dropout should be a number from 0 to 1, and is {value!r}.")
    require_heads(config.e, config.h)


@dataclass(frozen=True)
class SettingNames:
    """How a config.json of the Hub describes a kind of model."""

    model: str
    """Its name in messages."""
    sizes: Mapping[str, str]
    """Our name of each setting that must be there, and theirs."""
    others: Mapping[str, tuple[str, object]]
    """Our names of the rest, each with theirs and what is meant where the file does not say."""
    only: Mapping[str, tuple]
    """What a model may have of everything that is not built here in general; the first value is meant where the file
    does not say.
    """

    def read(self, path: str | Path, build: Callable[..., Any], more: Callable[[dict], dict] = lambda table: {}) -> Any:
        """build(**settings), of the settings in a config.json. more: further ones, from the file's whole table.

        FileNotFoundError. ValueError where the file is damaged, or describes what cannot be built here.
        """
        path = Path(path)
        table = _json_table(path)
        for setting, usual in self.only.items():
            if table.get(setting, usual[0]) not in usual:
                raise ValueError(
                    f"{path.name} asks for {setting} = {table[setting]!r}, and this {self.model} knows only"
                    f" {usual[0]!r}."
                )
        missing = [theirs for theirs in self.sizes.values() if theirs not in table]
        if missing:
            raise ValueError(f"{path.name} is damaged: it does not say {' nor '.join(missing)}.")
        settings = {ours: table[theirs] for ours, theirs in self.sizes.items()}
        settings |= {ours: table.get(theirs, default) for ours, (theirs, default) in self.others.items()}
        try:
            return build(**settings | more(table))
        except ValueError as problem:
            raise ValueError(f"{path.name} describes no {self.model} that can be built here: {problem}") from None

    def table(self, config: Any) -> dict[str, object]:
        """A config's settings under the names of config.json."""
        usual = {setting: values[0] for setting, values in self.only.items()}
        others = {theirs: getattr(config, ours) for ours, (theirs, _) in self.others.items()}
        return usual | {theirs: getattr(config, ours) for ours, theirs in self.sizes.items()} | others


def _json_table(path: Path) -> dict:
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent}.")
    if not path.is_file():
        raise FileNotFoundError(f"A model needs config.json, and {path.parent} has none.{of_nano(path.parent)}")
    if stranger := stands_in(path):
        raise ValueError(f"{path.name} is damaged: it is {stranger}.")
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{path.name} is damaged: it is not JSON.") from None
    if not isinstance(table, dict):
        raise ValueError(f"{path.name} is damaged: it should be a table of settings.")
    return table


##### Tensors


@dataclass(frozen=True)
class TensorNames:
    """How the files of the Hub name the tensors of a kind of model."""

    model: str
    """Its name in messages."""
    outside: Mapping[str, str]
    """The names outside the blocks, theirs and ours."""
    block: str
    """What stands before a block's number, "h."."""
    inside: Mapping[str, str]
    """The modules of a block, theirs and ours; each has tensors of these kinds."""
    kinds: tuple[str, ...] = ("weight", "bias")
    prefix: str = ""
    """What may stand before every name."""
    older: Mapping[str, str] = field(default_factory=dict)
    """Endings that older files have, and what replaces them."""
    ignored: str = "(?!)"
    """A regular expression of the names of what is no weight, or none of this model."""

    def rename(self, published: Mapping[str, torch.Tensor]) -> tuple[Tensors, list[str]]:
        """(the tensors, (...) each, under our names, what is wrong with the other names, a line each)."""
        renamed: Tensors = {}
        problems = []
        for name, tensor in published.items():
            plain = unwrapped(name).removeprefix(self.prefix)
            if re.fullmatch(self.ignored, plain):
                continue
            ours = self._ours(plain)
            if ours is None:
                problems.append(f"  unexpected: {name}")
            elif ours in renamed:
                problems.append(f"  twice, under two names: {name}")
            else:
                renamed[ours] = tensor
        return renamed, problems

    def accepted(self, result: tuple[Tensors, list[str]]) -> Tensors:
        """The tensors (...) of (tensors, problems). ValueError that lists the problems where there are some."""
        tensors, problems = result
        if problems:
            raise ValueError(f"These are not {self.model}'s weights:\n" + "\n".join(problems))
        return tensors

    def published(self, name: str) -> str:
        """The Hub's name of a tensor, from ours."""
        block = re.fullmatch(r"blocks\.(\d+)\.(.+)\.(\w+)", name)
        if not block:
            return next(theirs for theirs, ours in self.outside.items() if ours == name)
        path = next(theirs for theirs, ours in self.inside.items() if ours == block[2])
        return f"{self.block}{block[1]}.{path}.{block[3]}"

    def _ours(self, name: str) -> str | None:
        for ending, usual in self.older.items():
            name = name.removesuffix(ending) + usual if name.endswith(ending) else name
        block = re.fullmatch(rf"{re.escape(self.block)}(0|[1-9][0-9]*)\.(.+)\.({'|'.join(self.kinds)})", name)
        if not block:
            return self.outside.get(name)
        path = self.inside.get(block[2])
        return path and f"blocks.{block[1]}.{path}.{block[3]}"


def unwrapped(name: str) -> str:
    """A name without the marks of the wrappers that a model may have been in when it was saved."""
    return name.removeprefix("module.").replace("_orig_mod.", "")


def without_heads(published: Mapping[str, torch.Tensor], heads: str, model: str) -> Tensors:
    """The tensors (...) without those of a task's own layers, which a warning names.

    heads: a regular expression of their names. model: what the loader makes, "BERT".
    """
    left_out = [name for name in published if re.fullmatch(heads, unwrapped(name))]
    if left_out:
        warnings.warn(
            f"The file holds layers for one task, for which {model} has no place. They were left out:"
            f" {', '.join(left_out)}.",
            stacklevel=3,
        )
    return {name: tensor for name, tensor in published.items() if name not in left_out}


def drop_tied_head(tensors: Tensors, names: TensorNames) -> list[str]:
    """Take "to_logits.weight" out of the tensors (...). A line that says so where it differs from "tokens.weight"."""
    head, table = tensors.pop("to_logits.weight", None), tensors.get("tokens.weight")
    if head is None or table is None:
        return []
    # where both have NaN they agree: that it is NaN is said elsewhere
    if head.shape == table.shape and bool(((head == table) | (head.isnan() & table.isnan())).all()):
        return []
    theirs = names.published("to_logits.weight"), names.published("tokens.weight")
    return [f"  {theirs[0]} differs from {theirs[1]}, and {names.model} has one table for both"]


def fitted(
    tensors: Tensors, problems: list[str], build: Callable[[Any], nn.Module], config: Any, names: TensorNames, file: str
) -> Tensors:
    """Weights (...) in 32 bits, one for each that build(config) has, of tensors under our names.

    problems: what is known to be wrong, a line each. file: where the tensors come from. ValueError that names each
    tensor that is missing, unexpected, of the wrong shape, no weights, or not finite.
    """
    expected, problems = _expected(tensors, build, config, file), list(problems)
    problems += [f"  missing: {names.published(k)} {tuple(expected[k].shape)}" for k in expected if k not in tensors]
    for ours, tensor in tensors.items():
        theirs = names.published(ours)
        if ours not in expected:
            problems.append(f"  unexpected: {theirs} (config.json says {config.depth} blocks)")
        elif tensor.shape != expected[ours].shape:
            shapes = f"is {tuple(tensor.shape)} and should be {tuple(expected[ours].shape)}"
            problems.append(f"  wrong shape: {theirs} {shapes}")
        elif tensor.layout != torch.strided or not tensor.is_floating_point() or tensor.is_meta:
            problems.append(f"  no weights: {theirs} holds {tensor.dtype}, {tensor.layout}, on {tensor.device}")
    if problems:
        raise ValueError(f"{file} does not fit the model of config.json:\n" + "\n".join(problems))
    weights = {ours: tensor.to(torch.float32).contiguous() for ours, tensor in tensors.items()}
    strange = [
        f"  {names.published(ours)}: {int((~tensor.isfinite()).sum())} of {tensor.numel()}"
        for ours, tensor in weights.items()
        if not torch.stack(tensor.aminmax()).isfinite().all()  # the smallest and largest entry tell of both
    ]
    if strange:
        raise ValueError(
            f"{file} holds NaN or infinity where weights should be. It is damaged, or of a training that diverged:\n"
            + "\n".join(strange)
        )
    return weights


def _expected(tensors, build, config, file):
    """{our name: tensor without content}: what a file for this config holds."""
    blocks = len({ours.split(".")[1] for ours in tensors if ours.startswith("blocks.")})
    if config.depth > blocks + 100:  # a damaged config.json may ask for more than there is memory to describe
        raise ValueError(
            f"{file} does not fit the model of config.json: it has {blocks} blocks, and config.json"
            f" says {config.depth}."
        )
    try:
        with torch.device("meta"):
            return build(config).state_dict()
    except (RuntimeError, OverflowError, TypeError) as problem:  # sizes beyond what a tensor can have
        raise ValueError(f"config.json is damaged: no model has such sizes ({first_line(problem)}).") from None


def assembled(
    build: Callable[[Any], Model], config: Any, weights: Tensors, device: torch.device | str | None = None
) -> Model:
    """build(config) with these weights (...), in evaluation mode, all of it ready to be trained."""
    with torch.device("meta"):  # shapes alone: the weights are there already
        model = build(config)
    model.load_state_dict({name: tensor.to(device or "cpu") for name, tensor in weights.items()}, assign=True)
    return model.requires_grad_(True).eval()


def published_tensors(model: nn.Module, names: TensorNames) -> Tensors:
    """A model's tensors (...) under the Hub's names, on the processor, without gradients."""
    state = model.state_dict().items()
    return {names.published(unwrapped(name)): tensor.detach().cpu().contiguous() for name, tensor in state}
