"""The small GPT-2s as a page has them: with weights that were rounded to int8."""

from __future__ import annotations

from helpers.parts import gpt2
from helpers.site import pocket_export as pocket


def rounded_copy(model: gpt2.GPT2) -> gpt2.GPT2:
    """A copy of the model with the weights that the page has: rounded to int8, and multiplied out again."""
    copy = gpt2.GPT2(model.config).eval()
    weights = {}
    for name, tensor in model.state_dict().items():
        weights[name] = tensor
        if tensor.dim() == 2:
            integers, scales = pocket.as_int8(tensor)
            weights[name] = integers * scales[:, None]
    copy.load_state_dict(weights)
    return copy
