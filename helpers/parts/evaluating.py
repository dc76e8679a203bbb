"""Evaluation mode for a while: what decoding and measuring need, and what they must not leave behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch import nn


@contextlib.contextmanager
def evaluating(model: nn.Module) -> Iterator[nn.Module]:
    """Evaluation mode in the block, and afterwards every part of the model in the mode that it was in before.

    However the block ends: by an error, or by the stop button. Each submodule has its own mode back, so that a layer
    that was held in evaluation mode while the rest trains stays so.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield model
    finally:
        for module, training in modes:
            module.training = training
