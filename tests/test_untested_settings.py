"""`make check` lists the settings that an exercise's probes never vary: a wrong answer may ignore them unseen."""

import dataclasses

import pytest
import torch

from helpers.authoring.build.lesson_source import Answers, sources
from helpers.authoring.inspect.untested_settings import settings_never_varied, unvaried
from helpers.exercises.exercise import Aspect


# `make check` looks at each lesson that was changed; the first one is an example for `make test`
@pytest.mark.parametrize(
    "source", [pytest.param(s, marks=() if s.lesson.number == 1 else pytest.mark.deep, id=s.name) for s in sources()]
)
def test_every_setting_of_a_lesson_is_varied_or_declared(source):
    assert list(unvaried(source)) == []


class FixedText(Answers):
    """Answers with a cell of this text, whatever the exercise."""

    def __init__(self, text):
        super().__init__(sources(["01_dot_product_attention"])[0])
        self._text = text

    def text(self, exercise, variant=None):
        return self._text


EXERCISE = sources(["01_dot_product_attention"])[0].lesson.exercises[0]
FUNCTION = f"def {EXERCISE.name}(x, mask, pad=0):\n    return x"
CLASS = f"""
class {EXERCISE.name}(torch.nn.Module):
    def __init__(self, e):
        super().__init__()
        self.e = e

    def forward(self, x, times=1):
        return self.other(2) * x.sum() * times

    def other(self, factor):
        return torch.tensor(float(factor))
"""


def never_varied(text, *calls):
    """The settings that a probe with these calls never varies, for a cell of this text."""

    def probe(answer, draw):
        for call in calls:
            call(answer)
        return torch.tensor([1])

    exercise = dataclasses.replace(EXERCISE, aspects=(Aspect("values", 1, probe),))
    return [name for name, _ in settings_never_varied(exercise, FixedText(text))]


def call(length, *further):
    """A call with tensors of this length."""
    return lambda answer: answer(torch.zeros(length), torch.tensor([True] * length), *further)


def test_an_argument_that_is_never_given_is_listed():
    assert "pad" in never_varied(FUNCTION, call(3), call(4))
    assert "pad" not in never_varied(FUNCTION, call(3), call(3, 1))


def test_an_axis_of_one_length_is_listed():
    assert "x" in never_varied(FUNCTION, call(3), call(3, 1))
    assert "x" not in never_varied(FUNCTION, call(3), call(4, 1))


def test_a_mask_without_gaps_is_listed():
    assert "mask" in never_varied(FUNCTION, call(3), call(4))
    assert "mask" not in never_varied(FUNCTION, call(4), lambda f: f(torch.zeros(3), torch.tensor([True, False, True])))


def test_a_module_lists_its_constructor_and_its_methods():
    calls = (lambda answer: answer(3)(torch.ones(2)), lambda answer: answer(3)(torch.ones(5)))
    assert never_varied(CLASS, *calls) == ["e", "forward(times)"]


def test_calls_that_an_answer_makes_of_itself_do_not_count():
    """`forward` calls `other` with 2 alone; only what a probe gives is a setting."""
    assert "other(factor)" not in never_varied(CLASS, lambda answer: answer(3)(torch.ones(2)))
