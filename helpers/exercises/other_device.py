"""A device other than the CPU, simulated on the CPU.

PyTorch's own stand-in, the device `meta`, has no numbers, so code that reads one fails there for a reason of its own.
Most of its operators are Python, which makes them slow, and the first one imports 800 modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import torch
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

THERE, HERE = torch.device("meta"), torch.device("cpu")
MIXED = f"Expected all tensors to be on the same device, but found at least two devices, {THERE} and {HERE}!"
NO_NUMPY = (
    f"can't convert {THERE} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
)

_DEVICE = torch.Tensor.device.__get__  # type: ignore[attr-defined]
_TO_NUMPY = (torch.Tensor.numpy, torch.Tensor.__array__)
_SET_DATA = torch.Tensor.data.__set__  # type: ignore[attr-defined]
_MAY_MIX = (  # these copy from one device to another, or move a module
    torch.Tensor.copy_,
    torch.Tensor.__setitem__,
    torch.Tensor.__getitem__,
    torch._has_compatible_shallow_copy_type,
    _SET_DATA,
)


class OtherDevice(TorchFunctionMode):
    """Within the block, tensors that were `moved` report the device `THERE`. So do tensors computed from them.

    A tensor that is created without a device is on the CPU. An operation raises RuntimeError where its tensors are on
    both devices, except where real devices allow it: it copies, indexes, or reads a tensor without axes on the CPU.

    A tensor is where its memory is, so a view, or a parameter made of a tensor, is where that tensor is.
    """

    def __init__(self):
        super().__init__()
        self._there: dict[int, torch.Tensor] = {}  # by memory; the tensors are kept, so that none is used again

    def moved(self, value: Any) -> Any:
        """Put tensors, also those of modules and in lists, on the other device. Returns what was given."""
        self._there |= {_memory(tensor): tensor for tensor in _tensors(value)}
        return value

    def device_of(self, tensor: torch.Tensor) -> torch.device:
        """Where a tensor is."""
        return THERE if _memory(tensor) in self._there else HERE

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if function == _DEVICE:
            return self.device_of(args[0])
        if function in (torch.Tensor.to, torch.Tensor.cpu):
            return self._copied(function, *args, **kwargs)
        where = self._where(function, args, kwargs)
        if where == THERE and function in _TO_NUMPY and not kwargs.get("force"):
            raise TypeError(NO_NUMPY)
        if kwargs.get("device") is not None and function is not torch._C._nn._parse_to:
            where, kwargs = torch.device(kwargs["device"]), {**kwargs, "device": HERE}
        result = function(*args, **kwargs)
        return self.moved(result) if where == THERE else result

    def _where(self, function: Callable, args: tuple, kwargs: dict) -> torch.device:
        """Where the result is, if the call names no device."""
        if function in _MAY_MIX:
            return self.device_of(args[0])
        if function in _device_constructors():  # torch.arange(x.max()) is on the CPU; torch.tensor(x) is where x is
            args, kwargs = tuple(each for each in args[:1] if is_tensor(each) and each.dim()), {}
        tensors = list(_tensors((args, tuple(kwargs.values()))))
        there = any(self.device_of(tensor) == THERE for tensor in tensors)
        if there and any(tensor.dim() and self.device_of(tensor) == HERE for tensor in tensors):
            raise RuntimeError(MIXED)
        return THERE if there else HERE

    def _copied(self, function: Callable, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """The result of Tensor.to or Tensor.cpu: a copy where it changes the device."""
        before = where = self.device_of(tensor)
        if function is torch.Tensor.cpu:
            where = HERE
        for goal in (*args, *kwargs.values()):
            if is_tensor(goal):
                where = self.device_of(goal)
            elif isinstance(goal, (str, torch.device)):
                where = torch.device(goal)
        args = tuple(_on_the_cpu(each) for each in args)
        result = function(tensor, *args, **{name: _on_the_cpu(each) for name, each in kwargs.items()})
        if where != before and _memory(result) == _memory(tensor):
            result = result.clone()
        return self.moved(result) if where == THERE else result


def _on_the_cpu(argument: Any) -> Any:
    return HERE if isinstance(argument, (str, torch.device)) else argument


def is_tensor(value: Any) -> TypeGuard[torch.Tensor]:
    """Is it one? An object that only says so would end the process where torch is asked about its memory."""
    return issubclass(type(value), torch.Tensor)


def _memory(tensor: torch.Tensor) -> int:
    """What stands for a tensor's memory; for the tensor itself where it is sparse, or hides its memory."""
    try:
        while is_functorch_wrapped_tensor(tensor):  # within torch.vmap and the like
            tensor = get_unwrapped(tensor)
        return tensor.untyped_storage()._cdata
    except Exception:
        return -id(tensor)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """A tensor, a module's parameters and buffers, and those in lists and tuples of them."""
    if is_tensor(value):
        yield value
    elif issubclass(type(value), torch.nn.Module):
        yield from value.parameters()
        yield from value.buffers()
    elif issubclass(type(value), (tuple, list)):
        for each in value:
            yield from _tensors(each)
