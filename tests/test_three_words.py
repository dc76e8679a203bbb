"""The worked example of lessons 1, 2, 3, 5 and 7 shows the numbers of PyTorch's own functions."""

import re

import nbformat
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from helpers.authoring.build.lesson_source import sources
from helpers.authoring.inspect.unsupported_numbers import printed
from helpers.data.toy.three_words import THREE_WORDS, W_K, W_Q, W_V, X

LESSONS = ["01_dot_product_attention", "02_queries_keys_values", "03_scaling", "05_masking", "07_transformer_block"]
Q, K, V = X @ W_Q, X @ W_K, X @ W_V


def attention(q, k, v, **options):
    return F.scaled_dot_product_attention(q[None], k[None], v[None], **options)[0]


def weights(**options):
    """What sdpa does to one-hot values: its weights."""
    return attention(Q, K, torch.eye(3), **options)


def pytorchs_heads():
    heads = nn.MultiheadAttention(4, 2, bias=False, batch_first=True)
    with torch.no_grad():
        heads.in_proj_weight.copy_(torch.cat([W_Q.T, W_K.T, W_V.T]))
        heads.out_proj.weight.copy_(torch.eye(4))
    return heads


@torch.no_grad()
def heads_of(x):
    """Outputs (t, e) and weights (h, t, t) of nn.MultiheadAttention."""
    y, w = pytorchs_heads()(x[None], x[None], x[None], average_attn_weights=False)
    return y[0], w[0]


def block():
    """The steps of a pre-norm block whose feed-forward network is a bare ReLU."""
    normed = F.layer_norm(X, (4,))
    attended, _ = heads_of(normed)
    again = F.layer_norm(X + attended, (4,))
    return {
        "norm(x)": normed,
        "attention": attended,
        "x + attention": X + attended,
        "norm": again,
        "ReLU": F.relu(again),
        "y": X + attended + F.relu(again),
    }


SHOWN = {
    "01": lambda: {"x": X, "w": attention(X, X, torch.eye(3), scale=1), "y = w x": attention(X, X, X, scale=1)},
    "02": lambda: {
        "q = x Wq": F.linear(X, W_Q.T),
        "k = x Wk": F.linear(X, W_K.T),
        "v = x Wv": F.linear(X, W_V.T),
        "w": weights(scale=1),
        "y = w v": attention(Q, K, V, scale=1),
    },
    "03": lambda: {"w, not scaled": weights(scale=1), "w, scaled": weights()},
    "05": lambda: {"w": weights(), "w, masked": weights(is_causal=True)},
    "07": block,
}


@pytest.fixture(params=LESSONS)
def lesson(request):
    return request.param


def cells_of(lesson):
    """The stored cells of the worked example: the picture, and what fills it in."""
    cells = [c for c in nbformat.read(sources([lesson])[0].notebook, as_version=4).cells if c.cell_type == "code"]
    (place,) = (k for k, cell in enumerate(cells) if "plots.number_grids(" in cell.source)
    return cells[place : place + 2]


def test_the_numbers_drawn_are_pytorchs(lesson):
    picture, _ = cells_of(lesson)
    words = printed(picture)
    drawn = dict(re.findall(r"[.;] ([^:;.]+): ([^:;]+?)(?=;|\.\n|\.$)", words))
    assert f"the rows belong to {', '.join(THREE_WORDS)}." in words
    empty = 0
    for name, matrix in SHOWN[lesson[:2]]().items():
        rows = [row.split() for row in drawn[name].split(" / ")]
        assert [len(row) for row in rows] == [matrix.shape[1]] * len(matrix), name
        for i, row in enumerate(rows):
            for j, text in enumerate(row):
                empty += text == "empty"
                if text != "empty":
                    value = float(text.replace("−", "-"))
                    assert value == pytest.approx(matrix[i, j].item(), abs=0.00501), (name, i, j)
    assert words.count("empty") >= 2 and empty >= 1


def test_the_next_cell_gives_both_numbers_and_agrees_with_the_lessons_code(lesson):
    _, answer = cells_of(lesson)
    text = printed(answer)
    assert len(re.findall(r"-?\d+(?:\.\d+)?(?=$|,| and)", text, re.MULTILINE)) >= 2
    assert text.rstrip().endswith("True") and "hide-cell" in answer.metadata["tags"]


def test_the_example_is_made_for_work_by_hand():
    """Small whole numbers; the layer norm makes ones of them; the heads' scores add up to those of one wide head."""
    for matrix in (X, W_Q, W_K, W_V, Q, K, V, Q @ K.T / 2):
        assert torch.equal(matrix, matrix.round()) and matrix.abs().max() <= 2
    torch.testing.assert_close(F.layer_norm(X, (4,)), 2 * X - 1, atol=1e-4, rtol=0)
    one = [weights()[k] for k in (0, 2)]
    torch.testing.assert_close(*one)  # "the and ends had the same weights"
    two = heads_of(X)[1]
    assert (two[:, 0] - two[:, 2]).abs().amax() > 0.1
    torch.testing.assert_close(Q[:, :2] @ K[:, :2].T + Q[:, 2:] @ K[:, 2:].T, Q @ K.T)
    masked = weights(is_causal=True)
    torch.testing.assert_close(masked[2], weights()[2])  # the last row does not change
    assert (masked > 0).sum() == 6
    assert all(row.argmax() == 1 for row in weights(scale=1)) and all(
        before.argmax() == after.argmax() for before, after in zip(weights(scale=1), weights(), strict=True)
    )
    assert (weights(scale=1).amax(1) > weights().amax(1)).all()  # "every row is less sharp"
