"""How much work an answer does: operations of PyTorch, and the largest tensor that they make.

Attention in windows, chunks and tiles computes what ordinary attention computes. What sets it apart is seen here alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from helpers.exercises.aspects import Fault, Inputs, InTorch
from helpers.exercises.exercise import Probe

LONG = 256  # positions


class Operations(TorchDispatchMode):
    """Counts PyTorch's operations, and keeps the size of the largest tensor that they make, in entries.

    A view is as large as what it views. description: the type and shape of that tensor.
    """

    def __init__(self):
        super().__init__()
        self.count = 0
        self.largest = 0
        self.description = ""

    def __torch_dispatch__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Calls the function, and looks at every tensor that it returns."""
        self.count += 1
        returned = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(returned):
            if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided:
                entries = tensor.untyped_storage().nbytes() // tensor.element_size()
                if entries > self.largest:
                    self.largest = entries
                    self.description = f"of shape {tuple(tensor.shape)} and type {str(tensor.dtype)[6:]}"
        return returned


def operations_of(function: Callable, *arguments: object) -> Operations:
    """The operations of one call. Raises Fault where it takes numbers out of PyTorch."""
    with InTorch(), Operations() as operations:
        function(*arguments)
    return operations


def no_square(inputs: Callable[[int], Inputs], sizes: tuple[int, int], name: str) -> Probe:
    """With LONG positions and a drawn size of window, chunk or tile, no tensor has half of t² entries or more.

    inputs: the arguments for LONG positions and that size. sizes: the least one, and the first that is too large.
    name: what the student calls it.
    """

    def probe(answer, draw):
        size = draw.number(*sizes)
        operations = operations_of(answer, *inputs(size)(draw))
        if operations.largest >= LONG * LONG // 2:
            raise Fault(
                f"With t = {LONG} and {name} = {size}, your code makes a tensor {operations.description}, with"
                f" {operations.largest:,} entries in memory. That is room for all pairs at once (t² is"
                f" {LONG * LONG:,}), which this function is there to avoid, in scores and in masks."
            )
        return torch.tensor([1])

    return probe


def whole_part_at_once(inputs: Callable[[int], Inputs], told: str) -> Probe:
    """With parts four times as large, less than two thirds of the operations are left; a quarter may be.

    inputs: the arguments for parts of a size. told: what to say otherwise, with {few} and {many} operations for parts
    of {large} and {small}.
    """

    def probe(answer, draw):
        small = draw.number(6, 9)
        large = 4 * small
        many, few = (operations_of(answer, *inputs(size)(draw)).count for size in (small, large))
        if few >= 2 / 3 * many:
            raise Fault(told.format(few=f"{few:,}", many=f"{many:,}", small=small, large=large))
        return torch.tensor([1])

    return probe
