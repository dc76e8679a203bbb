"""Lesson 20: what a loss looks at, so that a model which continues becomes a model that answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.aspects import Inputs
from helpers.exercises.draw import Draw
from helpers.exercises.exercise import Answer, Lesson
from helpers.exercises.questions import predictions_of
from helpers.exercises.spec import any_device, case, exercise, gradient, input_left_alone, normal, values

# --------------------------------------------------------------------------------------- logits, ids and answers


def dialogues(b: int = 3, t: int = 7, n: int = 5, std: float = 1.5) -> Inputs:
    """Logits (b, t, n), ids (b, t), and which of them are answers (b, t): not the first, and in a row the last."""

    def inputs(draw: Draw) -> tuple[torch.Tensor, ...]:
        is_answer = draw.mask(0.5, b, t)
        is_answer[:, 0] = False
        is_answer[:, 1] = True
        is_answer[0, 1], is_answer[0, -1] = t == 2, True
        return draw.normal(b, t, n, std=std), draw.integers(0, n, b, t), is_answer

    return inputs


def many_dialogues(draw: Draw) -> tuple[torch.Tensor, ...]:
    """More rows, longer ones and more tokens than elsewhere, and logits of which some are large."""
    b, t, n = draw.number(9, 14), draw.number(30, 45), draw.number(40, 60)
    _, ids, is_answer = dialogues(b, t, n)(draw)
    return draw.heavy(b, t, n), ids, is_answer


def far_apart(draw: Draw) -> tuple[torch.Tensor, ...]:
    """Logits in the hundreds, so that exp overflows and small probabilities are 0."""
    _, ids, is_answer = dialogues()(draw)
    return 150 * draw.normal(3, 7, 5), ids, is_answer


ON_DIALOGUES: dict[str, Inputs] = {
    "with a batch of one": dialogues(b=1, t=6),
    "for two tokens": dialogues(t=2),
    "with large logits": far_apart,
}

answer_loss = exercise(
    "answer_loss",
    stars=2,
    minutes=7,
    fixes_bug=True,
    given=dialogues(),
    also=ON_DIALOGUES,
    larger=many_dialogues,
    aspects=(
        values(
            2,
            accepts="number",
            missed="Write down, for one row of four tokens, which token each of the logits predicts, and of which"
            " token the mask speaks.",
        ),
        gradient(0.5),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

answer_log_probability = exercise(
    "answer_log_probability",
    stars=1,
    minutes=5,
    given=dialogues(),
    also=ON_DIALOGUES,
    larger=many_dialogues,
    aspects=(
        values(
            1,
            axes="b",
            missed="Try a row of two tokens with equal logits over n = 4 tokens: its answer has one token, and the"
            " result is log(1/4) = −1.386.",
        ),
        gradient(0.5),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# ---------------------------------------------------------------------------------------------------------- pack

RETURNED = ("ids", "positions", "mask")


def rows(*lengths: int, n: int = 17) -> Inputs:
    """Dialogues of these lengths, as arguments of their own."""
    return lambda draw: tuple(draw.integers(0, n, length) for length in lengths)


def some_rows(draw: Draw) -> tuple[torch.Tensor, ...]:
    """Three dialogues of drawn lengths."""
    return rows(draw.number(2, 5), draw.number(5, 8), draw.number(2, 4))(draw)


def many_rows(draw: Draw) -> tuple[torch.Tensor, ...]:
    """More dialogues, and longer ones."""
    return rows(*(draw.number(1, 40) for _ in range(draw.number(9, 13))), n=300)(draw)


def as_list(answer: Answer, draw: Draw) -> Callable:
    """The answer takes a list of what is given here as arguments of their own."""
    return lambda *given: answer(list(given))


def only_mask(answer: Answer, draw: Draw) -> Callable:
    """The last of what it returns, whose device is looked at."""
    return lambda *given: answer(list(given))[2]


HAND = (
    "Try two dialogues of 2 and 3 tokens: the positions are 0, 1, 0, 1, 2, and row 3 of the mask, the second token of"
    " the second dialogue, sees places 2 and 3."
)
PACKED: dict[str, Inputs] = {"for one dialogue": rows(4), "with a dialogue of one token": rows(1, 3, 1, 2)}

pack = exercise(
    "pack",
    stars=2,
    minutes=8,
    given=some_rows,
    also=PACKED,
    larger=many_rows,
    via=as_list,
    returns=RETURNED,
    aspects=(
        values(0.25, of="ids", axes="t", dtype=True),
        values(0.75, of="positions", axes="t", dtype=True, missed=HAND),
        values(1.25, of="mask", axes="t t", dtype=True, picture=True, missed=HAND),
        input_left_alone(0.25),
        any_device(0.5, via=only_mask),
    ),
)

# ----------------------------------------------------------------------------------------------- preference_loss


def four(b: int, *more: float, scale: float = 4.0) -> Inputs:
    """Log-probabilities of b pairs: chosen and rejected by the model, then by the reference."""
    return lambda draw: (*(-scale * draw.uniform(0.1, 3.0, b) for _ in range(4)), *more)


def long_answers(draw: Draw) -> tuple[torch.Tensor, ...]:
    """Many pairs of long answers, whose log-probabilities differ by hundreds."""
    b = draw.number(60, 90)
    return tuple(-50 - draw.heavy(b, most=60.0).abs() * 8 for _ in range(4))


def beside_a_reference(answer: Answer, draw: Draw) -> Callable:
    """The loss of the model's own log-probabilities (6,); those of the reference are constants, and β is 2."""
    _, _, *references = four(6, scale=1.0)(draw.named("reference"))
    return lambda chosen, rejected: answer(chosen, rejected, *references, 2.0)


preference_loss = exercise(
    "preference_loss",
    stars=3,
    minutes=9,
    given=four(6),
    also={
        "with beta = 0.5": four(5, 0.5),
        "with beta = 2": four(4, 2.0, scale=1.0),
        "for one pair": four(1),
        "with log-probabilities far apart": four(5, 1.0, scale=400.0),
    },
    larger=long_answers,
    aspects=(
        values(
            2.5,
            accepts="number",
            missed="Try one pair whose four log-probabilities are all −5: the margin is 0, and the loss log 2 = 0.693.",
        ),
        gradient(
            1,
            given=case(lambda draw: -draw.uniform(0.1, 3.0, 6), lambda draw: -draw.uniform(0.1, 3.0, 6)),
            also={"with log-probabilities far apart": case(normal(6, mean=-900.0), normal(6, mean=-100.0))},
            via=beside_a_reference,
        ),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# --------------------------------------------------------------------------------------------------- exact_match


def some_answers(b: int, t: int, length: int, end: int = 2) -> Inputs:
    """Written ids (b, t), in which about half of the rows are right; the right answers; and the end's id."""

    def inputs(draw: Draw) -> tuple[Any, ...]:
        written, right = draw.integers(3, 9, b, t), []
        fate = draw.permutation(b) % 5
        for row in range(b):
            k = draw.number(1, length + 1)
            right.append(draw.integers(3, 9, k))
            if fate[row] in (0, 1):  # right, with anything after its end
                written[row, :k] = right[row]
                written[row, k] = end
            elif fate[row] == 2:  # goes on after the right tokens, and ends later
                written[row, :k] = right[row]
                written[row, -1] = end
                written[row, k] = 5
            elif fate[row] == 3 and k > 1:  # ends before it is complete
                written[row, :k] = right[row]
                written[row, k - 1] = end
            else:  # the last token is another
                written[row, :k] = right[row]
                written[row, k - 1] = 12 - right[row][-1]
                written[row, k] = end
        return written, right, end

    return inputs


def never_ended(draw: Draw) -> tuple[Any, ...]:
    """Right tokens in full rows, with no room for an end."""
    right = [draw.integers(3, 9, 4) for _ in range(3)]
    return torch.stack(right), right, 2


def of_two_lengths(draw: Draw) -> tuple[Any, ...]:
    """An answer that is too long for the row beside one that fits."""
    written, right, end = some_answers(5, 6, 3, end=11)(draw)
    return written, [*right[:-1], draw.integers(3, 9, 9)], end


exact_match = exercise(
    "exact_match",
    stars=2,
    minutes=6,
    given=some_answers(10, 7, 4),
    also={
        "with answers that never end": never_ended,
        "with a right answer longer than the row": of_two_lengths,
        "with a batch of one": some_answers(1, 5, 3),
        "with another end": some_answers(9, 8, 5, end=1),
    },
    larger=lambda draw: some_answers(draw.number(60, 90), draw.number(20, 30), 12)(draw),
    aspects=(
        values(
            1.5,
            axes="b",
            dtype=True,
            missed="Let 2 be the end, and 4, 6 the right answer: 4, 6, 2, 9 earns 1; 4, 6, 6, 2 earns 0; 4, 2, 6, 2"
            " earns 0; 4, 6 without an end earns 0.",
        ),
        input_left_alone(0.25),
        any_device(0.25, given=lambda draw: some_answers(5, 7, 4)(draw)[:1], via=lambda answer, draw: in_place(answer)),
    ),
)


def in_place(answer: Answer) -> Callable:
    """The first token of each row is its right answer."""
    return lambda written: answer(written, [row[:1] for row in written], 2)


# ---------------------------------------------------------------------------------------------------- advantages


def groups(rows: int, samples: int) -> Inputs:
    """Rewards of both signs (rows, samples)."""
    return case(normal(rows, samples, mean=0.7, std=2.0))


def some_alike(draw: Draw) -> tuple[torch.Tensor]:
    """Rewards 0 and 1, where two groups are all right and all wrong, and groups of seven equal fractions."""
    rewards = draw.mask(0.5, 8, 7).float()
    rewards[:, 0], rewards[:, 1] = 0.0, 1.0
    rewards[draw.number(0, 2)] = 1.0
    rewards[draw.number(2, 4)] = 0.0
    rewards[4], rewards[5], rewards[6] = 0.1, 0.35, draw.uniform(0.1, 0.9, 1)
    return (rewards,)


advantages = exercise(
    "advantages",
    stars=2,
    minutes=7,
    given=groups(3, 5),
    aspects=(
        values(
            1.5,
            given=groups(3, 5),
            also={
                "with one question": groups(1, 6),
                "with more questions than samples": groups(7, 2),
                "with rewards far from 0": case(normal(4, 6, mean=900.0, std=30.0)),
                "with rewards that differ a little": case(normal(4, 6, std=1e-3)),
            },
            larger=case(lambda draw: draw.heavy(draw.number(40, 60), draw.number(16, 24))),
            axes="questions samples",
            rtol=1e-4,
            atol=1e-4,
            missed="Try one group with rewards 1, 0, 0, 0: mean 0.25, deviation 0.433, advantages 1.732 and three"
            " times −0.577.",
        ),
        values(
            1,
            name="a group without spread",
            given=some_alike,
            also={"with one sample a question": groups(4, 1)},
            missed="Where all rewards of a group are equal, whatever they are, every advantage is 0. Print the"
            " deviation of seven rewards of 0.1.",
        ),
        input_left_alone(0.25),
        any_device(0.25),
    ),
)

# --------------------------------------------------------------------------------------------------- policy_loss


def policies(b: int, t: int, *more: float, near: float = 0.4) -> Inputs:
    """Log-probabilities (b, t) by the model, the one that wrote and the reference; advantages (b,); answers (b, t)."""

    def inputs(draw: Draw) -> tuple[Any, ...]:
        old = -draw.uniform(0.2, 2.0, b, t)
        new, reference = old + near * draw.normal(b, t), old + near * draw.normal(b, t)
        is_answer = draw.mask(0.6, b, t).scatter(1, draw.integers(0, t, b, 1), True)
        return new, old, reference, draw.normal(b), is_answer, *more

    return inputs


def many_policies(draw: Draw) -> tuple[Any, ...]:
    """More answers, and longer ones, with a few large advantages."""
    b, t = draw.number(20, 30), draw.number(40, 60)
    new, old, reference, _, is_answer = policies(b, t)(draw)
    return new, old, reference, draw.heavy(b), is_answer, 0.1, 0.2


def with_fillers(draw: Draw) -> tuple[Any, ...]:
    """What stands after an answer's end has log-probabilities far from each other."""
    new, old, reference, advantage, is_answer = policies(5, 6)(draw)
    new[~is_answer] -= 20.0
    reference[~is_answer] -= 5.0
    return new, old, reference, advantage, is_answer, 0.2, 0.1


def of_the_model(answer: Answer, draw: Draw) -> Callable:
    """The loss of the model's own log-probabilities (4, 5); everything else is constant."""
    old, *others = policies(4, 5, 0.2, 0.3)(draw.named("written"))[1:]
    return lambda new: answer(old + new, old, *others)


FIRST = (
    "Try one answer of one token, with new = old = reference: the loss is minus the advantage. Then take new = old +"
    " log 2 and an advantage of 1: the ratio 2 counts as 1.2. With an advantage of −1 it counts as 2."
)

policy_loss = exercise(
    "policy_loss",
    stars=3,
    minutes=12,
    given=policies(4, 5),
    aspects=(
        values(
            2,
            name="clipped",
            given=policies(4, 5),
            also={
                "with a batch of one": policies(1, 6),
                "for one token": policies(6, 1),
                "with epsilon = 0.05": policies(5, 4, 0.05),
            },
            larger=many_policies,
            accepts="number",
            missed=FIRST,
        ),
        values(
            1.5,
            name="penalty",
            given=policies(4, 5, 0.2, 0.5),
            also={
                "for a model far from the reference": policies(3, 4, 0.2, 0.1, near=2.0),
                "with fillers": with_fillers,
            },
            accepts="number",
            missed="Set all advantages to 0 and let the reference be new + log 2: each token costs β (2 − log 2 − 1) ="
            " 0.307 β.",
        ),
        gradient(1, given=case(normal(4, 5, std=0.4)), via=of_the_model),
        input_left_alone(0.25),
        any_device(0.25, given=policies(4, 5, 0.2, 0.3)),
    ),
)

LESSON = Lesson(
    "20_answering",
    "Taught to answer",
    (answer_loss, answer_log_probability, preference_loss, exact_match, advantages, policy_loss, pack),
    predictions_of("20_answering"),
)
