"""What an answer does, besides what it returns: words depend on it, and no points."""

import json
import sys
from dataclasses import replace

import pytest
import torch

from helpers.checking.judge.behaviour import other_calls, other_dependence
from helpers.checking.judge.keys import ExerciseKey
from helpers.checking.judge.verdicts import judge
from helpers.checking.run.answers import ANSWERED, Outcome, collect, from_wire, to_wire
from helpers.exercises import Exercise
from helpers.exercises.aspects import values
from helpers.exercises.behaviour import LONGEST_WINDOW, TRAINING_CALLS, note_call, observing


def texts(draw):
    """Vectors (b, t, e) and a mask (b, t) that hides the last position of one text."""
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1, -1] = False
    return draw.normal(3, 4, 5), mask


def masked_mean_so_far(x, mask):
    """At each position the mean of what the mask shows up to there: no text sees another, and nothing the future."""
    shown = mask.unsqueeze(-1).to(x.dtype)
    return (x * shown).cumsum(1) / shown.cumsum(1)


EXERCISE = Exercise("mean_so_far", 1, 5, (values(1, texts, axes="b t e"),))


def answered(function):
    return collect(EXERCISE, function, "seed")


KEY = ExerciseKey(answered(masked_mean_so_far).outcomes)


def said(function):
    answer = answered(function)
    (line,) = judge(EXERCISE, answer, KEY).aspects
    assert not line.held and line.points == 0
    return line.says


def scrambled(x):
    """A function without symmetry, so that no other relation is found between its results."""
    return torch.sin(3 * x) + x**2


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            lambda x, mask: scrambled(masked_mean_so_far(x, mask)) + x.mean(0).cos(),
            "When only index 0 of axis b changes in the input, your result changes at index 1 and 2 too;",
        ),
        (
            lambda x, mask: scrambled(masked_mean_so_far(x, mask)) + (x * mask.unsqueeze(-1)).mean(1, keepdim=True),
            "When only the last index of axis t changes in the input, your result changes at index 0 to 2 too;",
        ),
        (
            lambda x, mask: scrambled(x.cumsum(1)),
            "When only what the mask hides changes in the input, your result changes; the right one does not.",
        ),
        (
            lambda x, mask: scrambled(masked_mean_so_far(x, mask)[:, :1].expand_as(x) * mask[..., None]),
            "When only the last index of axis t changes in the input, your result does not change at index 3;",
        ),
    ],
    ids=["another text", "the future", "what the mask hides", "too little"],
)  # fmt: skip
def test_a_wrong_dependence_is_told(wrong, sentence):
    assert said(wrong).startswith(sentence)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, mask: scrambled(masked_mean_so_far(x, mask)),
        lambda x, mask: masked_mean_so_far(x, mask) + torch.rand_like(x),
        lambda x, mask: masked_mean_so_far(x, mask) * torch.nan,
        lambda x, mask: torch.zeros_like(x),
    ],
    ids=["the right one", "random", "nan", "constant"],
)
def test_nothing_is_said_where_nothing_is_known(wrong):
    assert "changes in the input" not in said(wrong)


def test_an_answer_is_not_disturbed():
    printed = []

    def counting(x, mask):
        printed.append(len(printed))
        print("called")
        print("called", file=sys.stderr)
        if len(printed) > 1:
            raise SystemExit("only once")
        result = masked_mean_so_far(x, mask)
        x.zero_()
        return result

    answer = answered(counting)
    assert answer.lines_printed == 2
    assert judge(EXERCISE, answer, KEY).points == 1


def test_no_points_hang_on_it():
    answer = answered(masked_mean_so_far)
    (outcome,) = answer.outcomes.values()
    assert outcome.behaviour
    for other in ({}, {name: 2 - tensor for name, tensor in outcome.behaviour.items()}):
        changed = replace(answer, outcomes={"values": replace(outcome, behaviour=other)})
        assert judge(EXERCISE, changed, KEY).points == 1


def test_it_crosses_the_border_and_names_that_there_are_not_stay_behind():
    sent = json.loads(json.dumps(to_wire(answered(masked_mean_so_far))))
    (arrived,), (there,) = (
        each.outcomes.values() for each in (from_wire(sent, EXERCISE), answered(masked_mean_so_far))
    )
    assert arrived.behaviour.keys() == there.behaviour.keys()
    assert all(torch.equal(arrived.behaviour[name], tensor) for name, tensor in there.behaviour.items())
    sent["outcomes"]["values"]["names"][-1] = "of somebody's own"
    (forged,) = from_wire(sent, EXERCISE).outcomes.values()
    assert len(forged.behaviour) == len(there.behaviour) - 1 and forged.tensors.keys() == there.tensors.keys()


@pytest.mark.parametrize("count", [-1, 10**9, True, "2", None])
def test_a_count_that_cannot_be_is_none(count):
    sent = json.loads(json.dumps(to_wire(answered(masked_mean_so_far))))
    sent["outcomes"]["values"]["behaviour"] = count
    (outcome,) = from_wire(sent, EXERCISE).outcomes.values()
    assert "result" in outcome.tensors


def calls(*noted):
    with observing() as behaviour:
        for training, tokens in noted:
            note_call(training, tokens)
    return Outcome(ANSWERED, {"result": torch.zeros(1)}, behaviour=behaviour)


def test_calls_of_a_model_are_compared():
    solution = calls((True, 6), (False, 4))
    assert other_calls(calls((False, 6), (True, 2)), solution) == ""
    assert (
        other_calls(calls((True, 6), (True, 4)), solution)
        == "Your code calls the model twice in training mode, the solution once."
    )
    assert "has 5 tokens, the solution's has 6" in other_calls(calls((True, 5)), solution)
    assert other_dependence(solution, solution) == ""
    assert {TRAINING_CALLS, LONGEST_WINDOW} == solution.behaviour.keys()
