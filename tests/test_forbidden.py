"""Functions that an exercise forbids raise however they are reached, and everything is as before when it is over."""

from __future__ import annotations

import threading
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from helpers.checking.answers import ANSWERED, FORBIDDEN, run
from helpers.checking.cell_scan import scan_cell
from helpers.checking.forbidden import barred, forbidden_use
from helpers.checking.keys import ExerciseKey
from helpers.checking.verdicts import NOT_ALLOWED, judge
from helpers.exercises.aspects import Forbidden
from helpers.exercises.exercise import Aspect, Exercise

SAYS = "Write the exponentials and their sum."
NO_SOFTMAX = {"softmax": SAYS}
NO_ATTENTION = {"scaled_dot_product_attention": "Write the product of queries and keys."}
NO_NORM = {"LayerNorm": "Write the mean and the variance."}
NO_RMS = {"rms_norm": "Write the root of the mean of squares."}
EVERY = {**NO_SOFTMAX, **NO_ATTENTION, **NO_NORM, **NO_RMS}

X = torch.arange(12.0).reshape(3, 4) / 5


def in_thread(call):
    problems = []

    def runs():
        try:
            call()
        except Forbidden as problem:
            problems.append(problem)

    thread = threading.Thread(target=runs)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]


def with_gradient(call):
    x = X.clone().requires_grad_()
    return call(x)


softmax_before = torch.softmax  # an alias from before the block

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
    "a reference in Python": lambda: torch._refs.softmax(X, -1),
    "a decomposition": lambda: torch._decomp.decomposition_table[torch.ops.aten._softmax.default](X, -1, False),
    "on meta": lambda: X.to("meta").softmax(-1),
    "in another type": lambda: X.double().softmax(-1),
    "with a gradient": lambda: with_gradient(lambda x: x.softmax(-1)),
    "without gradients": torch.no_grad()(lambda: X.softmax(-1)),
    "in inference mode": torch.inference_mode()(lambda: X.softmax(-1)),
    "under vmap": lambda: torch.vmap(lambda row: row.softmax(-1))(X),
    "in a thread": lambda: in_thread(lambda: X.softmax(-1)),
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

WAYS = [
    pytest.param(bar, call, id=f"{next(iter(bar))}: {way}")
    for bar, ways in ((NO_SOFTMAX, BY_SOFTMAX), (NO_ATTENTION, BY_ATTENTION), (NO_NORM, BY_NORM))
    for way, call in ways.items()
] + [
    pytest.param(NO_RMS, lambda: F.rms_norm(X, (4,)), id="rms_norm"),
    pytest.param(NO_RMS, lambda: nn.RMSNorm(4)(X), id="RMSNorm"),
    pytest.param({"checkpoint": SAYS}, lambda: checkpoint(torch.relu, X, use_reentrant=False), id="checkpoint"),
    pytest.param({"GradScaler": SAYS}, lambda: torch.amp.GradScaler("cpu"), id="GradScaler"),
    pytest.param({"MultiheadAttention": SAYS}, lambda: nn.MultiheadAttention(4, 2), id="MultiheadAttention"),
    pytest.param({"TransformerEncoderLayer": SAYS}, lambda: nn.TransformerEncoderLayer(4, 2), id="encoder layer"),
]


@pytest.mark.parametrize("bar, call", WAYS)
def test_a_forbidden_function_raises_by_whatever_way_it_is_called_and_runs_again_afterwards(bar, call):
    with barred(bar), pytest.raises(Forbidden):
        call()
    call()


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_program_that_was_recorded_before_stops_as_well():
    recorded = torch.jit.trace(lambda x: x.softmax(-1), X, check_trace=False)
    with barred(NO_SOFTMAX), pytest.raises(RuntimeError, match=f"Your code calls softmax. {SAYS}"):
        recorded(X)
    recorded(X)


def test_the_message_names_the_function_and_what_to_write():
    with barred(NO_SOFTMAX), pytest.raises(Forbidden) as caught:
        X.softmax(-1)
    assert str(caught.value) == f"Your code calls softmax. {SAYS}"
    with barred(NO_SOFTMAX), pytest.raises(Forbidden, match=f"calls scaled_dot_product_attention. {SAYS}"):
        F.scaled_dot_product_attention(X[None], X[None], X[None])
    with barred(NO_NORM), pytest.raises(Forbidden, match="Your code calls .*layer_norm. Write the mean"):
        nn.LayerNorm(4)(X)


# ------------------------------------------------------------------------------------------ what stays allowed


def by_hand(x):
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def gradient_of(function, x=X):
    x = x.clone().requires_grad_()
    function(x).pow(2).sum().backward()
    return x.grad


def test_what_is_written_by_hand_runs_with_its_gradient():
    target, slope = X.softmax(-1), gradient_of(lambda x: x.softmax(-1))
    with barred(EVERY):
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


def test_the_gradient_of_what_was_computed_before_is_no_use_of_it():
    x = X.clone().requires_grad_()
    made = x.softmax(-1).pow(2).sum()
    with barred(NO_SOFTMAX):
        made.backward()
    assert torch.equal(x.grad, gradient_of(lambda x: x.softmax(-1)))


def test_of_other_families_nothing_is_barred():
    with barred(NO_NORM):
        X.softmax(-1), F.scaled_dot_product_attention(X[None], X[None], X[None])
    with barred({"numel": "Count them.", "split_heads": "Write it."}):
        X.softmax(-1), X.numel()
    with barred({}):
        X.softmax(-1)


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
        with barred(EVERY):
            by_hand(X)
        after = everything()
        with pytest.raises(ValueError, match="within"), barred(EVERY):
            raise ValueError("within")
        again = everything()
    for others in (after, again):
        assert all(torch.equal(one, other) for one, other in zip(before, others, strict=True))


def test_a_block_within_a_block_leaves_the_outer_one_in_force():
    with barred(NO_SOFTMAX):
        with barred(NO_NORM):
            pass
        with pytest.raises(Forbidden):
            X.softmax(-1)
        nn.LayerNorm(4)(X)


# ------------------------------------------------------------------------------- known by their names alone


@pytest.mark.parametrize(
    "forbidden, line",
    [
        ("Transformer", "nn.Transformer(8)"),
        ("Transformer", "getattr(torch.nn, 'TransformerEncoder')"),
        ("Transformer", "from torch.nn import TransformerDecoderLayer as T"),
        ("MultiheadAttention", "nn.MultiheadAttention(4, 2)"),
        ("MultiheadAttention", "F.multi_head_attention_forward"),
        ("scaled_dot_product_attention", "from torch.nn.attention.flex_attention import flex_attention"),
        ("flex_attention", "flex_attention(q, k, v)"),
        ("TransformerEncoderLayer", "torch.nn.TransformerEncoder"),
        ("numel", "w.numel()"),
        ("numel", "w.nelement()"),
        ("checkpoint", "from torch.utils.checkpoint import checkpoint"),
        ("checkpoint", "torch.utils.checkpoint.checkpoint(f, x)"),
    ],
)
def test_what_has_no_operator_is_seen_in_the_text_with_its_line(forbidden, line):
    says = forbidden_use(f"x = 1\n{line}", {forbidden: "Write it."})
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
    assert forbidden_use(source, {"Transformer": "Write it.", "numel": "Count."}) == ""


def test_a_name_with_an_operator_is_left_to_the_operator():
    assert forbidden_use("softmax = by_hand\nx.softmax(-1)", NO_SOFTMAX) == ""


# --------------------------------------------------------------------------------------------- in a verdict

ROWS = Exercise(
    "rows", 1, 1, (Aspect("values", 1, lambda answer, draw: answer(draw.normal(3, 4))),),
    forbidden={**NO_SOFTMAX, "numel": "Count them."},
)  # fmt: skip


@pytest.mark.parametrize("answer", [lambda x: x.softmax(-1), lambda x: by_hand(x) if x.softmax(-1) is None else x])
def test_an_answer_that_calls_it_is_not_allowed_and_told_why(answer):
    with barred(ROWS.forbidden):
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

    with barred(ROWS.forbidden):
        assert run(ROWS, stubborn, "seed").outcomes["values"].state == ANSWERED


def test_a_name_in_the_text_is_not_allowed_whatever_the_numbers_are():
    given = run(ROWS, by_hand, "seed")
    verdict = judge(ROWS, given, ExerciseKey(given.outcomes), scan_cell(ROWS, "def rows(x):\n    return x.numel()"))
    assert (verdict.state, verdict.says) == (NOT_ALLOWED, "Line 2 uses numel. Count them.")
