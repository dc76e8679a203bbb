"""What the commonest errors of torch mean, in a sentence each. The error itself is shown beside it."""

from __future__ import annotations

import re

from helpers.exercises.aspects import ON_WHICH_DEVICE

IN_PLACE = (
    "(with +=, an assignment to x[...], or a method whose name ends in _). Make a new tensor instead: x = x + y for "
    "x += y, torch.where or torch.stack for an assignment, the method without the _ at its end."
)
MEANINGS: tuple[tuple[str, str], ...] = (
    (
        r"modified by an inplace operation|a leaf Variable that requires grad|view of a leaf Variable",
        f"Your code writes over a tensor that is still needed to compute gradients {IN_PLACE}",
    ),
    (
        r"is a view and is being modified inplace|is being modified inplace with grad mode",
        f"Your code writes over a view of another tensor, which autograd does not allow here {IN_PLACE}",
    ),
    (
        r"does not require grad and does not have a grad_fn",
        "A gradient is asked for where none was recorded: under no_grad, in a Function without enable_grad, after"
        " detach(), or because nothing that went in requires one.",
    ),
    (
        r"grad can be implicitly created only",
        "backward() needs a single number, or a gradient for every entry of the tensor that it starts from.",
    ),
    (
        r"backward through the graph a second time",
        "The same computation was gone through backwards twice, as a whole or in a part that two of them share. Compute"
        " it anew for each, and detach() what comes from outside.",
    ),
    (r"Can't call numpy\(\) on Tensor that requires grad", "NumPy computes no gradients. Stay in torch."),
    (
        r"same device|expected device meta|is not on the expected device|on meta and its indices",
        f"Two tensors are on different devices. {ON_WHICH_DEVICE}",
    ),
    (
        r"mat1 and mat2 shapes|mat1 and mat2 must be|batch2 tensor to be|size mismatch|mat\d? must be a matrix|"
        r"vector [@*] matrix|inconsistent tensor size",
        "A matrix product needs the last axis of the left tensor to be as long as the second-to-last of the right one.",
    ),
    (
        r"The size of tensor a \(|must match the existing size|is not broadcastable|shape mismatch|"
        r"broadcast|does not match the shape of the indexed tensor|expanded size",
        "The shapes do not fit together: along each axis, lengths have to be equal, or one of them 1.",
    ),
    (
        r"shape '\[.*\]' is invalid for input",
        "The new shape needs another number of entries than the tensor has.",
    ),
    (
        r"view size is not compatible",
        "view() cannot be used on a tensor whose axes were exchanged: use reshape(), or contiguous() before it.",
    ),
    (
        r"Sizes of tensors must match except|stack expects each tensor|same number of dimensions",
        "Tensors that are joined need the same shape; for torch.cat, they may differ along the axis of joining.",
    ),
    (r"einsum\(", "The letters of the einsum do not fit the shapes of the tensors."),
    (r"index out of range in self", "An index is not below the number of rows in the embedding's table."),
    (r"index -?\d+ is out of bounds", "An index is not below the length of the axis."),
    (r"Dimension out of range", "The tensor has no axis of that number."),
    (
        r"same dtype|expected scalar type|can't be cast to|tensors used as indices must be|"
        r"to have one of the following scalar types",
        "Two types of numbers meet where one is needed: look at where float, int64 (long) and bool come from.",
    ),
    (
        r"only implemented on integer and Boolean|only supports boolean masks|mask .* must be bool",
        "A mask has to hold booleans.",
    ),
    (
        r"more than one value is ambiguous",
        "if, while, and, or need a single truth value, and the tensor holds many. For each entry by itself there are"
        " torch.where, & and |; whether something is None is asked with `is None`.",
    ),
    (
        r"cannot be converted to Scalar|only one element tensors can be converted",
        "A single number is needed, and the tensor holds several.",
    ),
)


def meaning(error: str) -> str:
    """What an error ("RuntimeError: ...") means; "" for one that is not known or says it itself."""
    kind, _, text = error.partition(": ")
    if kind not in ("RuntimeError", "IndexError", "ValueError", "TypeError"):
        return ""
    return next((words for pattern, words in MEANINGS if re.search(pattern, text)), "")
