"""What an answer may use where its exercise says "write it yourself": what is allowed is written down, nothing else is.

*Operators.* Elementary ones, and those that the exercise names. Any other raises below Python, so that an alias, a
module of torch, a recorded program or a gradient meets it too: an operator with a kernel of its own in a dispatch mode,
a composite one, which torch takes apart before a mode sees it, by an override with the dispatcher.

*Python code of torch.* What `CODE` lists. What an answer runs beyond it is noticed, by file: a reason for an instructor
to look. So are operators of one's own and a look at torch's source, in any exercise.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import CodeType, FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.checking.syntax import spelled
from helpers.exercises.aspects import Forbidden
from helpers.exercises.exercise import Exercise

# Steps that nobody is asked to write by hand, beside torch's core and pointwise operators and its views
_ELEMENTARY = frozenset(
    """
    H T absolute add_batch_dim addbmm addmv addr adjoint allclose aminmax amp_update_scale and arccos arccosh arcsin
    arcsinh arctan arctan2 arctanh argsort argwhere assert_async atleast_1d atleast_2d atleast_3d baddbmm bernoulli
    bilinear bincount block_diag broadcast_tensors broadcast_to bucketize can_cast cartesian_prod cast_Byte
    cast_Char cast_Double cast_Float cast_Half cast_Int cast_Long cast_Short cat chain_matmul chunk clip
    column_stack combinations concat concatenate conj contiguous count_nonzero cross cummax cummin cumprod data
    debug_has_internal_overlap det detach diag diagflat diff dim dim_arange divide dot dropout dsplit dstack
    efficientzerotensor einsum embedding_dense empty empty_like equal expand expand_as exponential eye fill_diagonal
    fix flatten fliplr flipud float_power frobenius_norm functional_assert_async ger get_device greater
    greater_equal has_compatible_shallow_copy_type hsplit hstack iand ilshift imag index_add index_copy index_fill
    inner inverse ior irshift is_all_true is_any_true is_complex is_conj is_contiguous is_floating_point
    is_inference is_leaf is_neg is_nonzero is_same_size is_signed is_zerotensor isclose isfinite isin isreal item
    ixor kron kthvalue less less_equal lift_fresh linalg_diagonal linalg_matmul linalg_matrix_norm
    linalg_matrix_power linalg_multi_dot linalg_norm linalg_vecdot linalg_vector_norm linear linspace
    local_scalar_dense log_sigmoid logspace lshift mH mT masked_fill masked_select matmul matrix_H matrix_power max
    median meshgrid min mode moveaxis movedim msort multinomial multiply mv nanmean nanmedian nansum narrow negative
    new_empty new_empty_strided new_full new_ones new_zeros nll_loss_forward nonzero_numpy nonzero_static norm
    norm_except_dim normal not_equal numel numpy_T one_hot ones ones_like or outer output_nr pad pad_enum
    pad_sequence pin_memory positive promote_types put quantile rand_like randint randint_like randn_like random
    randperm range ravel real relu6 remove_batch_dim renorm repeat_interleave requires_grad reshape reshape_alias
    reshape_as reshape_from_tensor resize resolve_conj resolve_neg result_type retain_grad retains_grad roll rot90
    row_stack rshift rsub searchsorted selu set set_data shape_as_tensor size sort special_erf special_exp2
    special_expit special_expm1 special_log1p special_round special_xlogy split split_with_sizes_copy square stack
    std std_mean storage_offset stride subtract sum_to_size swapaxes swapdims sym_is_contiguous sym_numel sym_size
    sym_storage_offset sym_stride take take_along_dim tensor_split tensordot tile to to_copy to_cpu to_dense trace
    trapezoid trapz tril tril_indices triu triu_indices true_divide type_as unflatten unfold uniform unique2
    unique_consecutive unique_dim unsafe_chunk unsafe_index unsafe_split unsafe_view var var_mean vdot version
    view_as vsplit vstack where xor zero zeros zeros_like
    """.split()
)
_LAYERS = frozenset(
    "softmax log_softmax native_layer_norm native_group_norm native_batch_norm_legit"
    " native_batch_norm_legit_no_training adaptive_avg_pool2d adaptive_avg_pool3d cdist_forward pdist_forward".split()
)  # of torch's core operators, those that are whole layers

TORCH = os.path.join(os.path.dirname(torch.__file__), "")
# Files and folders of torch whose Python code an answer may run, and what in them it may not
CODE = tuple(
    """
    _VF.py __init__.py _classes.py _compile.py _dynamo/ _export/ _functorch/ _guards.py _jit_internal.py _library/
    _linalg_utils.py _logging/ _ops.py _prims_common/__init__.py _subclasses/ _tensor.py _tensor_str.py _utils.py
    accelerator/ amp/autocast_mode.py autograd/ backends/ compiler/ cuda/__init__.py func/ functional.py
    jit/_builtins.py jit/_state.py jit/_trace.py nn/functional.py nn/init.py nn/modules/_functions.py
    nn/modules/activation.py nn/modules/container.py nn/modules/dropout.py nn/modules/linear.py nn/modules/loss.py
    nn/modules/module.py nn/modules/normalization.py nn/modules/sparse.py nn/modules/utils.py nn/parameter.py
    overrides.py random.py return_types.py serialization.py storage.py torch_version.py types.py
    utils/_config_module.py utils/_contextlib.py utils/_device.py utils/_python_dispatch.py utils/_pytree.py
    utils/_traceback.py utils/hooks.py
    """.split()
)
_NOT_OF_THESE = ("MultiheadAttention", "multi_head_attention_forward", "_in_projection", "_scaled_dot_product")

RAN = "Your answer ran {}, which is PyTorch's own Python code. {}"
READ = "Your answer read {}, which is PyTorch's own source. No exercise needs that."
DEFINED = "Your answer defined operators with `torch.library`. No exercise needs that."
UNWATCHED = "While your answer ran, it took away what watches its operators. No exercise needs that."
CALLS = "Your code calls {}. {}"


@contextlib.contextmanager
def watched(exercise: Exercise) -> Iterator[list[str]]:
    """Within the block an answer may use what is allowed. Yields a list that is filled meanwhile: what was noticed.

    Sentences, seen from within the student's process, which can hide what it does: reasons to look, and no proof.
    """
    with listening(exercise) as noticed, restricted(exercise, noticed):
        yield noticed


@contextlib.contextmanager
def restricted(exercise: Exercise, noticed: list[str]) -> Iterator[None]:
    """Within the block, what is not allowed raises Forbidden, or is noticed."""
    with contextlib.ExitStack() as stack:
        if exercise.by_hand:
            stack.enter_context(_composites_raise(exercise.by_hand, exercise.operators))
            stack.enter_context(_code_is_noticed(exercise.by_hand, noticed))
            stack.enter_context(_Kernels(exercise.by_hand, exercise.operators, noticed))
        yield


# --------------------------------------------------------------------------------------------- operators


class _Kernels(TorchDispatchMode):
    """Raises Forbidden for each operator with a kernel of its own that is not allowed."""

    def __init__(self, says: str, operators: tuple[str, ...] | None, noticed: list[str]):
        super().__init__()
        self._says, self._operators, self._noticed = says, operators, noticed
        self._allowed: set[torch._ops.OpOverload] = set()

    def __torch_dispatch__(self, operator: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if operator not in self._allowed:
            space, _, name = operator._schema.name.partition("::")
            if space not in ("aten", "prim", "profiler") or not is_allowed(name, self._operators):
                raise Forbidden(CALLS.format(name.strip("_"), self._says))
            self._allowed.add(operator)
        return operator(*args, **(kwargs or {}))

    def __exit__(self, *problem: Any) -> None:
        """Leave the mode, also where an answer has left it already."""
        depth = torch._C._len_torch_dispatch_stack()
        if depth and torch._C._get_dispatch_stack_at(depth - 1) is self:
            super().__exit__(*problem)
        else:
            _notice(self._noticed, UNWATCHED)


def is_allowed(name: str, operators: tuple[str, ...] | None) -> bool:
    """May an answer use the operator of this name? operators: those beyond the elementary ones; None for no operator.

    Underlines at its ends do not matter, and a gradient is allowed where its operator is.
    """
    plain = name.strip("_").partition("_backward")[0]
    return operators is not None and (plain in operators or is_elementary(plain))


@cache
def is_elementary(name: str) -> bool:
    """Is it a step that nobody is asked to write by hand: arithmetic, a reduction, a view, a copy?"""
    if name in _ELEMENTARY:
        return True
    packet = getattr(torch.ops.aten, name, None) or getattr(torch.ops.aten, f"_{name}", None)
    kinds = [getattr(packet, overload) for overload in packet.overloads()] if packet else []
    tagged = any(torch.Tag.core in kind.tags or torch.Tag.pointwise in kind.tags for kind in kinds)
    return name not in _LAYERS and (tagged or any(kind.is_view for kind in kinds))


@contextlib.contextmanager
def _composites_raise(says: str, operators: tuple[str, ...] | None) -> Iterator[None]:
    # torch.library.Library keeps itself in a public list of finalizers, by which anybody could end it
    library = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
    with warnings.catch_warnings(action="ignore"):  # torch says of each that it was there before
        for operator, name in _composites():
            if not is_allowed(name, operators):
                library.impl(operator, "CompositeImplicitAutograd", _raising(name, says), False)
    try:
        yield
    finally:
        library.reset()


def _raising(name: str, says: str) -> Callable:
    def forbidden(*arguments: object, **options: object) -> None:
        raise Forbidden(CALLS.format(name.strip("_").removesuffix("_math"), says))

    return forbidden


# What these are taken apart into has kernels that are not allowed
_TAKEN_APART = tuple("cudnn cufft fbgemm_ fft_ linalg_ sparse_ special_ test_ validate_".split())


@cache
def _composites() -> tuple[tuple[str, str], ...]:
    """The composite operators that may be taken apart into elementary ones alone: full names, and names."""
    names = (full.removeprefix("aten::") for full in sorted(torch._C._dispatch_get_all_op_names()) if "aten::" in full)
    return tuple(
        (operator, operator.partition(".")[0])
        for operator in names
        if not operator.strip("_").startswith(_TAKEN_APART)
        and "backward" not in operator
        and torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{operator}", "CompositeImplicitAutograd")
    )


# ------------------------------------------------------------------------------------ Python code of torch


@contextlib.contextmanager
def _code_is_noticed(says: str, noticed: list[str]) -> Iterator[None]:
    """Within the block, notice Python code of torch that is entered and not allowed."""
    known: dict[int, CodeType] = {}  # the code itself is kept, so that no number is used again

    def profile(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or id(code) in known:
            return
        known[id(code)] = code
        file = code.co_filename.removeprefix(TORCH)
        if file != code.co_filename and not _may_run(file, code.co_qualname) and _is_students(frame):
            _notice(noticed, RAN.format(f"torch/{file}", says))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        if sys.getprofile() is not profile:
            _notice(noticed, UNWATCHED)
        sys.setprofile(before)


@cache
def _may_run(file: str, name: str) -> bool:
    return file.startswith(CODE) and not name.startswith(_NOT_OF_THESE)


# ------------------------------------------------------------------------------ definitions, and torch's source

_listeners: list[tuple[Exercise, list[str]]] = []  # the innermost last; an audit hook stays for as long as the process
_MAY_READ = ("traceback.py", "warnings.py")
_GENERATED = ("<frozen", "<string>", "<helpers", "<setup", "<__array")  # no cells of a student


@contextlib.contextmanager
def listening(exercise: Exercise) -> Iterator[list[str]]:
    """Within the block, notice operators that are defined, and reading of torch's source where it is to be written."""
    noticed: list[str] = []
    define = torch._C._dispatch_library

    def defining(*arguments: object) -> object:
        if _is_students(sys._getframe(1)):
            _notice(noticed, DEFINED)
        return define(*arguments)

    _hook_audits()
    _listeners.append((exercise, noticed))
    torch._C._dispatch_library = defining
    try:
        yield noticed
    finally:
        torch._C._dispatch_library = define
        _listeners.remove((exercise, noticed))


@cache
def _hook_audits() -> None:
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple) -> None:
    if event != "open" or not _listeners:
        return
    exercise, noticed = _listeners[-1]
    path = arguments[0]
    source = isinstance(path, str) and path.startswith(TORCH) and path.endswith(".py")
    if exercise.by_hand and source and _is_students(sys._getframe(1)):
        _notice(noticed, READ.format(f"torch/{path.removeprefix(TORCH)}"))


def _notice(noticed: list[str], sentence: str) -> None:
    if sentence not in noticed:
        noticed.append(sentence)


def _is_students(frame: FrameType | None) -> bool:
    """Does an answer do this, and neither an import nor a traceback that is shown on its behalf?"""
    files = []
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    if any(file.startswith("<frozen importlib") or file.endswith(_MAY_READ) for file in files):
        return False
    return any(file.startswith("<") and not file.startswith(_GENERATED) or "ipykernel" in file for file in files)


# --------------------------------------------------------------------------------------------- the text


def forbidden_use(source: str, forbidden: Mapping[str, str]) -> str:
    """A sentence about the first name in a cell that the exercise forbids; "" where there is none.

    A name in a comment or a docstring is no use of it. What is not Python says nothing here.
    """
    for line, name in spelled(source, modules=False) if forbidden else ():
        if name in forbidden:
            return f"Line {line} uses {name}. {forbidden[name]}"
    return ""
