"""Ready-made aspects. Each takes `inputs`, a function from a `Draw` to a tuple of arguments.

`via` says how to get from what the student wrote to something that can be called on the arguments:
nothing to do for a function; `built(...)` makes a module and gives it drawn weights.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from helpers.exercises.behaviour import copies, note_dependence
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Aspect, Kind
from helpers.exercises.other_device import HERE, THERE, OtherDevice, is_tensor
from helpers.exercises.tensor_names import GRADIENT, INPUT, LARGER, RESULT, gradient_of, in_case, numbered
from helpers.exercises.tolerance import GRADIENTS, WHOLE

Inputs = Callable[[Draw], tuple]
Via = Callable[[Answer, Draw], Any]
Others = Mapping[str, Inputs]  # further inputs of the same aspect, by what is said of them: "with a batch of one"


MOST_RESULTS = 16  # things that one call returns; right answers return nine at most
LARGEST_RESULT = 1 << 18  # numbers of which a gradient is taken; the largest right answer has far fewer
LEFT_ALONE = "input left alone"
PROJECTIONS = 8
ON_WHICH_DEVICE = (
    "Give each tensor that you create the device of the inputs, device=x.device for a tensor x, or the `device` that is"
    " passed in."
)


class Fault(Exception):
    """A probe saw that the student's code does not do what it must. The text is for the student."""


class RaisedIn(Exception):
    """The student's code raised, which is the cause, on further inputs. The text says on which: "with ties"."""


class Forbidden(Fault):
    """The answer called a function that the exercise is there to replace. The text says what to write instead."""


class InTorch(TorchFunctionMode):
    """Raises Fault where an answer takes numbers out of PyTorch: what becomes of them there, no probe would see."""

    def __torch_function__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if getattr(function, "__name__", "") in ("numpy", "tolist", "__array__", "__dlpack__"):
            raise Fault("Your code takes numbers out of PyTorch (for NumPy, a list or a plot). Use tensors throughout.")
        return function(*args, **(kwargs or {}))


def kind_of(value: object) -> str:
    """What came back, in a word."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def as_is(answer: Answer, draw: Draw) -> Callable:
    """A function is called as it stands."""
    return answer


def built(*sizes: object, **options: object) -> Via:
    """Make a module with these arguments and fill its parameters with drawn numbers, by name.

    Two modules with parameters of the same names and shapes get the same weights, in whatever order
    they were made. A module that is not asked for dropout is left in training mode, where it shows dropout that
    nobody asked for.
    """

    def via(answer, draw: Draw):
        module = answer(*sizes, **options)
        if not isinstance(module, torch.nn.Module):
            raise Fault(f"Calling your class gives {kind_of(module)}; it has to be a torch.nn.Module.")
        return fill(module.to(draw.device), draw).train(not _takes_dropout(answer))

    return via


def _takes_dropout(answer: Answer) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        return "dropout" in inspect.signature(answer).parameters
    return True


def fill(module: torch.nn.Module, draw: Draw) -> torch.nn.Module:
    """Fill every parameter with drawn numbers that depend on its name and shape alone."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            width = parameter.shape[-1] if parameter.dim() > 1 else 4
            parameter.copy_(draw.weights(name, *parameter.shape) / width**0.5)
    return module


def values(
    points: float,
    inputs: Inputs,
    *,
    name: str = "values",
    via: Via = as_is,
    also: Others | None = None,
    larger: Inputs | None = None,
    **policy: Any,
) -> Aspect:
    """The result on drawn inputs is the right one, and on every further set of inputs of `also`.

    larger: one set of inputs that is much larger than all others, of sizes that are drawn. Of its result random
    projections are compared, so that little is sent. An answer that uses the first five columns, or holds a table of
    64, is right on small inputs alone.
    """

    axes = policy.get("axes", "").split()

    def probe(answer, draw):
        call, arguments = via(answer, draw), inputs(draw)
        kept = copies(arguments)
        returned = first = call(*arguments)
        if cases := {**(also or {}), **({LARGER: larger} if larger else {})}:
            returned = together(returned, cases, draw, lambda further: call(*further))
        note_dependence(call, kept, first, axes)
        return returned

    return Aspect(name, points, probe, **policy)


def gradient(
    points: float,
    inputs: Inputs,
    *,
    name: str = "gradient",
    via: Via = as_is,
    also: Others | None = None,
    weights: bool | tuple[str, ...] = False,
    **policy: Any,
) -> Aspect:
    """Gradients flow back to the inputs, and are the right ones.

    The result is multiplied with drawn numbers of its own shape and summed, so that every entry counts.
    weights: the gradients of a module's parameters, by their names, are looked at too: of all, or of those named.
    """

    def probe(answer, draw):
        call = via(answer, draw)
        learned = _learned(call, weights)

        def gradients(arguments: tuple) -> object:
            return _gradients(call, arguments, learned, draw)

        returned = gradients(inputs(draw))
        return returned if not also else together(returned, also, draw, gradients)

    policy.setdefault("rtol", GRADIENTS.rtol)
    policy.setdefault("atol", GRADIENTS.atol)
    return Aspect(name, points, probe, kind=Kind.GRADIENT, **policy)


def _learned(call: Answer, weights: bool | tuple[str, ...]) -> dict[str, torch.Tensor]:
    """The parameters whose gradients are looked at, by name; Fault where the module has none of a name."""
    there = dict(call.named_parameters()) if weights else {}
    for name in () if isinstance(weights, bool) else weights:
        if name not in there:
            raise Fault(f"Your module has no parameter called {name}, whose gradient is looked at here.")
    return there if isinstance(weights, bool) else {name: there[name] for name in weights}


def together(returned: object, also: Others, draw: Draw, call: Callable[[Any], object]) -> object:
    """What was returned for the first inputs, and for the further ones under what is said of them.

    call: gives what is returned for further inputs. Of the larger case there are projections.
    """
    first = list(itertools.islice(by_name(returned), MOST_RESULTS + 1))  # a dict of somebody's own may have no end
    of_a_kind = all(isinstance(value, (torch.Tensor, bool, int, float)) for _, value in first)
    if not of_a_kind or not 0 < len(first) <= MOST_RESULTS:
        return returned  # not even the first inputs gave tensors; that is told without more ado
    results = dict(first)
    for said, inputs in also.items():
        try:
            further = call(inputs(draw.named(said)))
        except Fault as fault:
            text = str(fault)
            raise type(fault)(f"{said[0].upper()}{said[1:]}: {text}") from None
        except Exception as problem:
            raise RaisedIn(said) from problem
        for name, value in itertools.islice(by_name(further), MOST_RESULTS):
            results[in_case(said, name)] = projected(value, draw) if said == LARGER else value
    return results


def projected(value: object, draw: Draw) -> object:
    """Eight random projections of a tensor, whose directions depend on its shape; a number or no tensor, as it is.

    Of floating-point numbers, sums with normal weights in double precision (8,), in units of the square root of how
    many there are. Of whole numbers and truth values, sums with odd weights modulo 2⁶⁴ (8,), which are the same only
    where every entry is. A number that is not finite stands for a number of its own; of nothing finite, eight NaN.
    """
    if not isinstance(value, torch.Tensor) or not _ordinary(value) or value.is_complex() or value.numel() < 2:
        return value
    weights, count = draw.named(f"projection {tuple(value.shape)}"), value.numel()
    with torch.no_grad():
        flat = value.detach().cpu().reshape(1, -1).to(torch.float64)
        if not flat.isfinite().any():
            return torch.full((PROJECTIONS,), torch.nan, dtype=torch.float64)  # eight equal numbers name no mistake
        flat = torch.nan_to_num(flat, nan=0.71, posinf=77.3, neginf=-55.9)
        if bool(((flat - flat.round()).abs() <= WHOLE).all()):  # also where they are floating-point numbers
            odd = 2 * weights.integers(0, 1 << 62, count + PROJECTIONS - 1) + 1
            return (flat.round().to(torch.int64) * odd.unfold(0, count, 1)).sum(1)
        drawn = weights.normal(count + PROJECTIONS - 1, dtype=torch.float64).unfold(0, count, 1)
        return (flat * drawn).sum(1) / count**0.5


def by_name(returned: object) -> Iterator[tuple[str, object]]:
    """What was returned, thing by thing, each with a name. Asks the student's object once."""
    if isinstance(returned, dict):
        yield from returned.items()
    elif isinstance(returned, tuple) and len(returned):
        yield from ((numbered(RESULT, place), value) for place, value in enumerate(returned))
    else:
        yield RESULT, returned


def _gradients(call: Callable, inputs: tuple, learned: Mapping[str, torch.Tensor], draw: Draw) -> object:
    """The gradients for the inputs of floating point and for what is learned, or what came that has none."""
    arguments = [_requiring_grad(argument) for argument in inputs]
    leaves = {numbered(GRADIENT, place): a for place, a in enumerate(a for a in arguments if _is_float(a))}
    frozen = [name for name, parameter in learned.items() if not parameter.requires_grad]
    if frozen:
        raise Fault(f"{frozen[0]} is a parameter that does not learn: its requires_grad is False.")
    leaves |= {gradient_of(name): parameter for name, parameter in learned.items()}
    # copies go in: torch refuses to change a leaf in place, and that is another aspect's business
    result = call(*(argument.clone() if _is_float(argument) else argument for argument in arguments))
    if isinstance(result, (dict, tuple, list)) and result:
        raise Fault(f"Your code returns a {type(result).__name__} of {len(result)} things; one tensor is needed.")
    if not isinstance(result, torch.Tensor) or not _ordinary(result):
        return result  # what it is instead is told without a gradient
    if not result.requires_grad:
        raise Fault(
            "No gradient flows from your result back to the input. The input is not used, or something cuts the graph: "
            "detach(), .data, no_grad(), item(), or a trip through NumPy or a list of numbers."
        )
    draws = draw.named("cotangent").normal(*result.shape).to(result.dtype)
    grads = torch.autograd.grad((result * draws).sum(), list(leaves.values()), allow_unused=True)
    pairs = zip(leaves.items(), grads, strict=True)
    return {name: torch.zeros_like(leaf) if grad is None else grad for (name, leaf), grad in pairs}


def input_left_alone(points: float, inputs: Inputs, *, via: Via = as_is) -> Aspect:
    """The arguments hold the same numbers after the call as before."""

    def probe(answer, draw):
        arguments = inputs(draw)
        via(answer, draw)(*arguments)
        held = {numbered(INPUT, place): _held_by(argument) for place, argument in enumerate(arguments)}
        return {name: tensor for name, tensor in held.items() if tensor is not None}

    return Aspect(
        LEFT_ALONE,
        points,
        probe,
        side=True,
        kind=Kind.ARGUMENT,
        missed=(
            "Your code changes its input in place: after the call, the caller's own tensor holds other "
            "numbers. Look for +=, -=, *=, /=, an assignment to x[...], or a method whose name ends in _."
        ),
    )


def _held_by(argument: Any) -> torch.Tensor | None:
    """The numbers of a tensor, or of a dict of tensors, one after the other; None for anything else."""
    if isinstance(argument, Mapping):
        tensors = [tensor for tensor in argument.values() if isinstance(tensor, torch.Tensor)]
        return torch.cat([tensor.detach().flatten().double() for tensor in tensors]) if tensors else None
    return argument if isinstance(argument, torch.Tensor) else None


ON_THE_CPU_ONLY = (
    "Your code works on the CPU only: a tensor is created without a device, or a layer is in a plain list"
    f" or dict, where the module does not find it. {ON_WHICH_DEVICE}"
)


def any_device(
    points: float, inputs: Inputs, *, via: Via = as_is, also: Others | None = None, missed: str = ON_THE_CPU_ONLY
) -> Aspect:
    """The code makes no tensor on a device of its own choice, for these inputs and for those of `also`.

    Tried on a simulated device (see `OtherDevice`): a tensor that was made without a device lands on the CPU, and the
    two do not mix.
    """

    def probe(answer, draw):
        _on_another_device(answer, draw, inputs, via)
        for case, further in (also or {}).items():
            _on_another_device(answer, draw.named(case), further, via)
        return torch.tensor([1])

    return Aspect("any device", points, probe, side=True, missed=missed)


def _on_another_device(answer: Answer, draw: Draw, inputs: Inputs, via: Via) -> None:
    """One call with inputs on another device. It raises where the result is elsewhere, or where devices do not mix.

    A call on the CPU comes first, with the same inputs: what an answer keeps from it is on the wrong device.
    """
    other, call, arguments = OtherDevice(), via(answer, draw), inputs(draw)
    call(*(HERE if isinstance(each, torch.device) else each for each in copies(arguments)))
    there, moved = other.moved(call), [other.moved(each) for each in arguments]
    with other:
        result = there(*moved)
    if is_tensor(result) and other.device_of(result) != THERE:
        raise Fault(
            "Your result is on the wrong device: somewhere a tensor is created without saying on which device."
            f" {ON_WHICH_DEVICE}"
        )


def parameters(points: float, via: Via) -> Aspect:
    """The module has parameters of the right names and shapes."""

    def probe(answer, draw):
        lines = [f"{name} {tuple(p.shape)}" for name, p in via(answer, draw).named_parameters()]
        text = "\n".join(sorted(lines))
        return {"names and shapes": torch.tensor(list(text.encode()[:4000]), dtype=torch.uint8)}

    return Aspect("parameters", points, probe, side=True, kind=Kind.PARAMETERS)


def raises(
    points: float,
    inputs: Inputs,
    kind: type[Exception],
    *,
    name: str,
    via: Via = as_is,
    missed: str,
    mentions: tuple[str, ...] = (),
) -> Aspect:
    """Bad arguments are refused with the right kind of error.

    mentions: words that its message must hold, such as the offending number. An error of the right kind that something
    else raised by accident does not hold them.
    """

    def probe(answer, draw):
        arguments = inputs(draw)
        try:
            via(answer, draw)(*arguments)
        except kind as problem:
            if isinstance(problem, NotImplementedError):
                raise
            absent = [word for word in mentions if word not in str(problem)]
            if absent:
                raise Fault(
                    f"Your code raises {type(problem).__name__}, as it should. Its message has to name the values that "
                    f"do not fit: it does not contain {' or '.join(absent)}."
                ) from None
            return torch.tensor([1])
        raise Fault(missed)

    return Aspect(name, points, probe, side=True, missed=missed)


def evaluation_mode(points: float, used: Callable[[Answer, Draw, bool], Any]) -> Aspect:
    """A model is in evaluation mode while the answer uses it, and afterwards in the mode in which it came.

    used(answer, draw, training): makes a stand-in for a model in that mode, has the answer use it, and returns it; its
    `modes` say in which mode it was at each call.
    """

    def probe(answer, draw):
        for training in (True, False):
            model = used(answer, draw, training)
            came, other = ("training", "evaluation") if training else ("evaluation", "training")
            if not model.modes:
                raise Fault("Your function never calls the model.")
            if any(model.modes):
                raise Fault(f"A model that comes in {came} mode is in training mode while your code uses it.")
            if model.training != training:
                raise Fault(
                    f"A model that comes in {came} mode is left in {other} mode. Restore its mode: read"
                    " `model.training` before you change it."
                )
        return torch.tensor([1])

    return Aspect("evaluation mode", points, probe, side=True)


def renamed(aspect: Aspect, name: str, **policy: Any) -> Aspect:
    """The same aspect under another name."""
    return dataclasses.replace(aspect, name=name, **policy)


def _ordinary(result: torch.Tensor) -> bool:
    """Can as many numbers be drawn as it holds, and be multiplied with it?"""
    return result.layout is torch.strided and not result.is_nested and result.numel() <= LARGEST_RESULT


def _is_float(value) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _requiring_grad(value):
    return value.clone().requires_grad_() if _is_float(value) else value
