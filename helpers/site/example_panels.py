"""Wrong answers with the panels that the check gives them, for pages that show what a check says."""

from __future__ import annotations

import math

import torch
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from helpers.checking.check import Check
from helpers.checking.panel import as_html
from helpers.exercises import load_lesson

ROW_SOFTMAX = (
    "01_dot_product_attention",
    "row_softmax",
    '''def row_softmax(scores):
    """scores: (b, t, t). Returns weights of the same shape; each row sums to 1."""
    powers = (scores - scores.amax(dim=1, keepdim=True)).exp()
    return powers / powers.sum(dim=1, keepdim=True)
''',
)
OTHERS = (
    (
        "01_dot_product_attention",
        "masked_squared_error",
        '''def masked_squared_error(users, films, ratings, seen):
    """The mean squared error over the ratings that were seen."""
    errors = (users @ films.T - ratings) * seen
    return errors.square().mean()
''',
    ),
    (
        "04_multi_head",
        "merge_heads",
        '''def merge_heads(x):
    """(b, h, t, d) -> (b, t, h·d)"""
    b, h, t, d = x.shape
    return x.reshape(b, t, h * d)
''',
    ),
    (
        "05_masking",
        "causal_mask",
        '''def causal_mask(t, device=None):
    """(t, t), True where position i may look at j."""
    return torch.ones(t, t, dtype=torch.bool, device=device).tril(-1)
''',
    ),
    (
        "08_classifier",
        "mean_pool",
        '''def mean_pool(vectors, mask):
    """The mean of each text's word vectors: (b, t, e), (b, t) -> (b, e)"""
    return (vectors * mask.unsqueeze(-1)).mean(dim=1)
''',
    ),
    (
        "09_character_generator",
        "apply_temperature",
        '''def apply_temperature(logits, temperature):
    """Logits whose softmax is flatter or sharper."""
    return torch.softmax(logits, dim=-1) / temperature
''',
    ),
)


def shown(lesson: str, exercise: str, answer: str) -> str:
    """A wrong answer and its panel, made by the check itself with the shipped key, as a <figure>."""
    namespace: dict = {"torch": torch, "math": math}
    exec(compile(answer, "<wrong answer>", "exec"), namespace)
    verdict = Check(load_lesson(lesson)).verdict(exercise, namespace[exercise], answer)
    code = highlight(answer, PythonLexer(), HtmlFormatter())
    return f'<figure class="panel-shown">{code.strip()}{as_html(verdict)}</figure>'
