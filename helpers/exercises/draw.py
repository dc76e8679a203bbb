"""Drawn inputs: the same numbers for the same seed, on every machine, for ever."""

from __future__ import annotations

import hashlib
import math
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.random import RandomState  # `import numpy` alone puts this import off

REMEMBERED = 4096  # entries of a tensor at most, and a thousand such tensors: 16 MB


_free: list[RandomState] = []  # to make one takes sixteen times as long as to seed it


class Draw:
    """A source of random inputs for one aspect of one exercise.

    The numbers come from NumPy's ``RandomState``, whose stream is frozen (NEP 19), and not from torch,
    whose normal numbers differ between processors: a key that was made on one machine has to fit a
    student's answer on another. Tensors are on the CPU, where exams are marked.

    seed: any integer or string. names: what the numbers are for; other names give other numbers.
    """

    device = torch.device("cpu")
    material: Any = None
    """What an open task is tried on (see `open_task.Material`)."""

    def __init__(self, seed: int | str, *names: str):
        self._words = (str(seed), *names)

    @cached_property
    def _random(self) -> RandomState:
        digest = hashlib.sha256("/".join(self._words).encode()).digest()
        state = _free.pop() if _free else RandomState(0)
        state.seed(np.frombuffer(digest, dtype=np.uint32))
        return state

    def __del__(self):
        if "_random" in self.__dict__ and _free is not None:  # None when Python ends
            _free.append(self._random)

    def named(self, name: str) -> Draw:
        """A source of its own for `name`: what it gives does not depend on what was drawn before."""
        return Draw(*self._words, name)

    def weights(self, name: str, *shape: int) -> torch.Tensor:
        """Normal numbers of the given shape for the parameter `name`, as `named(name).normal(*shape)` gives them.

        Small ones are remembered: every variant of a solution is filled with the same.
        """
        if math.prod(shape) > REMEMBERED:
            return self.named(name).normal(*shape)
        return _weights(self._words, name, shape).clone()

    def _tensor(self, array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
        return torch.as_tensor(array, dtype=dtype)

    def normal(
        self, *shape: int, mean: float = 0.0, std: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        """Independent normal numbers of the given shape."""
        return self._tensor(mean + std * self._random.standard_normal(shape), dtype)

    def heavy(self, *shape: int, most: float = 20.0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Independent numbers of the given shape, of which one in twenty is ten times a normal one; |x| ≤ most."""
        scale = 1.0 + 9.0 * (self._random.uniform(0, 1, shape) < 0.05)
        return self._tensor(np.clip(scale * self._random.standard_normal(shape), -most, most), dtype)

    def uniform(self, low: float, high: float, *shape: int) -> torch.Tensor:
        """Independent uniform numbers in [low, high) of the given shape."""
        return self._tensor(self._random.uniform(low, high, shape), torch.float32)

    def integers(self, low: int, high: int, *shape: int) -> torch.Tensor:
        """Independent integers in [low, high) of the given shape, as int64."""
        return self._tensor(self._random.randint(low, high, shape), torch.int64)

    def permutation(self, count: int, cycle: bool = False) -> torch.Tensor:
        """The numbers 0 to count − 1 in a drawn order (count,).

        cycle: draw a single cycle of full length, which is never the identity and never its own inverse
        for count > 2; a wrong answer that mixes up an order and its inverse shows then.
        """
        order = self._random.permutation(count)
        if cycle:
            following = np.empty_like(order)
            following[order] = np.roll(order, -1)
            order = following
        return self._tensor(order, torch.int64)

    def mask(self, chance: float, *shape: int) -> torch.Tensor:
        """Independent booleans of the given shape, True with the given chance."""
        return self._tensor(self._random.uniform(0, 1, shape) < chance, torch.bool)

    def number(self, low: int, high: int) -> int:
        """One integer in [low, high)."""
        return int(self._random.randint(low, high))


@lru_cache(maxsize=1000)
def _weights(words: tuple[str, ...], name: str, shape: tuple[int, ...]) -> torch.Tensor:
    return Draw(*words, name).normal(*shape)
