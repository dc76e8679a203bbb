"""What PyTorch does not check, and what would end a kernel instead of raising."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.overrides import TorchFunctionMode


class LengthsAgree(TorchFunctionMode):
    """Lets `scaled_dot_product_attention` raise where keys and values are of different lengths.

    On the CPU, without a mask, PyTorch 2.13 reads on past the end of the shorter one, and on the way back writes there:
    sooner or later the process dies, and a student's unsaved work with it.
    """

    def __torch_function__(
        self, function: Callable, types: object, arguments: tuple = (), options: dict | None = None
    ) -> object:
        options = options or {}
        if getattr(function, "__name__", "") == "scaled_dot_product_attention":
            given = dict(zip(("query", "key", "value"), arguments, strict=False)) | options
            _require_equal_lengths(given.get("key"), given.get("value"))
        return function(*arguments, **options)


def _require_equal_lengths(key: object, value: object) -> None:
    if isinstance(key, torch.Tensor) and isinstance(value, torch.Tensor) and min(key.dim(), value.dim()) > 1:
        keys, values = key.shape[-2], value.shape[-2]
        if keys != values:
            raise RuntimeError(
                f"there are {keys} keys and {values} values, and each key needs a value: key has the shape"
                f" {tuple(key.shape)}, value {tuple(value.shape)}"
            )
