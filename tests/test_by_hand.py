"""Where an exercise says "write it yourself", elementary operators run, others raise, and torch's Python is noticed."""

from __future__ import annotations

import contextlib
import functools
import linecache
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from helpers.checking.judge.keys import ExerciseKey
from helpers.checking.judge.verdicts import NOT_ALLOWED, judge
from helpers.checking.read.cell_scan import forbidden_use, scan_cell
from helpers.checking.read.syntax import cell_of
from helpers.checking.run.answers import ANSWERED, FORBIDDEN, run
from helpers.checking.run.by_hand import DEFINED, UNWATCHED, watched
from helpers.exercises.aspects import Forbidden
from helpers.exercises.exercise import ATTENTION_OPERATORS, NORM_OPERATORS, SOFTMAX_OPERATORS, Aspect, Exercise

SAYS = "Write the exponentials and their sum."


def rows(says=SAYS, *operators, **about):
    """An exercise that is to be written by hand, with these operators beside the elementary ones."""
    probes = (Aspect("values", 1, lambda answer, draw: answer(draw.normal(3, 4))),)
    return Exercise("rows", 1, 1, probes, by_hand=says, operators=operators, **about)


BY_HAND = rows()
NO_ATTENTION = rows("Write the product of queries and keys.", *SOFTMAX_OPERATORS)
NO_NORM = rows("Write the mean and the variance.", *ATTENTION_OPERATORS)

X = torch.arange(12.0).reshape(3, 4) / 5


def with_gradient(call):
    x = X.clone().requires_grad_()
    return call(x)


softmax_before = torch.softmax  # an alias from before the block


def hooked(x):
    """The same; its gradient goes through a softmax that no line of Python calls."""
    same = x * 1
    same.register_hook(functools.partial(torch.softmax, dim=-1))
    return same


def saved_as_softmax(x):
    """A square, for whose gradient a softmax is kept instead."""
    with torch.autograd.graph.saved_tensors_hooks(functools.partial(torch.softmax, dim=-1), torch.clone):
        return x.pow(2)


class SoftmaxBackwards(torch.autograd.Function):
    """The same forwards; backwards, a softmax."""

    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(context, grad):
        return context.saved_tensors[0].softmax(-1)


BY_SOFTMAX = {
    "the function": lambda: torch.softmax(X, -1),
    "the method": lambda: X.softmax(-1),
    "torch.nn.functional": lambda: F.softmax(X, dim=-1),
    "the module": lambda: nn.Softmax(-1)(X),
    "torch.special": lambda: torch.special.softmax(X, -1),
    "the operator": lambda: torch.ops.aten.softmax.int(X, -1),
    "the operator beneath it": lambda: torch.ops.aten._softmax.default(X, -1, False),
    "the C function": lambda: torch._C._VariableFunctions.softmax(X, -1),
    "an alias": lambda: softmax_before(X, -1),
    "a name that is put together": lambda: getattr(torch, "soft" + "max")(X, -1),
    "into a tensor": lambda: torch.softmax(X, -1, out=torch.empty_like(X)),
    "the logarithm": lambda: X.log_softmax(-1).exp(),
    "logsumexp": lambda: (X - X.logsumexp(-1, keepdim=True)).exp(),
    "logcumsumexp": lambda: X.logcumsumexp(-1),
    "softmin": lambda: F.softmin(-X, dim=-1),
    "gumbel": lambda: F.gumbel_softmax(X),
    "cross entropy": lambda: F.cross_entropy(X, torch.zeros(3, dtype=torch.long)),
    "a sparse tensor": lambda: torch.sparse.softmax(X.to_sparse(), 1),
    "softmax of a picture": lambda: nn.Softmax2d()(X[None]),
    "a distribution": lambda: torch.distributions.Categorical(logits=X).probs,
    "for the MKL": lambda: torch.ops.aten._softmax(X.to_mkldnn(), -1, False).to_dense(),
    "on meta": lambda: X.to("meta").softmax(-1),
    "in another type": lambda: X.double().softmax(-1),
    "with a gradient": lambda: with_gradient(lambda x: x.softmax(-1)),
    "without gradients": torch.no_grad()(lambda: X.softmax(-1)),
    "in inference mode": torch.inference_mode()(lambda: X.softmax(-1)),
    "in a backward of one's own": lambda: gradient_of(SoftmaxBackwards.apply),
    "as a hook of a gradient": lambda: gradient_of(hooked),
    "as a hook of what is saved": lambda: gradient_of(saved_as_softmax),
    "under vmap": lambda: torch.vmap(lambda row: row.softmax(-1))(X),
    "attention of one's own scores": lambda: F.scaled_dot_product_attention(X[None], X[None], X[None]),
    "a module of attention": lambda: nn.MultiheadAttention(4, 2)(X, X, X),
}

ATTENDS = nn.MultiheadAttention(4, 2, batch_first=True)
BY_ATTENTION = {
    "the function": lambda: F.scaled_dot_product_attention(X[None], X[None], X[None]),
    "with a mask": lambda: F.scaled_dot_product_attention(X[None], X[None], X[None], torch.ones(3, 3).bool()),
    "causal": lambda: F.scaled_dot_product_attention(X[None], X[None], X[None], is_causal=True),
    "the plain operator": lambda: torch.ops.aten._scaled_dot_product_attention_math(X[None], X[None], X[None]),
    "with a gradient": lambda: with_gradient(lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None])),
    "on meta": lambda: F.scaled_dot_product_attention(*[X[None, None].to("meta")] * 3),
    "a module without weights": lambda: nn.MultiheadAttention(4, 2)(X, X, X, need_weights=False),
    "a module on the fast path": torch.no_grad()(lambda x=X[None]: ATTENDS.eval()(x, x, x)),
}

BY_NORM = {
    "the module": lambda: nn.LayerNorm(4)(X),
    "the function": lambda: F.layer_norm(X, (4,)),
    "torch's own": lambda: torch.native_layer_norm(X, (4,), None, None, 1e-5),
    "a group": lambda: nn.GroupNorm(1, 4)(X),
    "an instance": lambda: F.instance_norm(X[None]),
    "a batch": lambda: F.batch_norm(X, None, None, training=True),
}

BY_OTHERS = {
    "rms_norm": lambda: F.rms_norm(X, (4,)),
    "RMSNorm": lambda: nn.RMSNorm(4)(X),
    "a cell of a recurrent network": lambda: nn.GRUCell(4, 2)(X),
    "its operator": lambda: torch.gru_cell(X, X[:, :2], X.new_ones(6, 4), X.new_ones(6, 2)),
    "a recurrent network": lambda: nn.GRU(4, 2)(X),
    "another space of operators": lambda: torch.ops.quantized.softmax(X, -1, 1.0, 0),
    "a layer norm for quantised numbers": lambda: torch.ops.quantized.layer_norm(X, [4], None, None, 1e-5, 1.0, 0),
    "a weighted norm": lambda: torch._weight_norm(X, X[:, :1]),
}
WAYS = [
    pytest.param(exercise, call, id=f"{exercise.by_hand.split()[2]}: {way}")
    for exercise, ways in ((BY_HAND, BY_SOFTMAX | BY_OTHERS), (NO_ATTENTION, BY_ATTENTION), (NO_NORM, BY_NORM))
    for way, call in ways.items()
]


@pytest.mark.parametrize("exercise, call", WAYS)
def test_an_operator_that_is_not_allowed_raises_by_whatever_way_it_is_called(exercise, call):
    with watched(exercise), pytest.raises(Forbidden):
        call()


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_program_that_was_recorded_before_stops_as_well():
    recorded = torch.jit.trace(lambda x: x.softmax(-1), X, check_trace=False)
    with watched(BY_HAND), pytest.raises(RuntimeError, match=f"Your code calls softmax. {SAYS}"):
        recorded(X)
    recorded(X)


def test_the_message_names_the_function_and_what_to_write():
    with watched(BY_HAND), pytest.raises(Forbidden) as caught:
        X.softmax(-1)
    assert str(caught.value) == f"Your code calls softmax. {SAYS}"
    with watched(BY_HAND), pytest.raises(Forbidden, match=f"calls scaled_dot_product_attention. {SAYS}"):
        F.scaled_dot_product_attention(X[None], X[None], X[None])
    with watched(NO_NORM), pytest.raises(Forbidden, match="Your code calls layer_norm. Write the mean"):
        nn.LayerNorm(4)(X)


# ------------------------------------------------------------------------------------------ what stays allowed


OTHER_MATHEMATICS = {
    "logaddexp": "(x - functools.reduce(torch.logaddexp, x.unbind(-1))[..., None]).exp()",
    "normalize": "F.normalize((x - x.amax(-1, keepdim=True)).exp(), p=1, dim=-1)",
    "differences": "1 / (x[..., None, :] - x[..., :, None]).exp().sum(-1)",
    "einsum": "torch.einsum('ij,i->ij', x.exp(), 1 / x.exp().sum(-1))",
    "a loop over rows": "torch.stack([row.exp() / row.exp().sum() for row in x])",
    "vmap": "torch.vmap(lambda row: row.exp() / row.exp().sum())(x)",
    "a module of one's own": "nn.Sequential(nn.Identity(), Own())(x)",
    "cumulative sums": "x.exp() / x.exp().cumsum(-1)[..., -1:]",
    "a matrix product": "x.exp() / (x.exp() @ x.new_ones(4, 1))",
    "sigmoids": "torch.sigmoid(x - torch.log(x.exp().sum(-1, keepdim=True) - x.exp()))",
    "in place": "x.clone().exp_().div_(x.exp().sum(-1, keepdim=True))",
    "scattered": "x.exp() / torch.zeros(3).index_add_(0, torch.arange(3), x.exp().sum(-1))[:, None]",
}
OWN = "class Own(nn.Module):\n    def forward(self, x):\n        return x.exp() / x.exp().sum(-1, keepdim=True)\n"


def in_a_cell(text, before=""):
    """The function of x that a student's cell of this text defines."""
    space = {"torch": torch, "nn": nn, "F": F}
    exec(compile(f"import functools\n{before}\ndef rows(x):\n    return {text}", "<your cell>", "exec"), space)
    return space["rows"]


@pytest.mark.parametrize("text", OTHER_MATHEMATICS.values(), ids=OTHER_MATHEMATICS)
def test_other_mathematics_is_right_and_nothing_is_noticed(text):
    written = in_a_cell(text, OWN)
    with watched(BY_HAND) as noticed:
        made = written(X)
    assert torch.allclose(made, X.softmax(-1), atol=1e-6) and noticed == []


def by_hand(x):
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def gradient_of(function, x=X):
    x = x.clone().requires_grad_()
    function(x).pow(2).sum().backward()
    return x.grad


def test_what_is_written_by_hand_runs_with_its_gradient():
    target, slope = X.softmax(-1), gradient_of(lambda x: x.softmax(-1))
    with watched(BY_HAND):
        assert torch.allclose(by_hand(X), target)
        assert torch.allclose(gradient_of(by_hand), slope, atol=1e-6)
        q = X[None].clone().requires_grad_()
        (by_hand(q @ q.mT / 2) @ q).sum().backward()
        assert q.grad.abs().sum() > 0
        assert ((X - X.mean(-1, keepdim=True)) / (X.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()).shape == (
            3,
            4,
        )
        assert by_hand(X.to("meta")).is_meta


def test_what_the_exercise_names_is_allowed_and_without_a_word_of_it_everything_is():
    with watched(NO_NORM):
        X.softmax(-1), F.scaled_dot_product_attention(X[None], X[None], X[None])
    with watched(rows(SAYS, *SOFTMAX_OPERATORS, *NORM_OPERATORS)):
        X.softmax(-1), nn.LayerNorm(4)(X)
    with watched(rows("")) as noticed:
        X.softmax(-1), nn.GRU(4, 2)(X), torch.distributions.SoftmaxTransform()(X)
    assert noticed == []


# ------------------------------------------------------------------------------------- what is only noticed

NOTICED = {
    "a distribution's transform": ("torch.distributions.SoftmaxTransform()(x)", "torch/distributions/transforms.py"),
    "a reference in Python": ("torch._refs.softmax(x, -1)", "torch/_refs/__init__.py"),
    "a method without its constructor": (
        "nn.TransformerEncoderLayer.forward(None, x) if 0 else nn.TransformerEncoderLayer.__setstate__(Own(), {})",
        "torch/nn/modules/transformer.py",
    ),
    "a library function": (
        "F.multi_head_attention_forward.__wrapped__ if 0 else nn.MultiheadAttention(4, 2)",
        "activation",
    ),
    "the source of torch": ("len(open(F.__file__).read())", "torch/nn/functional.py"),
    "the source by inspect": ("len(__import__('inspect').getsource(F.gumbel_softmax))", "torch/nn/functional.py"),
}


@pytest.mark.parametrize("text, file", NOTICED.values(), ids=NOTICED)
def test_python_code_of_torch_and_its_source_are_noticed_by_file(text, file):
    linecache.clearcache()
    written = in_a_cell(text, OWN)
    with watched(BY_HAND) as noticed, contextlib.suppress(Exception):
        written(X)
    assert file in " ".join(noticed)


def test_an_operator_of_ones_own_is_noticed_in_any_exercise():
    written = in_a_cell("torch.library.Library('mine', 'FRAGMENT').define('rows(Tensor x) -> Tensor')")
    with watched(rows("")) as noticed:
        written(X)
    assert noticed == [DEFINED]


FIRST_CHECK = """
from helpers.checking.run.by_hand import watched
from helpers.exercises import load_lesson

with watched(load_lesson("07_transformer_block")["LayerNorm"]) as noticed:
    pass
print(noticed)
"""


def test_what_the_first_check_of_a_process_defines_itself_is_not_the_answers():
    begin = f"exec(compile({FIRST_CHECK!r}, '/tmp/ipykernel_1/1.py', 'exec'))"
    assert subprocess.run([sys.executable, "-c", begin], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize(
    "line",
    [
        "sys.setprofile(None)",
        "torch._C._dispatch_tls_set_dispatch_key_included(torch._C.DispatchKey.AutocastIPU, False)",
    ],
)
def test_taking_the_watch_away_is_noticed(line):
    written = in_a_cell(line, "import sys")
    with watched(BY_HAND) as noticed:
        written(X)
    assert UNWATCHED in noticed
    assert torch._C._len_torch_dispatch_stack() == 0 and sys.getprofile() is None


# ------------------------------------------------------------------------------------------------ afterwards


def everything():
    """Values and gradients by every function that can be barred."""
    torch.manual_seed(0)
    attention, norm = nn.MultiheadAttention(4, 2), nn.LayerNorm(4)
    functions = (
        lambda x: x.softmax(-1), lambda x: x.log_softmax(-1), lambda x: x.logsumexp(-1), norm,
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), lambda x: attention(x, x, x)[0],
        lambda x: F.rms_norm(x, (4,)), lambda x: F.group_norm(x, 2),
    )  # fmt: skip
    return [tensor for function in functions for tensor in (function(X).detach(), gradient_of(function))]


def test_after_the_block_values_and_gradients_are_the_same_and_nothing_warns():
    before = everything()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with watched(BY_HAND):
            by_hand(X)
        after = everything()
        with pytest.raises(ValueError, match="within"), watched(BY_HAND):
            raise ValueError("within")
        again = everything()
    for others in (after, again):
        assert all(torch.equal(one, other) for one, other in zip(before, others, strict=True))


# ------------------------------------------------------------------------------- known by their names alone


@pytest.mark.parametrize(
    "forbidden, line",
    [
        ("Transformer", "nn.Transformer(8)"),
        ("TransformerEncoder", "getattr(torch.nn, 'TransformerEncoder')"),
        ("TransformerDecoderLayer", "from torch.nn import TransformerDecoderLayer as T"),
        ("multi_head_attention_forward", "F.multi_head_attention_forward"),
        ("flex_attention", "from torch.nn.attention.flex_attention import flex_attention"),
        ("checkpoint", "torch.utils.checkpoint.checkpoint(f, x)"),
    ],
)
def test_a_name_is_seen_in_the_text_with_its_line(forbidden, line):
    says = forbidden_use(cell_of(f"x = 1\n{line}").tree, {forbidden: "Write it."})
    assert says.startswith("Line 2 uses ") and says.endswith(" Write it.")


@pytest.mark.parametrize(
    "source",
    [
        "# nn.Transformer(8)",
        "def f(x):\n    '''As in a Transformer: see numel.'''\n    return x",
        "my_Transformer_2 = 3",
        "from . import other",
        "from torch import nn",
        "this is no python: Transformer(",
        "",
    ],
)
def test_a_word_in_a_comment_or_within_another_name_is_no_use(source):
    assert forbidden_use(cell_of(source).tree, {"Transformer": "Write it.", "numel": "Count."}) == ""


# --------------------------------------------------------------------------------------------- in a verdict

ROWS = rows(forbidden={"numel": "Count them."})


@pytest.mark.parametrize("answer", [lambda x: x.softmax(-1), lambda x: by_hand(x) if x.softmax(-1) is None else x])
def test_an_answer_that_calls_it_is_not_allowed_and_told_why(answer):
    with watched(ROWS):
        given = run(ROWS, answer, "seed")
    assert given.outcomes["values"].state == FORBIDDEN
    verdict = judge(ROWS, given, ExerciseKey(run(ROWS, by_hand, "seed").outcomes))
    assert (verdict.state, verdict.points, verdict.says) == (NOT_ALLOWED, 0, f"Your code calls softmax. {SAYS}")


def test_an_answer_that_catches_the_refusal_has_to_compute_the_rest_itself():
    def stubborn(x):
        try:
            return x.softmax(-1)
        except Exception:
            return by_hand(x)

    with watched(ROWS):
        assert run(ROWS, stubborn, "seed").outcomes["values"].state == ANSWERED


def test_a_name_in_the_text_is_not_allowed_whatever_the_numbers_are():
    given = run(ROWS, by_hand, "seed")
    verdict = judge(ROWS, given, ExerciseKey(given.outcomes), scan_cell(ROWS, "def rows(x):\n    return x.numel()"))
    assert (verdict.state, verdict.says) == (NOT_ALLOWED, "Line 2 uses numel. Count them.")
