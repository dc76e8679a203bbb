"""What the commonest errors of torch mean, in a sentence each. The error itself is shown beside it."""

from __future__ import annotations

import re

IN_PLACE = (
    "(with +=, an assignment to x[...], or a method whose name ends in _). Make a new tensor instead: x = x + y for "
    "x += y, torch.where or torch.stack for an assignment, the method without the _ at its end."
)
KINDS = ("RuntimeError", "IndexError", "ValueError", "TypeError", "AttributeError", "InductorError")
MEANINGS: tuple[tuple[str, str], ...] = (
    (
        r"^(PermissionError|RuntimeError: can't start new thread)",  # of an InductorError
        "The compiler behind torch.compile starts processes, and in an exam an answer starts none. Leave torch.compile"
        ' out, or write torch.compile(backend="eager"), which compiles nothing.',
    ),
    (
        r"modified by an inplace operation|a leaf Variable that requires grad|being modified inplace|"
        r"more than one element of the written-to tensor",
        f"Your code writes over a tensor that is still needed, or that shares its memory with another {IN_PLACE}",
    ),
    (
        r"does not require grad",
        "A gradient is asked for where none was recorded: under no_grad, in a Function without enable_grad, after"
        " detach(), or of what needs none.",
    ),
    (
        r"backward through the graph a second time",
        "The same computation was gone through backwards twice, as a whole or in a part that two of them share. Compute"
        " it anew for each, and detach() what comes from outside.",
    ),
    (r"einsum\(", "The letters of the einsum do not fit the shapes of the tensors."),
    (
        r"mat1 and mat2|batch2 tensor to be|size mismatch|mat\d? must be a matrix|vector [@*] matrix|inconsistent",
        "A matrix product needs the last axis of the left tensor to be as long as the second-to-last of the right one.",
    ),
    (
        r"The size of tensor a \(|match the existing size|broadcast|shape mismatch|shape of the indexed|expanded size",
        "The shapes do not fit together: along each axis, lengths have to be equal, or one of them 1.",
    ),
    (
        r"Expected input batch_size|For \dD input, \dD target",
        "F.cross_entropy takes logits (b, n) with targets (b,), or logits (b, n, t) with targets (b, t).",
    ),
    (r"shape '\[.*\]' is invalid", "The new shape needs another number of entries than the tensor has."),
    (r"view size is not compatible", "view() cannot be used where axes were exchanged: use reshape()."),
    (
        r"Sizes of tensors must match except|stack expects each tensor|same number of dimensions",
        "Tensors that are joined need the same shape; for torch.cat, they may differ along the axis of joining.",
    ),
    (r"can't start new thread", "In an exam, an answer starts no thread and no process."),
    (r"expected a non-empty list|non-empty TensorList", "The list of tensors that are to be joined is empty."),
    (r"expected sequence of length", "The lists that are to become one tensor have different lengths."),
    (
        r"too many indices|cannot be applied to a 0-dim|to be at least 1D|only supported on matrices|Dimension out",
        "The tensor has fewer axes than your code expects. Look for squeeze(), and for what leaves an axis out.",
    ),
    (r"selected index k out of range", "topk was asked for more entries than there are along the axis."),
    (r"maximum size for tensor at dimension", "unfold was asked for pieces that are longer than the axis."),
    (r"index out of range in self", "An index is not below the number of rows in the embedding's table."),
    (r"index -?\d+ is out of bounds", "An index is not below the length of the axis."),
    (
        r"same dtype|expected scalar type|can't be cast|tensors used as indices must|not implemented for '[A-Z]|"
        r"to have one of the following scalar types|infer output dtype|share same datatype",
        "Another type of numbers is needed: look at where float, int64 (long) and bool come from.",
    ),
    (r"integer and Boolean|boolean masks|must be bool|to be a boolean tensor", "A mask has to hold booleans."),
    (
        r"more than one value is ambiguous",
        "if, while, and, or need a single truth value, and the tensor holds many. For each entry by itself there are"
        " torch.where, & and |; whether something is None is asked with `is None`.",
    ),
    (r"converted to Scalar|only one element tensors", "A single number is needed, and the tensor holds several."),
    (r"NoneType", "Something is None here: what was left out, or what a function without a return gives back."),
    (r"values to unpack", "There are not as many names on the left as things, or axes of a shape, on the right."),
    (r"before Module\.__init__", "The constructor of a module begins with super().__init__()."),
    (r"'(tuple|list|dict|int|float|bool|str)' object has no attribute", "What is before the dot is no tensor."),
    (r"'(?!Tensor)\w+' object has no attribute", "No attribute of that name was set. Look at its spelling."),
)


def meaning(error: str) -> str:
    """What an error ("RuntimeError: ...") means; "" for one that is not known or says it itself."""
    kind, _, text = error.partition(": ")
    if kind not in KINDS:
        return ""
    return next((words for pattern, words in MEANINGS if re.search(pattern, text)), "")
