"""An answer that takes its arguments in another order than the stub is told just that."""

from __future__ import annotations

import pytest

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.checking.judge.keys import load_key, shipped_path
from helpers.checking.judge.messages import MAY_BE_THE_SAME, SAME_CAUSE
from helpers.checking.judge.verdicts import RIGHT, judge
from helpers.checking.read.argument_order import other_order
from helpers.checking.read.cell_scan import scan_cell
from helpers.checking.read.syntax import cell_of
from helpers.checking.run.answers import run

# (lesson, exercise, the arguments of its stub, another order, what takes them)
EXCHANGED = [
    ("02_queries_keys_values", "soft_lookup", "query, keys, values", "query, values, keys", "function"),
    ("02_queries_keys_values", "SingleHeadAttention", "e, d", "d, e", "`__init__`"),
    (
        "02_queries_keys_values",
        "matrices_of_rules",
        "asks, asked, strengths, e",
        "asked, asks, strengths, e",
        "function",
    ),
    ("03_scaling", "softmax_backward", "p, g", "g, p", "function"),
    ("06_positions", "rotate", "x, positions", "positions, x", "function"),
    ("08_classifier", "Classifier", "ids, mask", "mask, ids", "`forward`"),
    ("12_gpt2", "induction_score", "weights, period", "period, weights", "function"),
]


def judged(lesson, exercise, edit):
    (source,) = sources([lesson])
    code, asked = source.cells()[exercise], source.lesson[exercise]
    assert code.count(edit[0]) == 1, code
    answer = code.replace(*edit)
    key = load_key(source.lesson, shipped_path(lesson), "")
    outcomes = run(asked, Answers(source).made_of(exercise, answer), key.seed)
    return judge(asked, outcomes, key[exercise], scan_cell(asked, answer))


@pytest.mark.parametrize(("lesson", "exercise", "given", "own", "what"), EXCHANGED)
def test_another_order_is_told_and_no_mistake_is_named(lesson, exercise, given, own, what):
    own_self, given_self = (f"self, {names}" if what.startswith("`") else names for names in (own, given))
    verdict = judged(lesson, exercise, (f"({given_self})", f"({own_self})"))
    first, *others = [line for line in verdict.aspects if line.says and not line.waits]
    assert first.says.startswith(
        f"Your {what} takes its arguments in another order than the stub: ({own}) instead of ({given})."
    )
    assert verdict.slugs == () and verdict.points < verdict.out_of
    assert {line.says for line in others} <= {MAY_BE_THE_SAME, SAME_CAUSE}


def test_where_the_order_makes_no_difference_the_answer_is_right():
    edit = ("(chosen, rejected, chosen_reference,", "(chosen, chosen_reference, rejected,")
    assert judged("20_answering", "preference_loss", edit).state == RIGHT


@pytest.mark.parametrize(
    "code",
    [
        "def soft_lookup(query, keys, values): ...",
        "def soft_lookup(q, k, v): ...",
        "def soft_lookup(query, keys, values, scale=1): ...",
        "class HurriedAttention:\n    def attend(self, k, q, v): ...\n\n    def forward(self, x): self.attend(x, x, x)",
        "soft_lookup = 3",
        "def soft_lookup(",
    ],
)
def test_nothing_is_said_of_the_same_order_of_other_names_and_of_a_method_that_its_own_code_calls(code):
    assert not any(other_order(name, cell_of(code)) for name in ("soft_lookup", "HurriedAttention"))


def test_arguments_that_were_added_do_not_hide_another_order():
    assert "(keys, query, scale, values)" in other_order(
        "soft_lookup", cell_of("def soft_lookup(keys, query, scale, values): ...")
    )
